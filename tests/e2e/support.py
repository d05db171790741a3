"""Running SoyBean's programs in a temporary folder, for the end-to-end tests."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SOYBEAN_BIN", ROOT / "build" / "bin"))
INPUTS = ROOT / "inputs"
STRATEGIES = ("auto", "data", "model", "owt", "kcut")

TINY = """
[model]
name = "tiny"
input = [2, 6, 6]
layers = [
  { op = "conv2d", channels = 6, kernel = 3, padding = 1, activation = "relu" },
  { op = "max_pool", kernel = 2 },
  { op = "flatten" },
  { op = "dense", units = 16, activation = "tanh" },
  { op = "dropout", rate = 0.25 },
  { op = "dense", units = 5 },
]
loss = "softmax_cross_entropy"

[data]
source = "synthetic"
samples = 50
validation_samples = 13
batch = 12

[train]
steps = 12
optimizer = { name = "sgd", lr = 0.05, momentum = 0.9, weight_decay = 1e-4 }
precision = "fp64"
"""


def command(ranks, *arguments, program="soybean_train"):
    run = [str(BIN / program), *map(str, arguments)]
    return run if ranks == 0 else [str(ROOT / "scripts" / "mpirun"), "-n", str(ranks), *run]


class Case(unittest.TestCase):
    """Each test gets an empty folder, which is also the working directory of what it starts."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="soybean-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def model(self, text=TINY, name="tiny.toml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def run_program(self, ranks, *arguments, program="soybean_train", timeout=240):
        return subprocess.run(
            command(ranks, *arguments, program=program),
            cwd=self.folder, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
        )

    def train(self, ranks, *arguments, run_dir="run", expect=0):
        done = self.run_program(ranks, *arguments, "--set", f"run.dir={run_dir}")
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def metrics(self, run_dir="run"):
        lines = (self.folder / run_dir / "metrics.jsonl").read_text().splitlines()
        return [record for record in map(json.loads, lines) if "loss" in record]

    def losses(self, run_dir="run"):
        return [record["loss"] for record in self.metrics(run_dir)]

    def summary(self, run_dir="run"):
        return json.loads((self.folder / run_dir / "summary.json").read_text())

    def assert_close(self, got, expected, tolerance, what):
        self.assertEqual(len(got), len(expected), what)
        for step, (a, b) in enumerate(zip(got, expected), 1):
            self.assertLessEqual(abs(a - b), tolerance * abs(b), f"{what}: step {step}, {a} against {b}")

    def assert_follows(self, run_dir, serial, what):
        """In fp64: losses, weights, optimizer state and validation are the serial run's, bytes those planned."""
        self.assert_close(self.losses(run_dir), self.losses(serial), 1e-9, what)
        for record in self.metrics(run_dir):
            self.assertEqual(record["bytes_moved"], record["bytes_planned"], what)
        got, expected = (tensors(self.folder / d / "checkpoints" / "latest.h5") for d in (run_dir, serial))
        self.assertEqual(got.keys(), expected.keys())
        for name, values in expected.items():
            self.assertLessEqual(abs(got[name] - values).max(), 1e-9 * max(abs(values).max(), 1e-6), f"{what}: {name}")
        self.assertAlmostEqual(self.summary(run_dir)["validation"]["loss"],
                               self.summary(serial)["validation"]["loss"], delta=1e-9)


def tensors(path):
    """Every dataset of a checkpoint but the checksums, as NumPy arrays."""
    import h5py

    found = {}
    with h5py.File(path, "r") as file:
        for group in ("parameters", "state"):
            if group in file:
                file[group].visititems(
                    lambda name, item: found.update({f"{group}/{name}": item[()]})
                    if isinstance(item, h5py.Dataset) else None)
    return found
