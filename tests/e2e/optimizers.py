"""Optimizers, clipping, averages, microbatches, settings by layer: on any ranks they follow the serial run, and go on
bit for bit from a checkpoint; --eval, weights of another run, the best checkpoint and the early stop."""
import json
import unittest

from support import TINY, Case, tensors

OPTIMIZERS = {
    "adam": '{ name = "adam", lr = 0.01, amsgrad = true }',
    "adamw": '{ name = "adamw", lr = 0.01, weight_decay = 0.1, decay_biases = false }',
    "rmsprop": '{ name = "rmsprop", lr = 0.003, momentum = 0.9, centered = true, eps = 1e-4 }',
    "lars": '{ name = "lars", lr = 1.0, trust_coefficient = 0.02, weight_decay = 1e-3 }',
    "lamb": '{ name = "lamb", lr = 0.01 }',
}
ALL = ("--set", "train.clip_norm=0.5", "--set", "train.ema=0.9",
       "--set", "train.schedule={name=\"cosine\", warmup_steps=3}")


class Optimizers(Case):
    def test_all_follow_the_serial_run(self):
        model = self.model()
        launches = [(2, "data"), (3, "model"), (4, "auto"), (8, "owt"), (5, "kcut")]
        for i, (name, settings) in enumerate(OPTIMIZERS.items()):
            chosen = ("--set", f"train.optimizer={settings}", *ALL)
            self.train(1, model, *chosen, run_dir=f"serial-{name}")
            for ranks, strategy in (launches[i], launches[(i + 2) % len(launches)]):
                with self.subTest(optimizer=name, ranks=ranks, strategy=strategy):
                    self.train(ranks, model, *chosen, "--strategy", strategy, run_dir=f"{name}-{ranks}")
                    self.assert_follows(f"{name}-{ranks}", f"serial-{name}", f"{name}, {strategy} on {ranks}")

    def test_the_norm_is_reported_and_clipped_runs_move_no_more_data(self):
        model = self.model()
        self.train(3, model, "--strategy", "auto", run_dir="plain")
        self.train(3, model, "--strategy", "auto", "--set", "train.clip_norm=0.1", run_dir="clipped")
        self.assertEqual(self.summary("plain")["bytes_moved_per_step"], self.summary("clipped")["bytes_moved_per_step"])
        self.assertNotIn("gradient_norm", self.metrics("plain")[0])
        self.assertTrue(all(record["gradient_norm"] > 0 for record in self.metrics("clipped")))
        self.assertGreater(self.metrics("clipped")[0]["control_bytes"], self.metrics("plain")[0]["control_bytes"])

    def test_a_resumed_run_goes_on_bit_for_bit(self):
        model = self.model()
        for name in ("adam", "lamb"):
            chosen = ("--set", f"train.optimizer={OPTIMIZERS[name]}", *ALL, "--set", "train.schedule.name=constant")
            self.train(2, model, *chosen, run_dir=f"whole-{name}")
            self.train(2, model, *chosen, "--set", "train.steps=5", run_dir=f"parts-{name}")
            self.train(2, model, *chosen, "--resume", run_dir=f"parts-{name}")
            self.assertEqual(self.losses(f"parts-{name}"), self.losses(f"whole-{name}"))
            whole, parts = (tensors(self.folder / f"{d}-{name}" / "checkpoints" / "latest.h5")
                            for d in ("whole", "parts"))
            for key, values in whole.items():
                self.assertTrue((values == parts[key]).all(), key)

    def test_microbatches_give_the_losses_of_one(self):
        model = self.model()
        self.train(1, model, run_dir="serial")
        for ranks, parts, strategy in ((1, 4, "auto"), (2, 3, "data"), (3, 2, "model"), (4, 4, "auto"), (8, 2, "owt")):
            with self.subTest(ranks=ranks, parts=parts, strategy=strategy):
                self.train(ranks, model, "--strategy", strategy, "--set", f"train.microbatches={parts}", *ALL[:2],
                           "--set", "train.clip_norm=1e9", run_dir=f"run-{ranks}-{parts}")
                self.assert_follows(f"run-{ranks}-{parts}", "serial", f"{parts} parts, {strategy} on {ranks}")

    def test_microbatches_reduce_gradients_once_and_take_less_memory(self):
        wide = TINY.replace('input = [2, 6, 6]', 'input = [2, 24, 24]').replace("batch = 12", "batch = 48")
        model = self.model(wide)
        short = ("--strategy", "data", "--set", "train.steps=2")
        self.train(2, model, *short, run_dir="one")
        self.train(2, model, *short, "--set", "train.microbatches=4", run_dir="four")
        one, four = self.summary("one"), self.summary("four")
        self.assertEqual(one["bytes_moved_per_step"], four["bytes_moved_per_step"])
        self.assertLess(four["peak_memory"], 0.6 * one["peak_memory"])

    def test_settings_by_layer(self):
        own = TINY.replace('kernel = 3, padding = 1, activation = "relu"',
                           'kernel = 3, padding = 1, activation = "relu", frozen = true').replace(
            'units = 5 }', 'units = 5, lr_scale = 0.1, weight_decay = 0.5 }')
        model = self.model(own)
        self.train(1, model, run_dir="serial")
        self.train(4, model, run_dir="parallel")
        self.assert_follows("parallel", "serial", "settings by layer")
        self.train(1, model, "--set", "train.steps=1", run_dir="short")
        first, last = (tensors(self.folder / d / "checkpoints" / "latest.h5") for d in ("short", "serial"))
        for name in first:
            same = (first[name] == last[name]).all()
            self.assertEqual(same, "conv2d_1" in name, name)
        self.assertNotIn("state/conv2d_1.weight.momentum", last)

    def test_eval_validates_without_training(self):
        model = self.model()
        chosen = ("--set", "train.ema=0.9")
        self.train(2, model, *chosen)
        validation = self.summary()["validation"]
        before = sorted(p.name for p in (self.folder / "run" / "checkpoints").iterdir())
        done = self.train(3, model, *chosen, "--eval")
        self.assertIn("(step 12): validation loss", done.stdout)
        evaluation = json.loads((self.folder / "run" / "evaluation.json").read_text())
        self.assertEqual(evaluation["steps"], 12)
        self.assertEqual(evaluation["validation_samples"], 13)
        self.assertAlmostEqual(evaluation["validation"]["loss"], validation["loss"], delta=1e-12)
        self.assertEqual(evaluation["validation"]["accuracy"], validation["accuracy"])
        self.assertEqual(before, sorted(p.name for p in (self.folder / "run" / "checkpoints").iterdir()))
        # another optimizer reads the same weights; the averages are validated only with train.ema
        path = self.folder / "run" / "checkpoints" / "step-00000012.h5"
        done = self.train(1, model, "--set", "train.optimizer={name=\"adam\"}", f"--eval={path}", "--json",
                          run_dir="other")
        plain = json.loads(done.stdout)
        self.assertNotEqual(plain["validation"]["loss"], validation["loss"])

    def test_running_statistics_are_part_of_the_model(self):
        norm = TINY.replace('kernel = 3, padding = 1, activation = "relu" },',
                            'kernel = 3, padding = 1, bias = false }, { op = "batch_norm", activation = "relu" },')
        model = self.model(norm)
        chosen = ("--set", f"train.optimizer={OPTIMIZERS['adamw']}", "--set", "train.ema=0.9")
        self.train(1, model, *chosen, run_dir="serial")
        self.train(3, model, *chosen, run_dir="parallel")
        self.assert_follows("parallel", "serial", "batch norm")
        done = self.train(2, model, *chosen, "--eval", run_dir="parallel")
        evaluation = json.loads((self.folder / "parallel" / "evaluation.json").read_text())
        self.assertAlmostEqual(evaluation["validation"]["loss"], self.summary("serial")["validation"]["loss"],
                               delta=1e-9)
        path = self.folder / "serial" / "checkpoints" / "latest.h5"
        done = self.train(2, model, "--set", f"train.init_from={path}", "--set", "train.optimizer={lr=1e-12}",
                          "--set", "train.steps=1", run_dir="third")
        self.assertIn("9 tensors begin with those of", done.stdout)
        old, new = tensors(path), tensors(self.folder / "third" / "checkpoints" / "latest.h5")
        name = "state/batch_norm_1.running_mean"
        # a tenth is the batch's; had it begun at 0, nine tenths would be missing
        self.assertLess(abs(new[name] - 0.9 * old[name]).max(), 0.4 * abs(old[name]).max())
        done = self.train(1, model, "--set", "train.microbatches=2", expect=2)
        self.assertIn("train.microbatches: got 2 for a model with running statistics", done.stderr)

    def test_eval_refuses_what_it_can_not_validate(self):
        model = self.model()
        done = self.train(2, model, "--eval", expect=2)
        self.assertIn("--eval: run, got no checkpoint expected one", done.stderr)
        self.train(1, model, "--set", "train.steps=1")
        done = self.train(1, model, "--set", "data.validation_samples=0", "--eval", expect=2)
        self.assertIn("--eval: data, got no validation samples expected some", done.stderr)
        done = self.train(1, model, "--set", "train.ema=0.5", "--eval", expect=2)
        self.assertIn("got no state/dense_2.bias.average, ", done.stderr)
        done = self.train(1, model, "--set", "model.layers[3].units=17", "--eval", expect=2)
        self.assertIn("dense_1.weight 16x54 expected 17x54", done.stderr)
        done = self.train(1, model, "--eval", "--resume", expect=2)
        self.assertIn("--eval: got --resume as well expected only one of them", done.stderr)
        done = self.train(1, model, "--eval=", expect=2)
        self.assertIn("--eval=: got no path expected that of a checkpoint, or --eval alone", done.stderr)

    def test_weights_of_another_run_by_name(self):
        self.train(1, self.model(), run_dir="first")
        path = self.folder / "first" / "checkpoints" / "latest.h5"
        head = TINY.replace('{ op = "dense", units = 5 }', '{ op = "dense", name = "head", units = 5 }')
        given = ("--set", f"train.init_from={path}", "--set", "train.optimizer={lr=1e-12}", "--set", "train.steps=1")
        done = self.train(3, self.model(head, "head.toml"), *given)
        self.assertIn("4 tensors begin with those of", done.stdout)
        self.assertIn("not in the file, begin as initialised: head.weight, head.bias", done.stdout)
        self.assertIn("not in the model: dense_2.bias, dense_2.weight", done.stdout)
        old, new = tensors(path), tensors(self.folder / "run" / "checkpoints" / "latest.h5")
        for name in ("parameters/conv2d_1.weight", "parameters/dense_1.bias"):
            self.assertLess(abs(old[name] - new[name]).max(), 1e-9)
        self.train(2, self.folder / "head.toml", *given, "--set", "train.precision=fp32", run_dir="single")
        done = self.train(2, self.folder / "head.toml", *given[2:], "--set", "train.precision=fp64",
                          "--set", f"train.init_from={self.folder}/single/checkpoints/latest.h5", run_dir="twice")
        self.assertIn("latest.h5, which are fp32 and become fp64", done.stdout)
        single = tensors(self.folder / "single" / "checkpoints" / "latest.h5")
        twice = tensors(self.folder / "twice" / "checkpoints" / "latest.h5")
        for name in ("parameters/conv2d_1.weight", "parameters/dense_1.bias"):
            self.assertLess(abs(old[name] - single[name]).max(), 1e-7)  # rounded, and a step of next to nothing
            self.assertLess(abs(single[name] - twice[name]).max(), 1e-9)
        self.train(2, self.folder / "head.toml", "--set", "train.precision=fp32", "--eval", run_dir="twice")
        done = self.train(2, self.folder / "tiny.toml", *given, "--set", "model.layers[3].units=17", run_dir="no",
                          expect=2)
        self.assertIn("train.init_from: ", done.stderr)
        self.assertIn("dense_1.weight 16x54 expected 17x54", done.stderr)
        self.assertFalse((self.folder / "no").exists())
        other = TINY.replace('op = "conv2d",', 'op = "conv2d", name = "a",').replace(
            'units = 16,', 'units = 16, name = "b",').replace('units = 5', 'units = 5, name = "c"')
        done = self.train(1, self.model(other, "other.toml"), *given, run_dir="no", expect=2)
        self.assertIn("got no tensor of this model expected some weights with names of its layers", done.stderr)

    def test_the_best_checkpoint_stays_and_patience_ends_the_run(self):
        model = self.model()
        settings = ("--set", "train.optimizer={lr=0.3, momentum=0.9}", "--set", "train.steps=400",
                    "--set", "train.patience=3", "--set", "checkpoint.best=true", "--set", "checkpoint.keep=1")
        done = self.train(2, model, *settings)
        self.assertIn("stopped early, as train.patience says", done.stdout)
        summary = self.summary()
        self.assertLess(summary["steps"], 400)
        self.assertTrue(summary["stopped_early"])
        lines = (self.folder / "run" / "metrics.jsonl").read_text().splitlines()
        validations = [r for r in map(json.loads, lines) if "validation" in r]
        best = min(validations, key=lambda r: r["validation"]["loss"])
        self.assertEqual(summary["best"]["step"], best["step"])
        self.assertEqual(validations.index(best), len(validations) - 4)
        folder = self.folder / "run" / "checkpoints"
        self.assertEqual((folder / "best.h5").resolve().name, f"step-{best['step']:08}.h5")
        self.assertEqual(len(list(folder.glob("step-*.h5"))), 2)
        done = self.train(1, model, *settings, f"--eval={folder}/best.h5")
        evaluation = json.loads((self.folder / "run" / "evaluation.json").read_text())
        self.assertAlmostEqual(evaluation["validation"]["loss"], best["validation"]["loss"], delta=1e-9)
        done = self.train(2, model, *settings, "--resume")
        self.assertIn("nothing to do: the run stopped early at step", done.stdout)
        done = self.train(2, model, *settings, "--set", f"train.steps={summary['steps']}", run_dir="whole")
        self.assertNotIn("stopped early", done.stdout)
        self.assertFalse(self.summary("whole")["stopped_early"])
        done = self.train(1, model, "--set", "data.validation_samples=0", "--set", "train.patience=2", expect=2)
        self.assertIn("train.patience: data, got no validation samples expected some", done.stderr)

    def test_a_resumed_run_stops_where_it_would_have(self):
        model = self.model()
        settings = ("--set", "train.optimizer={lr=0.3, momentum=0.9}", "--set", "train.patience=3")
        self.train(1, model, *settings, "--set", "train.steps=400", run_dir="whole")
        end = self.summary("whole")["steps"]
        self.train(1, model, *settings, "--set", f"train.steps={end - 5}", run_dir="parts")
        self.train(1, model, *settings, "--set", "train.steps=400", "--resume", run_dir="parts")
        self.assertEqual(self.losses("parts"), self.losses("whole"))


if __name__ == "__main__":
    unittest.main()
