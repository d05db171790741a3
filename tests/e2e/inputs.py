"""The model files in inputs/: their networks follow the serial run for 20 steps at their own learning rates.

usage: inputs.py [--full]   (a covering subset, or every input × strategy × 2 to 8 ranks)
"""
import sys
import unittest

from support import INPUTS, STRATEGIES, Case

FULL = "--full" in sys.argv
SMALL = ("digits", "digits_mlp", "alexnet_small", "vgg16_small", "lenet_small", "resnet18_small", "resnet50_small",
         "resnet152_small", "wide_resnet_small", "inception_v1_small", "inception_v3_small", "densenet121_small",
         "mobilenet_v2_small", "squeezenet_small", "overfeat_small", "gpt2_tiny")
COVERING = {
    "digits": ((2, "auto"), (3, "data"), (8, "model")),
    "digits_mlp": ((4, "kcut"), (7, "auto")),
    "alexnet_small": ((3, "auto"), (8, "owt"), (5, "data")),
    "vgg16_small": ((6, "model"), (4, "auto")),
    "lenet_small": ((3, "auto"), (8, "data")),
    "resnet18_small": ((3, "auto"), (8, "data")),
    "resnet50_small": ((8, "auto"), (3, "model")),
    "resnet152_small": ((3, "owt"),),
    "wide_resnet_small": ((3, "data"),),
    "inception_v1_small": ((3, "auto"), (8, "model")),
    "inception_v3_small": ((3, "auto"), (8, "data")),
    "densenet121_small": ((3, "auto"), (8, "kcut")),
    "mobilenet_v2_small": ((3, "auto"), (8, "model")),
    "squeezenet_small": ((3, "model"), (8, "auto")),
    "overfeat_small": ((3, "owt"), (8, "auto")),
    "gpt2_tiny": ((3, "auto"), (8, "data")),
}


class Inputs(Case):
    def follow(self, name):
        model = INPUTS / f"{name}.toml"
        fixed = ("--set", "train.precision=fp64", "--set", "train.steps=20", "--set", "train.validate_every=0")
        self.train(1, model, *fixed, run_dir="serial")
        serial = self.losses("serial")
        self.assertLessEqual(min(serial[10:]), 0.9 * serial[0], "the loss falls by a tenth")
        pairs = [(p, s) for s in STRATEGIES for p in range(2, 9)] if FULL else COVERING[name]
        for ranks, strategy in pairs:
            with self.subTest(model=name, ranks=ranks, strategy=strategy):
                self.train(ranks, model, *fixed, "--strategy", strategy)
                self.assert_close(self.losses(), serial, 1e-9, f"{name}, {strategy} on {ranks}")
                for record in self.metrics():
                    self.assertEqual(record["bytes_moved"], record["bytes_planned"])

    def test_every_model_file_is_accepted(self):
        for path in sorted(INPUTS.glob("*.toml")):
            with self.subTest(path.name):
                done = self.run_program(0, path, "--ranks", "4", program="soybean_plan")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


for small in SMALL:
    setattr(Inputs, f"test_{small}", lambda self, name=small: self.follow(name))

if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--full"], verbosity=2)
