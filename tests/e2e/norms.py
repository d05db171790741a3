"""Networks with norms, gates and arithmetic: they follow the serial run, go on bit by bit from a checkpoint, verify."""
import unittest

from support import STRATEGIES, TINY, Case, tensors

REST = TINY[TINY.index("loss ="):]
MODEL = """
[model]
name = "norms"
input = [2, 6, 6]
layers = [
  { op = "conv2d", name = "c1", channels = 6, kernel = 3, padding = 1 },
  { op = "batch_norm", name = "b1", activation = "relu" },
  { op = "lrn", size = 3 },
  { op = "residual", name = "r", body = [
    { op = "conv2d", name = "c2", channels = 6, kernel = 3, padding = 1, bias = false },
    { op = "batch_norm", name = "b2", momentum = 0.3 },
    { op = "mean", name = "squeeze", dims = [2, 3] },
    { op = "dense", name = "gate", units = 6, activation = "sigmoid" },
    { op = "mul", name = "gated", inputs = ["b2", "gate"] },
  ], activation = "silu" },
  { op = "group_norm", groups = 2, activation = "gelu" },
  { op = "layer_norm", over = "channels" },
  { op = "flatten" },
  { op = "dense", units = 16, activation = "hard_swish" },
  { op = "batch_norm", name = "b3", eps = 0.01 },
  { op = "layer_norm" },
  { op = "dense", units = 5 },
]
""" + REST

EVERY = ("--set", "checkpoint.every=4")


class Norms(Case):
    def test_every_strategy_follows_the_serial_run(self):
        model = self.model(MODEL)
        self.train(1, model, run_dir="serial")
        for ranks, strategy in zip((2, 3, 8, 4, 5), STRATEGIES):
            with self.subTest(ranks=ranks, strategy=strategy):
                self.train(ranks, model, "--strategy", strategy)
                self.assert_close(self.losses(), self.losses("serial"), 1e-8, strategy)
                for record in self.metrics():
                    self.assertEqual(record["bytes_moved"], record["bytes_planned"])
                for key in ("loss", "accuracy"):
                    got, expected = (self.summary(run)["validation"][key] for run in ("run", "serial"))
                    self.assertLessEqual(abs(got - expected), 1e-8 * abs(expected), key)

    def test_running_statistics_are_restored_bit_by_bit(self):
        for precision in ("fp64", "fp32"):
            with self.subTest(precision):
                fixed = (*EVERY, "--set", f"train.precision={precision}")
                self.train(3, self.model(MODEL), *fixed, run_dir="whole")
                checkpoint = self.folder / "whole" / "checkpoints" / "step-00000004.h5"
                self.train(3, self.folder / "tiny.toml", *fixed, f"--resume={checkpoint}")
                self.assertEqual(self.losses(), self.losses("whole")[4:])
                self.assertEqual(self.summary()["validation"], self.summary("whole")["validation"])
                whole, resumed = (tensors(self.folder / run / "checkpoints" / "latest.h5") for run in ("whole", "run"))
                for layer in ("b1", "b2", "b3"):
                    self.assertTrue((whole[f"state/{layer}.running_mean"] != 0).any())
                    self.assertTrue((whole[f"state/{layer}.running_var"] != 1).all())
                self.assertEqual(sorted(whole), sorted(resumed))
                for name in whole:
                    self.assertTrue((whole[name] == resumed[name]).all(), name)

    def test_verify(self):
        for ranks, strategy in ((3, "data"), (4, "auto"), (4, "model")):
            with self.subTest(ranks=ranks, strategy=strategy):
                done = self.run_program(ranks, self.model(MODEL), "--verify", "--strategy", strategy)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("verify: passed", done.stdout)
                self.assertIn("b1.running_var", done.stdout)


if __name__ == "__main__":
    unittest.main()
