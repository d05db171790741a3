"""Moved bytes are what Open MPI's own monitoring saw leave, for one input under data, model and auto."""
import re
import shutil
import subprocess
import unittest

import h5py

from support import INPUTS, Case, command


class Monitoring(Case):
    def monitored(self, ranks, *arguments):
        """Bytes of messages of the program itself ("E"), not of MPI's own collectives, sent by all ranks."""
        run = command(ranks, *arguments)
        settings = {"pml_monitoring_enable": 2, "pml_monitoring_enable_output": 3,
                    "pml_monitoring_filename": str(self.folder / "sent")}
        options = [word for name, value in settings.items() for word in ("--mca", name, str(value))]
        done = subprocess.run(run[:3] + options + run[3:], cwd=self.folder, capture_output=True, text=True, timeout=240,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        total = 0
        for rank in range(ranks):
            report = (self.folder / f"sent.{rank}.prof").read_text()
            for line in report.splitlines():
                words = re.split(r"\s+", line.strip())
                if words[0] == "E":
                    total += int(words[3])
        return total

    def test_moved_bytes_are_the_monitored_ones(self):
        if "pml_monitoring" not in subprocess.run(["ompi_info", "--all"], capture_output=True, text=True).stdout:
            self.skipTest("this MPI has no monitoring")
        # Without a validation split every message belongs to a step; checkpoints would be messages, too.
        train_only = self.folder / "train_only.h5"
        shutil.copy(INPUTS / "data" / "digits.h5", train_only)
        with h5py.File(train_only, "r+") as file:
            del file["validation"]
        for strategy in ("data", "model", "auto"):
            with self.subTest(strategy):
                sent = self.monitored(4, INPUTS / "digits.toml", "--strategy", strategy, "--set", "train.steps=3",
                                      "--set", f'data.path="{train_only}"', "--set", "checkpoint.keep=0",
                                      "--set", "run.dir=run")
                moved = sum(record["bytes_moved"] for record in self.metrics())
                control = sum(record["control_bytes"] for record in self.metrics())
                self.assertGreater(moved, 0)
                self.assertEqual(sent, moved + control)


if __name__ == "__main__":
    unittest.main(verbosity=2)
