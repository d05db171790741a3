"""soybean_plan: the paper's networks at full size against exact optima of an independent search, JSON, errors."""
import json
import unittest

from support import INPUTS, STRATEGIES, Case

# network, batch, ranks, most MB moved under auto, MB moved under data (exactly 2 (P-1) |W|)
FIGURES = (
    ("alexnet", 256, 2, 48.01, 488.72),
    ("alexnet", 256, 4, 121.23, 1466.17),
    ("alexnet", 256, 8, 244.55, 3421.07),
    ("vgg16", 64, 8, 789.33, 7747.27),
    ("mlp4", 512, 8, 402.76, 15032.39),
)


class Plan(Case):
    def plan(self, *arguments, expect=0):
        done = self.run_program(0, *arguments, program="soybean_plan")
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def json_of(self, *arguments):
        return json.loads(self.plan(*arguments, "--json").stdout)

    def test_bytes_of_the_papers_networks(self):
        for name, batch, ranks, auto, data in FIGURES:
            with self.subTest(network=name, ranks=ranks):
                report = self.json_of(INPUTS / f"{name}.toml", "--ranks", ranks, "--set", "model.bias=false",
                                      "--set", f"data.batch={batch}")
                found = {s: report["strategies"][s]["bytes"] / 1e6 for s in STRATEGIES}
                self.assertLessEqual(round(found["auto"], 2), auto)
                self.assertEqual(round(found["data"], 2), data)
                self.assertEqual(report["strategies"]["auto"]["status"], "optimal")
                for other in STRATEGIES:
                    self.assertLessEqual(found["auto"], found[other], other)

    def test_json_has_the_agreed_keys(self):
        report = self.json_of(INPUTS / "digits.toml", "--ranks", 3)
        self.assertEqual(list(report), ["model", "ranks", "batch", "objective", "planning_seconds", "strategies", "tensors"])
        self.assertEqual(list(report["strategies"]["auto"]), ["bytes", "seconds", "peak_memory", "status", "gap"])
        self.assertEqual(list(report["tensors"][0]), ["name", "shape", "role", "tiling", "bytes"])
        self.assertEqual(sum(t["bytes"] for t in report["tensors"]), report["strategies"]["auto"]["bytes"])

    def test_every_rank_count(self):
        for ranks in (1, 2, 3, 5, 7, 11, 12, 16):
            with self.subTest(ranks):
                report = self.json_of(INPUTS / "digits_mlp.toml", "--ranks", ranks)
                bytes_of = {s: report["strategies"][s]["bytes"] for s in STRATEGIES}
                self.assertEqual(min(bytes_of.values()), bytes_of["auto"])

    def test_errors(self):
        model = self.model()
        for arguments, words in (
            ((), ["command line: model, got nothing expected a model file (TOML)"]),
            ((model,), ["command line: --ranks, got nothing expected the number of ranks to plan for"]),
            ((model, "--rank", 4), ['command line: option, got "--rank" expected a known one. did you mean --ranks?']),
            ((model, "--ranks"), ["--ranks: got nothing expected N"]),
            ((model, "--ranks", 0), ['--ranks: got "0" expected a whole number from 1 to 1048576']),
            ((model, "--ranks", -1), ['--ranks: got "-1" expected a whole number from 1 to 1048576']),
            ((model, "--ranks", "many"), ['--ranks: got "many" expected a whole number from 1 to 1048576']),
            ((model, "--ranks", 1 << 21), ['--ranks: got "2097152" expected a whole number from 1 to 1048576']),
            ((model, "--ranks", 4, "--json=maybe"), ["--json: got a value expected none"]),
            ((model, "--ranks", 4, "--strategy", "dta"), ["dta"]),
            ((model, "--ranks", 4, "--machine", "m.toml"), ["not supported yet"]),
            ((self.folder / "none.toml", "--ranks", 4), ["none.toml"]),
        ):
            with self.subTest(str(arguments[1:])):
                done = self.plan(*arguments, expect=2)
                lines = done.stderr.strip().splitlines()
                self.assertEqual(len(lines), 1, done.stderr)
                for word in words:
                    self.assertIn(word, lines[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
