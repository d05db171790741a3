"""AlexNet at batch 256 and VGG-16 at batch 64, at full size on 8 ranks: one step moves exactly the planned bytes.

Takes 10 to 22 GB of memory and some minutes; part of scripts/test --full.
"""
import unittest

from support import INPUTS, Case


def available_gib():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) / 2**20
    return 0


class FullSize(Case):
    def one_step(self, name, batch, strategy, need_gib):
        if available_gib() < need_gib:
            self.skipTest(f"needs {need_gib} GiB of free memory")
        done = self.run_program(
            8, INPUTS / f"{name}.toml", "--strategy", strategy, "--set", f"data.batch={batch}", "--set", "train.steps=1",
            "--set", "model.bias=false", "--set", "data.validation_samples=0", "--set", "data.prefetch=0",
            "--set", "run.dir=run", timeout=3000)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        summary = self.summary()
        self.assertEqual(summary["bytes_moved_per_step"], summary["bytes_planned_per_step"])
        self.assertGreater(summary["bytes_moved_per_step"], 0)
        print(name, strategy, summary)

    def test_alexnet_auto(self):
        self.one_step("alexnet", 256, "auto", 12)

    def test_alexnet_data(self):
        self.one_step("alexnet", 256, "data", 16)

    def test_vgg16_auto(self):
        self.one_step("vgg16", 64, "auto", 20)

    def test_vgg16_data(self):
        self.one_step("vgg16", 64, "data", 22)


if __name__ == "__main__":
    unittest.main(verbosity=2)
