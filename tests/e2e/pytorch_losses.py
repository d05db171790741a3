"""Training follows PyTorch's in fp64: the same weights and batches give the same losses for 100 steps, on any ranks."""
import json
import sys
import unittest

from support import ROOT, Case

sys.path.append(str(ROOT / "tests" / "golden"))
import training_cases  # noqa: E402


class PyTorchLosses(Case):
    expected = json.loads((ROOT / "tests" / "golden" / "training_losses.json").read_text())

    def follow(self, case, runs):
        model = self.model(training_cases.CASES[case], f"{case}.toml")
        if case == "resnet_cifar":
            training_cases.write_cifar(self.folder)
        self.assertLess(self.expected[case][-1], 0.7 * self.expected[case][0], "the loss falls")
        for ranks, strategy in runs:
            with self.subTest(ranks=ranks, strategy=strategy):
                self.train(ranks, model, "--strategy", strategy, "--set", f"train.steps={training_cases.STEPS}", "--set",
                           "train.precision=fp64", "--set", "train.validate_every=0")
                self.assert_close(self.losses(), self.expected[case], 1e-6, case)

    def test_lenet_on_digits(self):
        self.follow("lenet_digits", [(1, "auto"), (3, "auto"), (4, "data")])

    def test_residual_network_on_cifar(self):
        self.follow("resnet_cifar", [(1, "auto"), (2, "auto"), (3, "data")])

    def test_transformer_on_text(self):
        self.follow("gpt", [(1, "auto"), (3, "auto"), (4, "model"), (2, "data")])


if __name__ == "__main__":
    unittest.main(verbosity=2)
