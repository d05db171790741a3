"""soybean_kernels: one line per kernel, figures that fit together, and one clear error for what it can not do."""
import json
import unittest

from support import Case


class Kernels(Case):
    def test_every_kernel_of_a_step_is_timed(self):
        done = self.run_program(0, self.model(), "--json", "--repeats", "1", program="soybean_kernels")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["batch"], 12)
        self.assertGreater(report["step_seconds"], 0)
        ops = [kernel["op"] for kernel in report["kernels"]]
        self.assertIn("softmax_cross_entropy", ops)
        self.assertIn("sgd_update", ops)
        for kernel in report["kernels"]:
            self.assertGreater(kernel["seconds"], 0, kernel)
            self.assertGreater(kernel["bytes"], 0, kernel)

    def test_what_it_can_not_do_is_one_error(self):
        for ranks, arguments, text in (
            (3, [self.model()], "got 3 ranks expected one"),
            (0, [self.folder / "nowhere.toml"], "nowhere.toml: file, got nothing"),
            (0, [self.model(), "--repeats", "0"], "soybean_kernels --help lists the options"),
        ):
            with self.subTest(text):
                done = self.run_program(ranks, *arguments, program="soybean_kernels")
                self.assertEqual(done.returncode, 2)
                lines = [line for line in done.stderr.splitlines() if line.startswith("soybean_kernels: ")]
                self.assertEqual(len(lines), 1, done.stderr)
                self.assertIn(text, lines[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
