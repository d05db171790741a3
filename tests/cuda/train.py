"""The trainer with the CUDA host code on stand-ins, against the host's trainer."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from support import INPUTS, TINY, Case  # noqa: E402

STANDIN = os.environ["SOYBEAN_TRAIN_STANDIN"]
SHARED = ("--set", "run.share_devices=true")
SINGLE = TINY.replace('precision = "fp64"', 'precision = "fp32"')


class OnAStandInAccelerator(Case):
    def run_standin(self, ranks, *arguments, run_dir="run", expect=0):
        done = self.run_program(ranks, *arguments, "--set", f"run.dir={run_dir}", program=STANDIN)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def test_losses_are_the_hosts(self):
        model = self.model(SINGLE)
        self.train(1, model, run_dir="host")
        for ranks in (1, 2, 3):
            done = self.run_standin(ranks, model, *SHARED, run_dir=f"standin{ranks}")
            self.assertIn("Stand-in", done.stdout + done.stderr)  # the preflight report names the accelerator
            self.assert_close(self.losses(f"standin{ranks}"), self.losses("host"), 1e-5, f"{ranks} ranks")
            a, b = self.summary(f"standin{ranks}")["validation"], self.summary("host")["validation"]
            self.assert_close([a["loss"]], [b["loss"]], 1e-5, "validation")

    def test_digits_follow_the_host(self):
        text = (INPUTS / "digits.toml").read_text().replace("epochs    = 20", "steps = 4")
        self.assertIn("steps = 4", text)
        model = self.model(text.replace("data/digits.h5", str(INPUTS / "data" / "digits.h5")), "digits.toml")
        self.train(1, model, run_dir="host")
        self.run_standin(1, model, run_dir="standin")
        self.assert_close(self.losses("standin"), self.losses("host"), 1e-4, "digits")

    def test_tf32_rounds_the_factors_of_products(self):
        model = self.model(SINGLE)
        for precision in ("fp32", "tf32"):
            self.run_standin(1, model, "--set", f"train.precision={precision}", run_dir=precision)
        rounded, full = self.losses("tf32"), self.losses("fp32")
        self.assert_close(rounded, full, 1e-2, "tf32")
        self.assertNotEqual(rounded, full)
        self.assertIn('precision = "tf32"', (self.folder / "tf32" / "config.toml").read_text())

    def test_checkpoints_go_between_the_two(self):
        model = self.model(SINGLE)
        self.run_standin(2, model, *SHARED, "--set", "train.steps=6", "--set", "checkpoint.every=6", run_dir="both")
        self.train(1, model, "--resume", run_dir="both")
        self.run_standin(1, model, run_dir="standin")
        self.assert_close(self.losses("both")[-6:], self.losses("standin")[-6:], 1e-5, "resumed")

    def test_two_ranks_do_not_share_it_unless_asked(self):
        done = self.run_standin(2, self.model(SINGLE), expect=2)
        self.assertIn("run.share_devices = true", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
