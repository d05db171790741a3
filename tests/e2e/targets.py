"""Losses of numbers that come with the samples: regression against NumPy, on any number of ranks, resumed, verified."""
import math
import unittest

import numpy

from support import Case, tensors

LINEAR = """
[model]
input = [6]
layers = [{ op = "dense", name = "fc", units = 3 }]
loss = { op = "mse", target = "targets" }
[data]
source = "npz"
path = "set.npz"
batch = 8
shuffle = false
[train]
steps = 12
precision = "fp64"
optimizer = { name = "sgd", lr = 0.3 }
"""

NET = """
[model]
name = "net"
input = [2, 6, 6]
layers = [
  { op = "conv2d", name = "c", channels = 6, kernel = 3, padding = 1, activation = "relu" },
  { op = "conv2d", name = "image", channels = 2, kernel = 3, padding = 1 },
  { op = "flatten", name = "pixels" },
  { op = "flatten", input = "c" },
  { op = "dense", units = 9, activation = "tanh" },
  { op = "dropout", rate = 0.25 },
  { op = "dense", name = "y", units = 72 },
]
losses = [
  { op = "mse", target = "targets" },
  { op = "binary_cross_entropy", target = "targets", input = "pixels", weight = 0.5 },
  { op = "mse", target = "input", input = "image", weight = 0.1 },
]
[data]
source = "synthetic"
samples = 50
validation_samples = 13
batch = 12
[train]
steps = 12
optimizer = { name = "sgd", lr = 0.05, momentum = 0.9 }
precision = "fp64"
"""


class Targets(Case):
    def weights(self, run_dir="run"):
        found = tensors(self.folder / run_dir / "checkpoints" / "latest.h5")
        return found["parameters/fc.weight"].copy(), found["parameters/fc.bias"].copy()

    def test_regression_against_numpy(self):
        """From the weights after the first step on: mean squares by gradient descent; validation has a ragged tail."""
        random = numpy.random.RandomState(1)
        inputs = random.randn(20, 6)
        targets = inputs @ random.randn(6, 3) + 0.1 * random.randn(20, 3)
        held = random.randn(11, 6), random.randn(11, 3)
        numpy.savez(self.folder / "set.npz", x_train=inputs, y_train=targets, x_val=held[0], y_val=held[1])
        model = self.model(LINEAR)
        self.train(1, model, "--set", "train.steps=1")
        weight, bias = self.weights()
        wanted = []
        for step in range(1, 12):
            rows = numpy.arange(step * 8, step * 8 + 8) % 20
            error = inputs[rows] @ weight.T + bias - targets[rows]
            wanted.append((error**2).mean())
            weight -= 0.3 * 2 / error.size * error.T @ inputs[rows]
            bias -= 0.3 * 2 / error.size * error.sum(0)
        validation = ((held[0] @ weight.T + bias - held[1]) ** 2).mean()
        for ranks, strategy in ((1, "auto"), (2, "model"), (3, "data"), (4, "auto")):
            self.train(ranks, model, "--strategy", strategy)
            self.assert_close(self.losses()[1:], wanted, 1e-11, f"{strategy} on {ranks}")
            self.assert_close([self.summary()["validation"]["loss"]], [validation], 1e-11, "validation")
            self.assertIsNone(self.summary()["validation"]["accuracy"])
        done = self.run_program(2, model, "--eval", "--set", "run.dir=run", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{validation:.6f}"[:7], done.stdout)

    def test_ranks_strategies_and_resuming_do_not_matter(self):
        model = self.model(NET)
        self.train(1, model, run_dir="serial")
        serial = self.losses("serial")
        for ranks, strategy, parts in ((2, "model", 1), (3, "data", 3), (5, "auto", 1), (8, "kcut", 2)):
            with self.subTest(ranks=ranks, strategy=strategy):
                self.train(ranks, model, "--strategy", strategy, "--set", f"train.microbatches={parts}")
                self.assert_close(self.losses(), serial, 1e-9, f"{strategy} on {ranks}")
                self.assert_close([self.summary()["validation"]["loss"]],
                                  [self.summary("serial")["validation"]["loss"]], 1e-9, "validation")
        self.train(1, model, "--set", "train.steps=5")
        self.train(1, model, "--resume")
        self.assertEqual(self.losses(), serial)
        done = self.run_program(4, model, "--verify")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("verify: passed", done.stdout)

    def test_synthetic_targets_can_be_learnt(self):
        model = self.model(LINEAR.replace('"npz"\npath = "set.npz"', '"synthetic"\nsamples = 64\nnoise = 0.1\nclasses = 3')
                           .replace("lr = 0.3", "lr = 0.1").replace("steps = 12", "steps = 400"))
        self.train(1, model)
        losses = self.losses()
        self.assertLess(losses[-1], losses[0] / 20)
        self.assertTrue(math.isfinite(losses[-1]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
