"""Bad input gives one clear error, exit code 2, and no training."""
import os
import re
import shutil
import subprocess
import unittest

from support import BIN, INPUTS, TINY, Case


class BadInput(Case):
    def expect(self, *patterns, ranks=2, arguments=(), model=None, text=TINY, code=2):
        path = model or self.model(text)
        done = self.run_program(ranks, path, *arguments)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, code, said)
        errors = [line for line in said.splitlines() if line.startswith("soybean_train:")]
        self.assertEqual(len(errors), 1, said)
        for pattern in patterns:
            self.assertRegex(errors[0], pattern)
        self.assertFalse((self.folder / "runs").exists(), "training must not have begun")

    def change(self, old, new):
        self.assertIn(old, TINY)
        return TINY.replace(old, new)

    def test_model_file(self):
        cases = {
            "missing file": dict(model="nowhere.toml", patterns=["nowhere.toml"]),
            "not TOML": dict(text="[model\n", patterns=["tiny.toml:1"]),
            "empty": dict(text="", patterns=["tiny.toml", "got nothing"]),
            "unknown key": dict(text=self.change("samples = 50", "sampels = 50"),
                                patterns=[r"tiny.toml:\d+", "sampels", "samples"]),
            "misspelt table": dict(text=self.change("[train]", "[trian]"),
                                   patterns=[r"tiny.toml:\d+", "unknown key trian", 'ean "train"']),
            "misspelt model": dict(text=self.change("[model]", "[modle]"),
                                   patterns=[r"tiny.toml:\d+", "unknown key modle", 'ean "model"']),
            "misspelt required key": dict(text=self.change("steps = 12", "setps = 12"),
                                          patterns=[r"tiny.toml:\d+", "unknown key train.setps", 'ean "steps"']),
            "key of another source": dict(text=self.change("samples = 50", 'samples = 50\npath = "x.h5"'),
                                          patterns=[r"tiny.toml:\d+", "data.path", 'data.source = "hdf5"']),
            "too large": dict(text=self.change("steps = 12", "steps = 99999999999999999999"),
                              patterns=[r"tiny.toml:\d+", r"99999999999999999999 \(too large\)"]),
            "means of other channels": dict(text=self.change("batch = 12", "batch = 12\nnormalise.mean = [1, 2, 3]"),
                                            patterns=[r"tiny.toml:\d+", "data.normalise.mean", "3 values", "1 or 2"]),
            "plan and pins": dict(text=TINY + '[parallel]\nplan = "p.json"\npins = { "dense_1.weight" = "replicate" }\n',
                                  patterns=[r"tiny.toml:\d+", "parallel.plan", "either a plan or pins"]),
            "unknown layer key": dict(text=self.change("kernel = 3, pad", "kernal = 3, pad"),
                                      patterns=[r"tiny.toml:\d+", "kernal", "kernel"]),
            "unknown operator": dict(text=self.change('"flatten"', '"flaten"'),
                                     patterns=[r"tiny.toml:\d+", "flaten", "flatten"]),
            "wrong type": dict(text=self.change("channels = 6", 'channels = "many"'),
                               patterns=[r"tiny.toml:\d+", "channels", "many", "integer"]),
            "kernel larger than the image": dict(text=self.change("kernel = 3, padding = 1", "kernel = 9"),
                                                 patterns=["conv2d_1", "9x9", "6x6"]),
            "zero units": dict(text=self.change("units = 16", "units = 0"), patterns=[r"tiny.toml:\d+", "units", "0"]),
            "negative stride": dict(text=self.change("kernel = 2", "kernel = 2, stride = -1"),
                                    patterns=[r"tiny.toml:\d+", "stride", "-1"]),
            "batch 0": dict(text=self.change("batch = 12", "batch = 0"), patterns=[r"tiny.toml:\d+", "batch", "0"]),
            "huge": dict(text=self.change("units = 16", "units = 9223372036854775807"), patterns=["units"]),
            "dense without flatten": dict(text=self.change('{ op = "flatten" },', ""), patterns=["dense_1", "flatten"]),
            "zero learning rate": dict(text=self.change("lr = 0.05", "lr = 0"), patterns=["lr"]),
            "not built yet": dict(text=self.change('precision = "fp64"', 'precision = "bf16"'),
                                  patterns=["bf16", "not supported yet"]),
            "mixed without classes": dict(
                text=self.change('loss = "softmax_cross_entropy"', 'loss = "mse"').replace(
                    "samples = 50", 'samples = 50\naugment = [{ op = "flip" }, { op = "mixup" }]'),
                patterns=[r"tiny.toml:\d+: data.augment\[1\].op, got \"mixup\" \(string\) expected none that mixes "
                          "classes with losses that know none. use loss = "]),
            "share of no distribution": dict(
                text=self.change("samples = 50", 'samples = 50\naugment = [{ op = "mixup", alpha = nan }]'),
                patterns=[r"tiny.toml:\d+: data.augment\[0\].alpha, got nan"]),
            "targets of another source": dict(
                text=self.change('loss = "softmax_cross_entropy"', 'loss = { op = "mse", target = "targets" }')
                .replace('source = "synthetic"\nsamples = 50\nvalidation_samples = 13',
                         'source = "cifar"\npath = "nowhere"'),
                patterns=[r'data.source: got "cifar" for a loss with target = "targets" expected one of synthetic, hdf5, '
                          "npy, npz. the other sources have labels alone"]),
            "bad rate": dict(text=self.change("rate = 0.25", "rate = 1.0"), patterns=["rate"]),
        }
        for name, case in cases.items():
            with self.subTest(name):
                patterns = case.pop("patterns")
                self.expect(*patterns, **case)

    def test_command_line(self):
        cases = {
            "unknown option": (["--stratgy", "data"], [r'command line: option, got "--stratgy" expected a known one. '
                                                       r"did you mean --strategy\?"]),
            "misspelt option": (["--evl"], [r'got "--evl" expected a known one. did you mean --eval\?']),
            "option like none": (["--frobnicate=3"], [r'got "--frobnicate" expected a known one. known are --help, ']),
            "option without its value": (["--set"], ["--set: got nothing expected KEY=VALUE"]),
            "option given twice": (["--strategy", "data", "--strategy", "model"],
                                   ["--strategy: got it 2 times expected it once"]),
            "setting without --set": (["train.steps=3"], [r'command line: argument, got "train.steps=3" expected no more '
                                                          r"than one model file. did you mean --set train.steps=3\?"]),
            "two models": (["more.toml"], ['command line: argument, got "more.toml" expected no more than one model file']),
            "unknown strategy": (["--strategy", "dta"], ["dta", "data"]),
            "bad override": (["--set", "train.steps"], ["--set", "train.steps"]),
            "unknown override": (["--set", "train.stps=3"], ["stps", "steps"]),
            "mistyped override": (["--set", "train.steps=many"], ["--set", "many"]),
            "no steps": (["--set", "train.steps=0"], ["steps", "0"]),
            "mesh does not fit": (["--set", "parallel.mesh=[2,2]"], ["mesh", "2"]),
            "unknown pin": (["--set", 'parallel.pins={"dense_9.weight"="split(0)"}'], ["dense_9.weight"]),
            "bad pin": (["--set", 'parallel.pins={"dense_1.weight"="slit(0)"}'], ["slit"]),
            "pin on a missing dim": (["--set", 'parallel.pins={"dense_1.weight"="split(7)"}'], ["dense_1.weight"]),
            "trace of no run": (["--trace", "--dry-run"], ["--trace: got --dry-run as well expected a training run"]),
            "verify and resume": (["--verify", "--resume"], ["--verify", "--resume"]),
            "verify and dry run": (["--verify", "--dry-run"], ["--verify", "--dry-run"]),
            "dry run and resume": (["--dry-run", "--resume"], ["--dry-run", "--resume"]),
            "unknown pass": (["--set", 'parallel.skip_passes=["x"]'], ["parallel.skip_passes", "x"]),
            "not a checkpoint": ([f"--resume={INPUTS}/data/digits.h5"], ["digits.h5", "no checkpoint"]),
            "missing machine": (["--machine", "m.toml"], ["m.toml: file, got nothing expected a readable file"]),
            "unknown machine": (["--machine", "dgx-h1000"], ['machine.file, got "dgx-h1000" expected a file or the name of a '
                                                             "machine", 'did you mean "dgx-h100"']),
            "time of no machine": (["--set", "parallel.objective=time"], ["parallel.objective", "without machine.file"]),
            "too large": (["--set", "train.steps=99999999999999999999"], ["--set", r"\(too large\)", "integer"]),
            "missing plan": (["--set", "parallel.plan=nowhere.json"], ["nowhere.json"]),
            "missing checkpoint": (["--resume=nowhere.h5"], ["nowhere.h5"]),
            "checkpoint without =": (["--resume", "nowhere.h5"], ['argument, got "nowhere.h5" expected', "--resume=PATH"]),
            "microbatches do not fit": (["--set", "train.microbatches=7"],
                                        ["train.microbatches, got 7", "a divisor of data.batch"]),
            "microbatches of no number": (["--set", "train.microbatches=some"],
                                          ['train.microbatches, got "some"', "expected auto"]),
            "unknown recomputation": (["--set", "train.recompute=segment"],
                                      ['train.recompute, got "segment"', "auto, none, cheap, segments", "segments"]),
            "more than the memory": (["--set", "data.batch=1000000000"],
                                     [r"host \S+: memory, got [\d.]+ GB needed by its 2 ranks expected at most "
                                      r"[\d.]+ GB, all it has. use a smaller data.batch"]),
            "eval and verify": (["--eval", "--verify"], ["--eval: got --verify as well"]),
            "eval twice": (["--eval", "--eval"], ["--eval: got it 2 times expected it once"]),
            "missing weights": (["--set", "train.init_from=nowhere.h5"], ["nowhere.h5"]),
            "no checkpoint named": (["--resume="], ["--resume=: got no path"]),
        }
        for name, (arguments, patterns) in cases.items():
            with self.subTest(name):
                self.expect(*patterns, arguments=arguments)

    def test_no_model_file(self):
        for arguments, said in (
            ((), "command line: model, got nothing expected a model file (TOML). --help lists the options"),
            (("--dry-rum",), 'command line: option, got "--dry-rum" expected a known one. did you mean --dry-run?'),
        ):
            done = self.run_program(2, *arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            errors = [line for line in done.stderr.splitlines() if line.startswith("soybean_train:")]
            self.assertEqual(errors, [f"soybean_train: {said}"])

    def digits(self, **data):
        return (INPUTS / "digits.toml").read_text().replace("data/digits.h5", data.get("path", "digits.h5"))

    def test_data_files(self):
        import h5py
        import numpy

        source = INPUTS / "data" / "digits.h5"
        text = self.digits()
        digits = self.folder / "digits.h5"

        with self.subTest("missing"):
            self.expect("digits.h5", text=text)
        with self.subTest("truncated"):
            digits.write_bytes(source.read_bytes()[:50000])
            self.expect("digits.h5", text=text)
        with self.subTest("not HDF5"):
            digits.write_text("hello")
            self.expect("digits.h5", text=text)
        with self.subTest("a folder"):
            digits.unlink()
            digits.mkdir()
            self.expect("digits.h5", text=text)
            digits.rmdir()

        def damaged(change):
            shutil.copy(source, digits)
            with h5py.File(digits, "r+") as file:
                change(file)

        def out_of_range(file):
            file["train/labels"][7] = 10

        def negative(file):
            file["validation/labels"][3] = -1

        def no_labels(file):
            del file["train/labels"]

        def other_shape(file):
            del file["train/inputs"]
            file["train/inputs"] = numpy.zeros((1437, 1, 9, 8), "u1")

        def fewer_labels(file):
            del file["train/labels"]
            file["train/labels"] = numpy.zeros(1436, "i4")

        def no_samples(file):
            for name, shape in (("inputs", (0, 1, 8, 8)), ("labels", (0,))):
                del file[f"train/{name}"]
                file.create_dataset(f"train/{name}", shape, "i4")

        def virtual(file, source):
            layout = h5py.VirtualLayout((1437, 1, 8, 8), "u1")
            layout[:] = h5py.VirtualSource(source, "inputs", (1437, 1, 8, 8))
            del file["train/inputs"]
            file.create_virtual_dataset("train/inputs", layout)

        def missing_source(file):
            virtual(file, "nowhere.h5")

        def source_without_dataset(file):
            virtual(file, "empty.h5")
            h5py.File(self.folder / "empty.h5", "w").close()

        def text_labels(file):
            del file["train/labels"]
            file["train/labels"] = numpy.array([b"seven"] * 1437)

        for name, change, patterns in (
            ("label out of range", out_of_range, ["train/labels", "10"]),
            ("negative label", negative, ["validation/labels", "-1"]),
            ("no labels", no_labels, ["train/labels"]),
            ("other shape", other_shape, ["train/inputs", "1x9x8", "1x8x8"]),
            ("fewer labels", fewer_labels, ["1436", "1437"]),
            ("no samples", no_samples, ["train/inputs", "0"]),
            ("virtual without its file", missing_source, ["train/inputs", "virtual", "nowhere.h5"]),
            ("virtual without its dataset", source_without_dataset, ["train/inputs", "virtual", "empty.h5"]),
            ("labels are text", text_labels, ["train/labels"]),
        ):
            with self.subTest(name):
                damaged(change)
                self.expect("digits.h5", *patterns, text=text)

    def test_run_dir(self):
        (self.folder / "file").write_text("")
        with self.subTest("a file"):
            self.expect("run.dir", "file", arguments=["--set", "run.dir=file"])
        with self.subTest("under a file"):
            self.expect("run.dir", arguments=["--set", "run.dir=file/run"])
        with self.subTest("not writable"):
            self.expect("run.dir", arguments=["--set", "run.dir=/proc/soybean"])

    def test_results_that_can_not_be_written(self):
        model = self.model()
        for program, arguments in (
            ("soybean_plan", ["--ranks", "2"]),
            ("soybean_plan", ["--ranks", "2", "--json"]),
            ("soybean_train", ["--dry-run"]),
            ("soybean_train", ["--dry-run", "--json"]),
            ("soybean_train", ["--json"]),
        ):
            with self.subTest(program=program, arguments=arguments), open("/dev/full", "w") as full:
                done = subprocess.run([str(BIN / program), str(model), *arguments], stdout=full, stderr=subprocess.PIPE,
                                      text=True, cwd=self.folder, timeout=120)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("standard output: can not be written, got 'No space left on device'", done.stderr)

    def test_errors_that_can_not_be_written(self):
        for program, arguments in (("soybean_plan", ["--ranks", "2"]), ("soybean_train", [])):
            with self.subTest(program=program), open("/dev/full", "w") as full:
                done = subprocess.run([str(BIN / program), "nowhere.toml", *arguments], stdout=subprocess.PIPE, stderr=full,
                                      text=True, cwd=self.folder, timeout=120)
                self.assertEqual((done.returncode, done.stdout), (2, ""))

    def test_help_and_version(self):
        for ranks in (0, 2):
            done = self.run_program(ranks, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stdout.count("Usage:"), 1)
            self.assertIn("src/config/README.md", done.stdout)
            done = self.run_program(ranks, "--version")
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r"^soybean \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
