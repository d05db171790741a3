"""The trainer with the CUDA host code on stand-ins, against the host's trainer."""
import os
import pathlib
import sys
import time
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
        self.assertEqual(done.stdout, "")  # not even the plan

    def test_a_driver_that_is_too_old_is_said(self):
        os.environ["SOYBEAN_STANDIN_DRIVER"] = "11040"
        self.addCleanup(os.environ.pop, "SOYBEAN_STANDIN_DRIVER")
        done = self.run_standin(1, self.model(SINGLE), expect=2)
        self.assertRegex(done.stderr, r"the driver is for CUDA 11\.4, too old for this program's CUDA")
        self.assertEqual(done.stdout, "")


class ACollectiveThatNeverEnds(Case):
    """Ranks with an accelerator each, so that collectives are NCCL's: from one of them on they do not end."""

    STALL = 2  # run.stall_seconds

    def stalled(self, ending, *arguments, ranks=2, **settings):
        settings.update(ENDING=ending, ACCELERATORS=ranks)
        for name, value in settings.items():
            os.environ[f"SOYBEAN_STANDIN_{name}"] = str(value)
            self.addCleanup(os.environ.pop, f"SOYBEAN_STANDIN_{name}")
        begin = time.monotonic()
        done = self.run_program(ranks, self.model(SINGLE), "--set", f"run.stall_seconds={self.STALL}", *arguments,
                                program=STANDIN)
        seconds = time.monotonic() - begin
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertLess(seconds, 5 * self.STALL + 10)  # what waits for an accelerator would take 20
        return done.stderr

    def test_is_named_after_a_few_seconds(self):
        self.assertRegex(self.stalled(30), r"rank \d: comm: '.+ to .+' stalled on rank \d, got no end of it for 2 s")

    def test_is_reported_in_a_recorded_step(self):
        self.assertRegex(self.stalled(30, RECORDS=1), r"comm: a kernel or a collective stalled on rank \d, got no end")

    def test_is_reported_inside_hosts(self):
        stages = ("--set", "parallel.comm=hierarchical")
        self.assertRegex(self.stalled(30, *stages), r"comm: '.+ to .+' stalled on rank \d, got no end of it for 2 s")

    def test_does_not_hold_up_the_report_of_a_rank_that_hangs(self):
        self.assertRegex(self.stalled(30, HANGING_RANK=1), r"rank 0: comm: gather stalled on rank 0, got no progress")

    def test_is_reported_in_verification(self):
        self.assertRegex(self.stalled(0, "--verify"), r"comm: '.+ to .+' stalled on rank \d, got no end of it for 2 s")


if __name__ == "__main__":
    unittest.main(verbosity=2)
