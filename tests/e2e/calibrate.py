"""soybean_plan --calibrate: a machine file of this machine that planning takes, and one clear error for what it can not do."""
import json
import re
import tomllib
import unittest

from support import Case


class Calibrate(Case):
    def calibrate(self, ranks, *arguments, expect=0):
        done = self.run_program(ranks, "--calibrate", *arguments, program="soybean_plan")
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def test_two_ranks_are_measured_and_planned_with(self):
        out = self.folder / "here.toml"
        done = self.calibrate(2, out, "--threads", 1)
        self.assertRegex(done.stdout, r"measured in [0-9.]+ s; wrote ")
        machine = tomllib.loads(out.read_text())
        self.assertTrue(machine["processor"]["shared"])
        rates = machine["processor"]["fp32"]
        for op in ("dense", "dense_grad_input", "dense_grad_weight", "conv2d", "conv2d_grad_input", "conv2d_grad_weight"):
            points = rates["operators"][op]
            self.assertGreater(len(points), 4, op)
            self.assertLessEqual(max(points[1::2]), 1.001 * rates["peak"])
        self.assertGreater(rates["peak"], machine["processor"]["fp64"]["peak"])  # the reference kernels are plain
        (link,) = machine["link"]
        self.assertEqual((link["name"], link["per"]), ("shared memory", "all"))
        self.assertTrue(1e-7 < link["latency"] < 0.1 and 1e7 < link["bandwidth"] < 1e12, link)
        self.assertTrue(0 <= machine["overlap"] <= 1)

        self.assertGreaterEqual(machine["processor"]["cores"], 2)
        self.assertTrue(0 <= machine["processor"]["turn"] < 0.1, machine["processor"])
        self.assertTrue(0 <= machine["batch"]["seconds"] < 0.1 and machine["batch"]["bandwidth"] >= 0, machine["batch"])

        model = self.model()
        for ranks in (1, 2, 4):
            plan = self.run_program(0, model, "--ranks", ranks, "--machine", out, "--json", program="soybean_plan")
            self.assertEqual(plan.returncode, 0, plan.stderr)
            time = json.loads(plan.stdout)["time"]
            self.assertGreaterEqual(time["seconds"], time["reading"])
            self.assertGreater(time["seconds"], 0)

    def test_what_it_can_not_do_is_one_error(self):
        for arguments, text in (
            (["nowhere/out.toml"], "--calibrate: file to write, got nowhere/out.toml expected a writable path"),
            (["out.toml", "--thread", 1], 'command line: option, got "--thread" expected a known one. did you mean --threads?'),
            (["out.toml", "--precision", "bf16"], '--precision: got "bf16" expected fp32 or tf32'),
            (["out.toml", "--precision", "tf32"], "tf32"),
        ):
            with self.subTest(text):
                done = self.calibrate(0, *arguments, expect=2)
                lines = [line for line in done.stderr.splitlines() if re.match("soybean_(plan|calibrate): ", line)]
                self.assertEqual(len(lines), 1, done.stderr)
                self.assertIn(text, lines[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
