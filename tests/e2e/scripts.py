"""The scripts around training: packing images, drawing runs, measuring how they scale, sweeps."""
import csv
import json
import os
import shutil
import subprocess
import sys
import unittest

import numpy

from support import ROOT, TINY, Case

QUICK = ("--set", "train.precision=fp32", "--set", "train.steps=8")


class Scripts(Case):
    def script(self, path, *arguments, expect=0):
        done = subprocess.run([sys.executable, str(ROOT / path), *map(str, arguments)], cwd=self.folder,
                              capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def assert_picture(self, name):
        from PIL import Image

        with Image.open(self.folder / name) as image:
            self.assertGreater(image.width, 800)
            self.assertGreater(len(image.convert("RGB").getcolors(2**24)), 100, "it is empty")


class ImagesToHdf5(Scripts):
    def fill(self):
        from PIL import Image

        random = numpy.random.RandomState(2)
        for split, count in (("train", 9), ("val", 4)):
            for i in range(count):
                path = self.folder / "set" / split / ("cat", "dog", "Eel")[i % 3] / f"{i}.{'jpg' if i % 2 else 'png'}"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(random.randint(0, 256, (12 + i, 20 - i, 3)).astype("u1")).save(path)

    def samples(self, source, path, split, shape, extra=""):
        config = self.model(f'[model]\ninput = {list(shape)}\n[data]\nsource = "{source}"\npath = "{path}"\nbatch = 1\n'
                            f"{extra}\n[train]\nsteps = 1\n", "read.toml")
        done = self.run_program(0, config, 3, split, self.folder / "out.bin", program="dump_samples")
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.folder / "out.bin").read_bytes()

    def test_packs_what_the_folder_would_give(self):
        self.fill()
        for name, options, shape, extra in (("a.h5", ["--size", 8], (3, 8, 8), ""),
                                            ("b.h5", ["--size", 6, 9, "--resize", 11, "--grey"], (1, 6, 9), "resize = 11")):
            done = self.script("scripts/images_to_hdf5", "set", name, "--workers", 2, *options)
            self.assertIn(f"{name}: 9 train, 4 validation, 3 classes", done.stdout)
            self.assertIn("[##############################] 9/9", done.stderr)
            for split in ("train", "validation"):
                self.assertEqual(self.samples("hdf5", name, split, shape),
                                 self.samples("image_folder", "set", split, shape, extra))
        self.assertEqual(sorted(p.name for p in self.folder.glob("*.h5*")), ["a.h5", "b.h5"])

    def test_refuses_by_name(self):
        def refuse(text, *arguments):
            self.assertIn(text, self.script("scripts/images_to_hdf5", *arguments, expect=1).stderr)
            self.assertFalse((self.folder / "o.h5").exists() or (self.folder / "o.h5.tmp").exists())

        refuse("nowhere/train: got nothing expected a folder", "nowhere", "o.h5", "--size", 8)
        self.fill()
        refuse("--resize: got 7 expected at least 8", "set", "o.h5", "--size", 8, "--resize", 7)
        refuse("read.h5: got a file that is already there", "set", self.model("", "read.h5"), "--size", 8)
        (self.folder / "set/train/cat/3.jpg").write_bytes(b"hello")
        refuse("set/train/cat/3.jpg: can not be decoded", "set", "o.h5", "--size", 8)
        (self.folder / "set/val/bird").mkdir()
        refuse("set/val/bird: got a class that is not among those to train with", "set", "o.h5", "--size", 8)
        shutil.rmtree(self.folder / "set/val")
        (self.folder / "set/train/empty").mkdir()
        refuse("set/train/empty: got a folder without images", "set", "o.h5", "--size", 8)


class PlotRun(Scripts):
    def test_draws_runs(self):
        model = self.model()
        for name, seed in (("lr=0.1", 1), ("b", 2)):
            self.train(1, model, *QUICK, "--set", f"train.seed={seed}", run_dir=f"'runs/{name}'")
        self.script("scripts/plot_run", "runs/lr=0.1", "second=runs/b/metrics.jsonl", "--out", "two.png")
        self.assert_picture("two.png")
        self.script("scripts/plot_run", "runs/b", "--log", "--smooth", 3)
        self.assert_picture("curves.png")

    def test_refuses_by_name(self):
        def refuse(text):
            self.assertIn(text, self.script("scripts/plot_run", "m.jsonl", expect=1).stderr)

        refuse("plot_run: m.jsonl: can not be read, got 'No such file or directory'")
        for lines, text in (("", "m.jsonl: got no steps expected at least one"),
                            ('{"step": 1, "loss": 1}\nhello\n', "m.jsonl:2: got a line that is no record"),
                            ("[1]\n", "m.jsonl:1: got a line that is no record")):
            self.model(lines, "m.jsonl")
            refuse(text)


class PlotSweep(Scripts):
    def sweep(self, name, *arguments):
        done = self.run_program(0, *arguments, "--csv", program="soybean_plan")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.model(done.stdout, name)

    def test_draws_sweeps(self):
        model = self.model()
        self.sweep("bytes.csv", model, "--sweep", "1..8")
        self.sweep("times.csv", model, "--sweep", "1..4", "--machine", "laptop")
        self.script("scripts/plot_sweep", "bytes.csv")
        self.assert_picture("sweep.png")
        self.script("scripts/plot_sweep", "times.csv", "other=bytes.csv", "--out", "both.png")
        self.assert_picture("both.png")

    def test_refuses_by_name(self):
        for text, words in ((None, "s.csv: can not be read, got 'No such file or directory'"), ("", "s.csv: got no rows"),
                            ("ranks,bytes\n1,2\n", "s.csv: got other columns or values")):
            if text is not None:
                self.model(text, "s.csv")
            self.assertIn(words, self.script("scripts/plot_sweep", "s.csv", expect=1).stderr)


class Scaling(Scripts):
    def test_measures_and_draws(self):
        model = self.model(TINY.replace("fp64", "fp32"))
        done = self.script("perf/scaling", model, "--ranks", 1, 3, "--strategies", "data", "--steps", 6, "--set",
                           "data.batch=6")
        self.assertIn("scaling.csv, scaling.png", done.stdout)
        with open(self.folder / "scaling.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(r["mode"], r["strategy"], r["ranks"], r["batch"]) for r in rows],
                         [("strong", "data", "1", "6"), ("strong", "data", "3", "6"), ("weak", "data", "1", "6"),
                          ("weak", "data", "3", "18")])
        for row in rows:
            self.assertAlmostEqual(float(row["samples_per_second"]), int(row["batch"]) / float(row["seconds"]),
                                   delta=1e-3 * float(row["samples_per_second"]))
            self.assertEqual(float(row["bytes_moved"]) > 0, row["ranks"] == "3")
        self.assert_picture("scaling.png")
        self.script("perf/scaling", "--csv", "scaling.csv", "--out", "again")
        self.assert_picture("again.png")
        self.assertEqual([p.name for p in self.folder.glob("scaling-*")], [])

    def test_refuses_by_name(self):
        for arguments, text in ((["nowhere.toml"], "scaling: nowhere.toml: can not be read"),
                                ([], "got both or none of MODEL.toml and --csv"),
                                (["--csv", "nowhere.csv"], "scaling: nowhere.csv: can not be read"),
                                ([self.model("[data]\n")], "got no data.batch expected one")):
            self.assertIn(text, self.script("perf/scaling", *arguments, expect=1).stderr)
        done = self.script("perf/scaling", self.model(), "--ranks", 1, "--modes", "weak", "--set", "train.stps=3", expect=1)
        self.assertIn("left out: soybean_train: ", done.stdout)
        self.assertIn("got no run that ended well", done.stderr)


def namespaces():
    """Whether hosts can be emulated here: root, and a kernel and container that let it make namespaces."""
    name = f"sbtest{os.getpid()}"
    made = os.geteuid() == 0 and shutil.which("ip") and subprocess.run(["ip", "netns", "add", name], check=False).returncode == 0
    return bool(made) and subprocess.run(["ip", "netns", "del", name], check=False).returncode == 0


class EmulatedCluster(Scripts):
    @unittest.skipUnless(namespaces(), "no network namespaces here")
    def test_ranks_of_several_hosts_move_the_planned_bytes(self):
        self.script("perf/cluster_study", self.model(), "--hosts", 3, "--rate", "500mbit", "--batch", 12, "--steps", 40,
                    "--repeats", 1, "--strategies", "data", "model", "--out", "study")
        result = json.loads((self.folder / "study.json").read_text())
        self.assertEqual(list(result["contestants"]), ["data", "model"])
        for name, row in result["contestants"].items():
            self.assertGreater(row["wire_bytes"], row["bytes_moved"], name)  # headers, metrics, what ranks tell each other
            self.assertGreater(row["seconds"], 0)
        self.assertIn("data is ", (self.folder / "study.md").read_text())
        self.assert_picture("study.png")
        self.script("perf/cluster_study", "--json", "study.json", "--out", "again")
        self.assertEqual((self.folder / "again.md").read_text(), (self.folder / "study.md").read_text())
        self.assert_picture("again.png")
        left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(left, r"sb\d+h\d")

    def test_refuses_by_name(self):
        for arguments, text in ((("--hosts", 0, "--", "true"), "got 0 hosts of 1 ranks expected 1 to 1000 hosts"),
                                (("--hosts", 2), "got no command expected one after --"),
                                (("--hosts", 2, "--rate", "fast", "--", "true"), "--rate: got 'fast' expected a number with gbit")):
            self.assertIn(text, self.script("perf/emulated_cluster", *arguments, expect=1).stderr)
        for arguments, text in ((("none.toml", "--batch", 8), "none.toml: can not be read expected a model file"),
                                ((), "got no model or no --batch expected both"),
                                (("--json", "none.json"), "none.json: can not be read expected a study's JSON"),
                                ((self.model(), "--batch", 8, "--steps", 1), "expected at least 2 steps")):
            self.assertIn(text, self.script("perf/cluster_study", *arguments, expect=1).stderr)


class Growth(Scripts):
    def test_measures_both_studies(self):
        done = self.script("perf/growth", "--quick", "--repeats", 1, "--out", "growth.csv")
        with open(self.folder / "growth.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(r["study"], r["network"], r["layers"], r["ranks"]) for r in rows],
                         [("layers", "dense", "4", "8"), ("layers", "dense", "8", "8"), ("layers", "vgg", "6", "8"),
                          ("layers", "vgg", "10", "8"), ("layers", "resnet", "6", "8"), ("layers", "resnet", "10", "8"),
                          ("ranks", "dense", "8", "8"), ("ranks", "dense", "8", "16"), ("ranks", "vgg", "10", "8"),
                          ("ranks", "vgg", "10", "16"), ("ranks", "resnet", "10", "8"), ("ranks", "resnet", "10", "16")])
        for before, row in zip(rows, rows[1:]):
            self.assertEqual(row["status"], "optimal")
            if row["growth"]:
                growth = float(row["seconds"]) / float(before["seconds"])  # of figures rounded to milliseconds
                self.assertAlmostEqual(float(row["growth"]), growth, delta=0.05 * growth + 0.01)
            seconds = float(row["seconds"])  # the table rounds the same figure, not this one
            self.assertTrue(any(f"{seconds + d:.2f}" in done.stdout for d in (-1e-3, 0, 1e-3)), row)

    def test_ends_where_it_takes_too_long(self):
        self.script("perf/growth", "--quick", "--repeats", 1, "--limit", 0)
        with open(self.folder / "growth.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([r["growth"] for r in rows], [""] * 6)


class Sweep(Scripts):
    def task(self, number, *arguments, expect=0):
        environment = {**os.environ, "SLURM_SUBMIT_DIR": str(ROOT), "SLURM_JOB_ID": "1",
                       "SOYBEAN_LAUNCH": f"{ROOT}/scripts/mpirun -n 2",
                       "SOYBEAN_BIN": os.environ.get("SOYBEAN_BIN", str(ROOT / "build/bin"))}
        if number:
            environment["SLURM_ARRAY_TASK_ID"] = str(number)
        done = subprocess.run(["bash", str(ROOT / "slurm/sweep.sbatch"), *map(str, arguments)], cwd=self.folder,
                              env=environment, capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def test_every_task_takes_its_line(self):
        model = self.model()
        lines = self.model("# rates\n--set train.optimizer.lr=0.25\n\n--set 'train.steps=3' --strategy model\n", "rates.txt")
        for number in (1, 2):
            self.task(number, model, lines, *QUICK)
        self.assertIn("lr = 0.25", (self.folder / "runs/rates/1/config.toml").read_text())
        self.assertEqual(len(self.losses("runs/rates/1")), 8)
        self.assertEqual(len(self.losses("runs/rates/2")), 3)
        self.assertEqual(self.summary("runs/rates/2")["strategy"], "model")
        self.assertIn("task 3, got a file of 2 lines", self.task(3, model, lines, expect=2).stderr)
        self.assertIn("sbatch --array=1-2", self.task(0, model, lines, expect=2).stderr)
        self.assertIn("nowhere.txt, got no file", self.task(1, model, "nowhere.txt", expect=2).stderr)
        self.assertIn("usage: sbatch", self.task(1, model, expect=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
