"""Signals, failures of one rank, and losses that are not numbers."""
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from support import BIN, ROOT, TINY, Case, command, tensors

LONG = TINY.replace("steps = 12", "steps = 100000")


class Stopping(Case):
    def steps(self):
        """How many a run that goes on has written by now: whole lines."""
        return (self.folder / "run" / "metrics.jsonl").read_text().count("\n")

    def start(self, ranks, *arguments, **environment):
        metrics = self.folder / "run" / "metrics.jsonl"
        shutil.rmtree(metrics.parent, ignore_errors=True)
        process = subprocess.Popen(
            command(ranks, *arguments, "--set", "run.dir=run"), cwd=self.folder, text=True,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if process.poll() is not None:
                self.fail("ended early: " + "".join(process.communicate()))
            if metrics.exists() and metrics.read_text().count("\n") >= 5:
                return process
            time.sleep(0.05)
        self.fail("no steps within a minute")

    def ranks_of(self, process):
        """Process ids of the ranks, found below mpirun."""
        found, parents = [], {process.pid}
        for _ in range(4):
            children = set()
            for entry in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    stat = (entry / "stat").read_text()
                    parent = int(stat.rsplit(")", 1)[1].split()[1])
                    if parent in parents:
                        children.add(int(entry.name))
                        if "(soybean_train)" in stat:
                            found.append(int(entry.name))
                except (OSError, ValueError):
                    continue
            parents = children
        return found

    def stopped(self, process, code=75):
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, out + err)
        done = self.losses()
        self.assertGreaterEqual(len(done), 5)
        latest = os.readlink(self.folder / "run" / "checkpoints" / "latest.h5")
        self.assertEqual(latest, f"step-{len(done):08d}.h5", "the checkpoint is of the last step")
        return out + err

    def test_usr1_to_mpirun(self):
        process = self.start(3, self.model(LONG))
        process.send_signal(signal.SIGUSR1)
        self.assertIn("SIGUSR1", self.stopped(process))

    def test_signals_to_one_rank(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            with self.subTest(number.name):
                process = self.start(3, self.model(LONG))
                os.kill(self.ranks_of(process)[-1], number)
                self.stopped(process)

    def test_signals_while_the_ranks_end_do_not_change_the_exit_code(self):
        # srun --kill-on-bad-exit sends SIGTERM to the ranks left as soon as one has ended with 75.
        process = self.start(3, self.model(LONG))
        ranks = self.ranks_of(process)
        self.assertEqual(len(ranks), 3)
        process.send_signal(signal.SIGUSR1)
        while ranks:
            for rank in list(ranks):
                try:
                    if "Z" in pathlib.Path(f"/proc/{rank}/stat").read_text().rsplit(")", 1)[1].split()[0]:
                        raise ProcessLookupError
                    os.kill(rank, signal.SIGTERM)
                except (ProcessLookupError, FileNotFoundError):
                    ranks.remove(rank)
            time.sleep(0.001)
        self.stopped(process)

    def test_a_signal_before_the_first_step(self):
        process = subprocess.Popen(command(0, self.model(LONG), "--set", "run.dir=run"), cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        self.assertIn("tiny on 1 rank", process.stdout.readline())
        process.send_signal(signal.SIGUSR1)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, out + err)
        self.assertTrue(tensors(self.folder / "run" / "checkpoints" / "latest.h5"))

    def test_without_checkpoints_a_stopped_run_can_not_go_on(self):
        process = self.start(2, self.model(LONG), "--set", "checkpoint.keep=0")
        process.send_signal(signal.SIGUSR1)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, out + err)
        self.assertIn("no checkpoint, as checkpoint.keep = 0 says", out)

    def test_without_mpirun(self):
        process = self.start(0, self.model(LONG))
        process.send_signal(signal.SIGTERM)
        self.assertIn("SIGTERM", self.stopped(process))

    def test_output_that_nobody_reads_does_not_hold_up_the_stop(self):
        # Every step prints, so the pipe is full soon, and there are lines to print between the signal and the checkpoint.
        process = self.start(0, self.model(LONG), "--set", "train.log_every=1")
        steps = -1
        while self.steps() > steps:
            steps = self.steps()
            time.sleep(1)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        self.stopped(process)

    def test_a_reader_that_has_gone_does_not_end_the_run(self):
        process = self.start(0, self.model(LONG), "--set", "train.log_every=1")
        process.stdout.close()
        steps = self.steps()
        deadline = time.monotonic() + 60
        while self.steps() < steps + 1000:
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 75)
        self.assertTrue(tensors(self.folder / "run" / "checkpoints" / "latest.h5"))

    def test_term_to_mpirun_leaves_the_checkpoint(self):
        # Open MPI passes the SIGTERM on after this many seconds, and kills after as many again.
        process = self.start(2, self.model(LONG), OMPI_MCA_odls_base_sigkill_timeout="5")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        done = self.losses()
        latest = os.readlink(self.folder / "run" / "checkpoints" / "latest.h5")
        self.assertEqual(latest, f"step-{len(done):08d}.h5")

    def test_a_stopped_run_goes_on(self):
        process = self.start(2, self.model(LONG))
        process.send_signal(signal.SIGUSR1)
        self.stopped(process)
        steps = len(self.losses()) + 3
        self.train(3, self.folder / "tiny.toml", "--resume", "--set", f"train.steps={steps}")
        self.train(1, self.folder / "tiny.toml", "--set", f"train.steps={steps}", run_dir="whole")
        self.assert_close(self.losses(), self.losses("whole"), 1e-9, "resumed")

    def test_a_killed_rank_ends_the_run_and_loses_no_checkpoint(self):
        for norm in ("", '{ op = "batch_norm" }, '):
            process = self.start(3, self.model(LONG.replace('{ op = "max_pool"', norm + '{ op = "max_pool"')),
                                 "--set", "checkpoint.every=2")
            self.kill_one(process)
            latest = self.folder / "run" / "checkpoints" / "latest.h5"
            self.assertTrue(tensors(latest))
            self.train(2, self.folder / "tiny.toml", "--resume", "--set", f"train.steps={len(self.losses()) + 4}")

        process = subprocess.Popen(
            command(3, self.folder / "tiny.toml", "--eval", "--set", "run.dir=run", "--set",
                    "data.validation_samples=50000000"),
            cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        while "loss" not in process.stdout.readline():  # the last line of the plan
            self.assertIsNone(process.poll())
        time.sleep(0.5)
        self.kill_one(process)
        self.assertTrue(tensors(latest))
        self.assertFalse((self.folder / "run" / "evaluation.json").exists())

    def kill_one(self, process):
        """Nothing hangs, and it is said once."""
        os.kill(self.ranks_of(process)[-1], signal.SIGKILL)
        error = process.communicate(timeout=60)[1]
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(error.count("on signal 9"), 1, error)
        self.assertEqual(self.errors(error), [])

    def errors(self, text):
        return [line for line in text.splitlines() if line.startswith("soybean_train:")]

    def test_a_loss_that_is_no_number_stops_the_run(self):
        done = self.train(3, self.model(), "--set", "train.optimizer.lr=1e90", "--set", "checkpoint.every=1", expect=3)
        self.assertEqual(len(self.errors(done.stderr)), 1, done.stderr)
        self.assertRegex(self.errors(done.stderr)[0], r"step \d+: the loss, got -?(nan|inf)")

    def test_a_sample_that_is_no_number_is_named(self):
        import numpy

        random = numpy.random.RandomState(1)
        arrays = {"x_train": random.randn(30, 2, 6, 6), "y_train": random.randint(0, 5, 30),
                  "x_val": random.randn(9, 2, 6, 6), "y_val": random.randint(0, 5, 9)}
        source = 'source = "npz"\npath = "set.npz"'
        model = self.model(TINY.replace('source = "synthetic"\nsamples = 50\nvalidation_samples = 13', source))

        def refuse(name, sample, value, *parts, arguments=(), precision="fp64"):
            bad = {key: array.copy() for key, array in arrays.items()}
            bad[name][sample, 1, 2, 3] = value
            numpy.savez(self.folder / "set.npz", **bad)
            done = self.train(3, model, *arguments, "--set", f"train.precision={precision}", expect=3)
            said = self.errors(done.stderr)
            self.assertEqual(len(said), 1, done.stderr)
            for part in (f"set.npz: {name}.npy[{sample}], got ", *parts):
                self.assertIn(part, said[0])

        refuse("x_train", 17, numpy.nan, "got nan expected finite numbers of fp64. after step", "the loss is nan for it")
        refuse("x_train", 4, -numpy.inf, "got -inf")
        refuse("x_train", 4, 1e300, "got inf expected finite numbers of fp32", precision="fp32")
        refuse("x_val", 5, numpy.nan, "the validation loss of step 3 is nan for it",
               arguments=("--set", "train.steps=3"))
        numpy.savez(self.folder / "set.npz", **arrays)
        self.train(2, model)
        refuse("x_val", 8, numpy.nan, "the validation loss of run/checkpoints/step-", arguments=("--eval",))

    def test_weights_that_are_no_numbers_reach_no_checkpoint(self):
        blown = ("--set", "train.precision=fp32", "--set", "train.optimizer.lr=1e50", "--set", "train.steps=1")
        done = self.train(3, self.model(), *blown, "--set", "data.validation_samples=0", expect=3)
        self.assertEqual(len(self.errors(done.stderr)), 1, done.stderr)
        self.assertRegex(self.errors(done.stderr)[0],
                         r"step 1: parameters/\S+, got \d+ infinite or undefined values expected finite ones")
        self.assertEqual(list((self.folder / "run" / "checkpoints").glob("*")), [])

        done = self.train(3, self.model(), *blown, expect=3)
        self.assertRegex(self.errors(done.stderr)[0], r"step 1: the validation loss, got (nan|inf) expected")

    def test_a_folder_in_which_a_run_is_active_is_refused(self):
        process = self.start(2, self.model(LONG))
        for further in ((), ("--resume",)):
            done = self.train(2, self.model(), *further, expect=2)
            self.assertEqual(len(self.errors(done.stderr)), 1, done.stderr)
            self.assertRegex(self.errors(done.stderr)[0],
                             r"run\.dir: 'run', got a folder in which a run is active \(process \d+ on \S+\) expected")
        process.send_signal(signal.SIGUSR1)
        self.stopped(process)
        self.train(2, self.model(LONG), "--resume", "--set", f"train.steps={len(self.losses()) + 1}")

    def test_an_exception_on_one_rank_ends_all(self):
        # One rank may not have the address space that its arena of two and a half GB takes. The limit comes when it has
        # started, so that it holds for sanitized programs, which reserve much more than that.
        model = self.model(TINY.replace("units = 16", "units = 60000").replace("batch = 12", "batch = 5000"))
        script = self.folder / "limited.sh"
        script.write_text(
            '#!/bin/bash\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "$@"\n"$@" &\nsleep 0.1\n'
            "size=$(awk '/VmSize/ { print $2 }' /proc/$!/status)\n"
            'prlimit --pid $! --as=$(((size + 1500000) * 1024))\nwait $!\n')
        script.chmod(0o755)
        done = subprocess.run(
            [str(ROOT / "scripts" / "mpirun"), "-n", "3", str(script), str(BIN / "soybean_train"), str(model),
             "--strategy", "data", "--set", "run.dir=run"],
            cwd=self.folder, text=True, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(len(self.errors(done.stderr)), 1, done.stderr)
        self.assertIn("memory", self.errors(done.stderr)[0])

    def test_a_full_disk_is_reported_and_keeps_the_earlier_checkpoint(self):
        small = self.folder / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)], capture_output=True).returncode:
            self.skipTest("mounting needs root")
        self.addCleanup(subprocess.run, ["umount", str(small)], capture_output=True)
        model = self.model(TINY.replace("units = 16", "units = 200"))
        done = self.run_program(2, model, "--set", "run.dir=small/run", "--set", "checkpoint.every=1")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(len(self.errors(done.stderr)), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
