"""Checkpoints: resuming on the same and on other rank counts, damaged files."""
import os
import shutil
import subprocess
import unittest

from support import BIN, ROOT, Case, tensors

STEPS = ("--set", "checkpoint.every=4")


class Resume(Case):
    def interrupted(self, ranks, *extra):
        """A run of 12 steps, and the checkpoint of one that got to step 4 of the same 12."""
        self.train(ranks, self.model(), *STEPS, *extra, run_dir="whole")
        self.checkpoint = self.folder / "whole" / "checkpoints" / "step-00000004.h5"
        self.assertTrue(self.checkpoint.exists())

    def test_same_ranks_are_bit_equal(self):
        for precision in ("fp64", "fp32"):
            with self.subTest(precision):
                fixed = ("--set", f"train.precision={precision}")
                self.interrupted(3, *fixed)
                self.train(3, self.folder / "tiny.toml", *STEPS, *fixed, f"--resume={self.checkpoint}")
                self.assertEqual(self.losses("run"), self.losses("whole")[4:])
                whole = tensors(self.folder / "whole" / "checkpoints" / "latest.h5")
                resumed = tensors(self.folder / "run" / "checkpoints" / "latest.h5")
                for name in whole:
                    self.assertTrue((whole[name] == resumed[name]).all(), name)

    def test_other_rank_counts_and_plans(self):
        for before, after, strategy in ((1, 4, "auto"), (4, 1, "auto"), (3, 8, "model"), (8, 2, "data")):
            with self.subTest(before=before, after=after):
                self.interrupted(before)
                self.train(after, self.folder / "tiny.toml", "--strategy", strategy, f"--resume={self.checkpoint}")
                self.assert_close(self.losses("run"), self.losses("whole")[4:], 1e-9, f"{before} to {after}")

    def test_restored_tensors_are_bit_equal(self):
        # A learning rate of (nearly) nothing and no momentum: the step after resuming changes no weight, so that what
        # is saved next is what was restored, after a trip through another rank count and plan.
        self.interrupted(3)
        still = ("--set", "train.optimizer.lr=1e-300", "--set", "train.steps=5")
        self.train(8, self.folder / "tiny.toml", *still, "--strategy", "model", f"--resume={self.checkpoint}")
        before = tensors(self.checkpoint)
        after = tensors(self.folder / "run" / "checkpoints" / "latest.h5")
        for name in before:
            if name.startswith("parameters"):
                self.assertTrue((before[name] == after[name]).all(), name)

    def test_the_run_goes_on_in_its_folder(self):
        model = self.model()
        self.train(2, model, "--set", "train.steps=5")
        self.train(3, model, "--resume")
        self.assertEqual([record["step"] for record in self.metrics()], list(range(1, 13)))
        self.train(2, model, run_dir="whole")
        self.assert_close(self.losses(), self.losses("whole"), 1e-9, "in two parts")

    def test_resume_without_a_checkpoint_starts_at_the_beginning(self):
        done = self.train(2, self.model(), "--resume", "--set", "train.steps=3")
        self.assertIn("nothing to resume: there is no checkpoint in run yet, starting from the beginning", done.stdout)
        self.assertEqual(len(self.losses()), 3)

    def test_resuming_a_finished_run_changes_nothing(self):
        model = self.model()
        self.train(2, model)
        before, summary = self.losses(), self.summary()
        for steps in (12, 4):
            done = self.train(2, model, "--resume", "--set", f"train.steps={steps}")
            self.assertIn("nothing to do: the run is at step 12", done.stdout)
            self.assertEqual(self.losses(), before)
            self.assertEqual(self.summary(), summary)

    def test_going_on_from_an_earlier_checkpoint_of_the_same_folder(self):
        model = self.model()
        self.train(2, model, "--set", "checkpoint.every=4")
        whole = self.losses()
        self.train(2, model, "--resume=run/checkpoints/step-00000004.h5")
        self.assertEqual(self.losses(), whole[4:])
        self.assertEqual(self.losses("run/earlier-1"), whole, "nothing is lost")

        self.train(2, model, "--resume=run/checkpoints/step-00000004.h5")
        self.assertEqual(self.losses(), whole[4:], "it is the first one of the new run")
        self.train(2, model, "--set", "checkpoint.keep=1", "--resume=run/checkpoints/step-00000004.h5")
        self.assertEqual(self.checkpoints(), ["latest.h5", "step-00000012.h5"])
        done = self.train(2, model, "--resume=run/checkpoints/step-00000004.h5", expect=2)
        moved = "run/earlier-3/checkpoints/step-00000004.h5"
        self.assertIn(f"it was moved to {moved}: --resume={moved} goes on from it", done.stderr)
        self.train(2, model, f"--resume={moved}")
        self.assertEqual(self.losses(), whole[4:])

    def checkpoints(self, run_dir="run"):
        return sorted(path.name for path in (self.folder / run_dir / "checkpoints").iterdir())

    ENDS_EARLY = ("--set", "train.optimizer.lr=1e90")  # with the loss, before any checkpoint

    def test_a_run_from_a_checkpoint_can_go_on_at_once(self):
        self.interrupted(2)
        model = self.folder / "tiny.toml"
        self.train(2, model, f"--resume={self.checkpoint}", *self.ENDS_EARLY, expect=3)
        self.assertEqual(self.checkpoints(), ["latest.h5", "step-00000004.h5"])
        done = self.train(2, model, "--resume")
        self.assertIn("resuming after step 4 from run/checkpoints/step-00000004.h5", done.stdout)
        self.assertEqual(self.losses(), self.losses("whole")[4:])
        self.assertEqual([record["step"] for record in self.metrics()], list(range(5, 13)))

    def test_a_finished_checkpoint_leaves_the_folder_as_it_is(self):
        self.interrupted(2)
        model = self.folder / "tiny.toml"
        for further, code in (((), 0), (("--json",), 2)):
            done = self.train(2, model, f"--resume={self.checkpoint}", "--set", "train.steps=4", *further,
                              run_dir="whole", expect=code)
            self.assertIn("nothing to do" if code == 0 else "got a checkpoint of step 4 expected one with steps left",
                          done.stdout + done.stderr)
            self.assertEqual(len(self.losses("whole")), 12)

    def test_latest_or_else_a_named_one(self):
        self.interrupted(2)
        model = self.folder / "tiny.toml"
        both = (f"--resume={self.checkpoint}", "--resume")
        done = self.train(2, model, *both, *self.ENDS_EARLY, expect=3)
        self.assertIn(f"resuming after step 4 from {self.checkpoint}", done.stdout)
        self.train(2, model, *both, "--set", "train.steps=7")
        done = self.train(2, model, *reversed(both))
        self.assertIn("resuming after step 7 from run/checkpoints/step-00000007.h5", done.stdout)
        self.assertEqual(self.losses(), self.losses("whole")[4:])

    def test_a_requeued_job_goes_on(self):
        self.interrupted(1)

        def job(restarts, *arguments, expect=0):
            environment = {**os.environ, "SOYBEAN_BIN": str(BIN), "SOYBEAN_LAUNCH": "env", "SLURM_SUBMIT_DIR": ".",
                           "SLURM_RESTART_COUNT": str(restarts)}
            environment.pop("SLURM_CPUS_PER_TASK", None)
            done = subprocess.run(["bash", str(ROOT / "slurm" / "train.sbatch"), "tiny.toml", "--set", "run.dir=run",
                                   *arguments], cwd=self.folder, env=environment, capture_output=True, text=True)
            self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
            return done.stdout

        named = f"--resume={self.checkpoint}"
        said = job(1, named, *self.ENDS_EARLY, expect=3)  # ended before anything was done, so to say
        self.assertIn(f"resuming after step 4 from {self.checkpoint}", said)
        self.assertIn("after step 4 from run/checkpoints/step-00000004.h5", job(1, named, "--set", "train.steps=8"))
        self.assertIn("after step 8 from run/checkpoints", job(2, named))
        self.assertEqual(self.losses(), self.losses("whole")[4:])
        self.assertIn(f"resuming after step 4 from {self.checkpoint}", job(0, named))
        self.assertIn("nothing to do", job(0))

    def test_what_a_killed_run_left_is_put_in_order(self):
        model = self.model()
        self.train(2, model, "--set", "train.steps=6", "--set", "checkpoint.every=3")
        folder = self.folder / "run"
        (folder / "checkpoints" / "step-00000009.h5.tmp").write_text("half")
        (folder / "checkpoints" / "step-best.h5.tmp").write_text("mine")
        before = (folder / "metrics.jsonl").read_text()
        (folder / "metrics.jsonl").write_text("garbage\n" + before)
        done = self.train(2, model, "--resume")
        self.assertEqual(done.stdout.count("removed what a run that was killed had not finished: step-00000009.h5.tmp\n"), 1)
        self.assertEqual(done.stdout.count("it was kept as run/metrics.jsonl.damaged\n"), 1)
        self.assertEqual((folder / "metrics.jsonl.damaged").read_text(), "garbage\n" + before)
        self.assertEqual([record["step"] for record in self.metrics()], list(range(1, 13)))
        self.assertIn("step-best.h5.tmp", self.checkpoints())
        self.assertNotIn("step-00000009.h5.tmp", self.checkpoints())

    def test_checkpoints_behind_a_link_stay_there(self):
        model = self.model()
        (self.folder / "large").mkdir()
        (self.folder / "run").mkdir()
        (self.folder / "run" / "checkpoints").symlink_to("../large")
        self.train(2, model)
        first = tensors(self.folder / "large" / "latest.h5")
        self.train(2, model, "--set", "train.seed=2", "--set", "train.steps=3")
        self.assertIn("step-00000003.h5", [path.name for path in (self.folder / "large").iterdir()])
        moved = tensors(self.folder / "run" / "earlier-1" / "checkpoints" / "step-00000012.h5")
        self.assertTrue(all((first[name] == moved[name]).all() for name in first))

    def test_only_the_newest_are_kept(self):
        self.train(1, self.model(), "--set", "checkpoint.every=1", "--set", "checkpoint.keep=2")
        names = sorted(path.name for path in (self.folder / "run" / "checkpoints").iterdir())
        self.assertEqual(names, ["latest.h5", "step-00000011.h5", "step-00000012.h5"])

    def refuse(self, *patterns, arguments=(), ranks=2):
        done = self.train(ranks, self.folder / "tiny.toml", "--resume", *arguments, run_dir="whole", expect=2)
        errors = [line for line in done.stderr.splitlines() if line.startswith("soybean_train:")]
        self.assertEqual(len(errors), 1, done.stderr)
        for pattern in patterns:
            self.assertRegex(errors[0], pattern)
        return errors[0]

    def test_damaged_files_are_refused_by_name(self):
        self.interrupted(2)
        latest = self.folder / "whole" / "checkpoints" / "step-00000012.h5"
        good = latest.read_bytes()
        import h5py

        with h5py.File(latest, "r") as file:
            where = file["parameters/dense_1.weight"].id.get_offset()
        with self.subTest("a flipped bit"):
            bad = bytearray(good)
            bad[where + 17] ^= 4
            latest.write_bytes(bad)
            self.refuse("step-00000012.h5", "dense_1.weight", "step-00000008.h5")
            for option in (f"--resume={latest}", f"--eval={latest}", f"train.init_from={latest}"):
                options = ["--set", option] if option.startswith("train") else [option]
                done = self.train(2, self.folder / "tiny.toml", *options, run_dir="fresh", expect=2)
                self.assertIn("dense_1.weight", done.stderr)
                self.assertFalse((self.folder / "fresh").exists(), option)
        with self.subTest("a flipped bit in the header"):
            bad = bytearray(good)
            bad[good.index(b"precision") + 16] ^= 1
            latest.write_bytes(bad)
            self.assertNotIn("configured", self.refuse("step-00000012.h5", "damaged", "step-00000008.h5"))
            done = self.train(2, self.folder / "tiny.toml", f"--resume={latest}", run_dir="fresh", expect=2)
            self.assertEqual(done.stdout, "", "refused before planning")
        with self.subTest("truncated"):
            latest.write_bytes(good[: len(good) // 2])
            self.refuse("step-00000012.h5", "step-00000008.h5")
        with self.subTest("empty"):
            latest.write_bytes(b"")
            self.refuse("step-00000012.h5", "step-00000008.h5")
        with self.subTest("gone"):
            latest.unlink()
            self.refuse("step-00000012.h5", "step-00000008.h5")

    def test_checkpoints_of_something_else_are_refused(self):
        self.interrupted(2)
        for change, patterns in (
            ("train.precision=fp32", ["precision", "fp64", "fp32"]),
            ("train.seed=2", ["seed"]),
            ("data.batch=10", ["batch", "12", "10"]),
            ("model.layers[3].units=17", ["dense_1", "16", "17"]),
            ("train.optimizer.momentum=0", ["momentum"]),
        ):
            with self.subTest(change):
                said = self.refuse("step-00000012.h5", *patterns, arguments=("--set", change))
                self.assertNotIn("checkpoint before it", said)

    def test_files_of_the_first_format_are_refused(self):
        self.interrupted(2)
        import h5py

        old = self.folder / "whole" / "checkpoints" / "step-00000012.h5"
        old.unlink()
        with h5py.File(old, "w", libver="earliest") as file:
            file.attrs["format"] = 1
            file.attrs["precision"] = "fp64"  # of variable length
        self.refuse("step-00000012.h5: got an HDF5 file that is no checkpoint, or one of another format version, "
                    "expected a checkpoint of format version 2")

    def test_readable_with_h5dump(self):
        self.train(2, self.model(), "--set", "train.steps=2")
        if shutil.which("h5dump") is None:
            self.skipTest("no h5dump")
        done = subprocess.run(["h5dump", "-H", "run/checkpoints/latest.h5"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("conv2d_1.weight", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
