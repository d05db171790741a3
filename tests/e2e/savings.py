"""Microbatches and recomputation: losses stay, memory falls, both are chosen where a limit asks for it and go with the
plan file."""
import json
import unittest

from support import INPUTS, TINY, Case

WIDE = TINY.replace("input = [2, 6, 6]", "input = [2, 24, 24]").replace("batch = 12", "batch = 48")
NORMED = """
[model]
name = "normed"
input = [2, 16, 16]
layers = [
  { op = "conv2d", channels = 8, kernel = 3, padding = 1, bias = false },
  { repeat = 6, layers = [
    { op = "residual", activation = "relu", body = [
      { op = "conv2d", channels = 8, kernel = 3, padding = 1, bias = false }, { op = "batch_norm", activation = "relu" },
      { op = "dropout", rate = 0.2 },
      { op = "conv2d", channels = 8, kernel = 3, padding = 1, bias = false }, { op = "batch_norm" } ] },
  ] },
  { op = "max_pool", kernel = 2 },
  { op = "flatten" },
  { op = "dense", units = 5 },
]
loss = "softmax_cross_entropy"
""" + TINY[TINY.index("\n[data]"):].replace("lr = 0.05", "lr = 0.002")
NOTHING = ("--set", "train.microbatches=1", "--set", "train.recompute=none")


def limit(peak):
    return "--set", f"parallel.memory={int(peak)}"


class Savings(Case):
    def plan(self, model, ranks, *arguments):
        done = self.run_program(0, model, "--ranks", ranks, "--json", *arguments, program="soybean_plan")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_recomputation_leaves_losses_and_statistics_and_takes_less_memory(self):
        model = self.model(NORMED)
        self.train(1, model, *NOTHING, run_dir="serial")
        for ranks, strategy, most in ((1, "data", 0.6), (2, "data", 0.6), (3, "model", 1), (4, "auto", 0.8)):
            self.train(ranks, model, "--strategy", strategy, *NOTHING, run_dir=f"none-{ranks}")
            for kind in ("cheap", "segments"):
                with self.subTest(ranks=ranks, kind=kind):
                    name = f"{kind}-{ranks}"
                    self.train(ranks, model, "--strategy", strategy, "--set", f"train.recompute={kind}", run_dir=name)
                    self.assert_follows(name, "serial", f"{kind}, {strategy} on {ranks}")
                    none, some = self.summary(f"none-{ranks}"), self.summary(name)
                    self.assertEqual((some["microbatches"], some["recompute"]), (1, kind))
                    self.assertLess(some["peak_memory"], none["peak_memory"])
                    if kind == "segments":
                        self.assertLess(some["peak_memory"], most * none["peak_memory"])

    def test_memory_and_bytes_are_as_predicted(self):
        for model in ("vgg16_small", "resnet18_small"):
            for chosen in (["train.recompute=cheap"], ["train.recompute=segments"],
                           ["train.recompute=segments", "train.microbatches=2"]):
                if model == "resnet18_small" and len(chosen) > 1:
                    continue
                with self.subTest(model=model, chosen=chosen):
                    arguments = [a for key in chosen for a in ("--set", key)]
                    self.train(2, INPUTS / f"{model}.toml", *arguments, "--set", "train.steps=2", "--set", "checkpoint.keep=0")
                    plan, summary = self.plan(INPUTS / f"{model}.toml", 2, *arguments), self.summary()
                    auto = plan["strategies"]["auto"]
                    self.assertEqual(auto["bytes"], summary["bytes_moved_per_step"])
                    self.assertLessEqual(auto["peak_memory"], summary["peak_memory"])
                    self.assertGreater(auto["peak_memory"], 0.9 * summary["peak_memory"])

    def test_a_model_that_does_not_fit_is_made_to(self):
        for text, strategy, share, field in ((WIDE, "data", 0.6, "microbatches"), (NORMED, "data", 0.6, "recompute")):
            model = self.model(text, f"{field}.toml")
            free = f"free-{field}"
            data = ("--strategy", strategy)
            self.train(2, model, *data, run_dir=free)
            self.assertEqual((self.summary(free)["microbatches"], self.summary(free)["recompute"]), (1, "none"))
            bytes_allowed = share * self.summary(free)["peak_memory"]
            refused = self.train(2, model, *data, *NOTHING, *limit(bytes_allowed), run_dir="refused", expect=2)
            self.assertEqual(refused.stderr.count("soybean_train:"), 1, refused.stderr)
            done = self.train(2, model, *data, *limit(bytes_allowed), run_dir=field)
            self.assert_follows(field, free, field)
            summary = self.summary(field)
            self.assertLessEqual(summary["peak_memory"], bytes_allowed)
            self.assertNotEqual(summary[field], self.summary(free)[field])
            said = f"recompute {summary[field]}" if field == "recompute" else f"{summary[field]} microbatches"
            self.assertIn(said, done.stdout.splitlines()[0])
            resolved = (self.folder / field / "config.toml").read_text()
            self.assertIn(f'recompute = "{summary["recompute"]}"', resolved)
            self.assertIn(f'microbatches = {summary["microbatches"]}', resolved)
            self.goes_with_the_plan(model, field, summary)

    def goes_with_the_plan(self, model, run_dir, summary):
        plan = ("--set", f"parallel.plan={run_dir}/plan.json")
        self.train(2, model, *plan, run_dir="again")
        again = self.summary("again")
        self.assertEqual((again["microbatches"], again["recompute"]), (summary["microbatches"], summary["recompute"]))
        self.assertEqual(self.losses("again"), self.losses(run_dir))
        refused = self.train(2, model, *plan, *NOTHING, run_dir="refused", expect=2)
        self.assertRegex(refused.stderr, r'key "(microbatches|recompute)" of the plan, got .* expected .*\. The plan is for '
                                         r"another train\.(microbatches|recompute); make the plan anew")
        table = self.run_program(0, model, "--ranks", 2, "--compare", *plan, program="soybean_plan")
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertRegex(table.stdout, r"(one of the \d+ that a batch is worked off in|is computed again)")

    def test_smaller_limits_are_kept_until_nothing_helps(self):
        model = self.model(WIDE)
        data = ("--strategy", "data")
        whole = self.plan(model, 2, *data)["strategies"]["data"]["peak_memory"]
        chosen = []
        for share in (1, 0.7, 0.5):
            report = self.plan(model, 2, *data, *limit(share * whole))
            self.assertLessEqual(report["strategies"]["data"]["peak_memory"], share * whole)
            chosen.append((report["recompute"], report["microbatches"]))
        self.assertEqual(chosen[0], ("none", 1))
        self.assertEqual(len(set(chosen)), len(chosen), chosen)
        done = self.run_program(0, model, "--ranks", 2, *data, *limit(1000), program="soybean_plan")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"got 1\.00 kB for a rank expected at least [\d.]+ kB, what the leanest plan found "
                                      r'takes, with train\.microbatches = \d+ and train\.recompute = "segments"')

    def test_verify_follows_what_was_chosen(self):
        model = self.model(NORMED)
        peak = self.plan(model, 2)["strategies"]["auto"]["peak_memory"]
        self.train(2, model, "--verify", *limit(0.7 * peak))


if __name__ == "__main__":
    unittest.main()
