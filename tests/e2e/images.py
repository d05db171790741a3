"""Training on a folder of images: any number of ranks follows the serial run, damaged images end it by name."""
import re
import unittest

import numpy

from support import Case

NET = """
[model]
input = [3, 8, 8]
layers = [
  { op = "conv2d", channels = 4, kernel = 3, padding = 1, activation = "relu" },
  { op = "max_pool", kernel = 2 },
  { op = "flatten" },
  { op = "dense", units = 3 },
]
loss = "softmax_cross_entropy"
[data]
source = "image_folder"
path = "pictures"
batch = 7
normalise = { scale = 0.00392156862745098, mean = [0.5, 0.4, 0.3], std = [0.25] }
[train]
epochs = 3
optimizer = { lr = 0.1 }
precision = "fp64"
"""


class Images(Case):
    def fill(self, count, split="train"):
        """`count` images of three classes that differ in colour."""
        from PIL import Image

        random = numpy.random.RandomState(len(split))
        for i in range(count):
            colour = numpy.eye(3)[i % 3] * 120 + 60
            pixels = (colour + random.randint(-60, 60, (10, 9, 3))).clip(0, 255).astype("u1")
            path = self.folder / "pictures" / split / "rgb"[i % 3] / f"{i:04}.{'png' if i % 2 else 'jpg'}"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(path)

    def test_every_number_of_ranks_follows_the_serial_run(self):
        self.fill(30)
        self.fill(10, "val")
        model = self.model(NET)
        self.train(1, model, run_dir="serial")
        serial = self.losses("serial")
        self.assertLess(serial[-1], 0.7 * serial[0])
        self.assertGreater(self.summary("serial")["validation"]["accuracy"], 0.8)
        for ranks, strategy in ((2, "data"), (3, "model"), (4, "auto")):
            with self.subTest(ranks=ranks, strategy=strategy):
                self.train(ranks, model, "--strategy", strategy)
                self.assert_close(self.losses(), serial, 1e-9, f"{strategy} on {ranks}")
                self.assertEqual(self.summary()["validation"]["accuracy"],
                                 self.summary("serial")["validation"]["accuracy"])

    def expect_error(self, ranks, run_dir, pattern):
        done = self.train(ranks, self.model(NET), run_dir=run_dir, expect=2)
        errors = [line for line in done.stderr.splitlines() if line.startswith("soybean_train:")]
        self.assertIn(len(errors), range(1, ranks + 1), done.stderr)  # ranks that read it at the same moment
        for error in errors:
            self.assertRegex(error, pattern)

    def test_damaged_images_are_named(self):
        self.fill(1600)
        early, late = sorted((self.folder / "pictures/train/b").iterdir())[:2]  # the second is not looked at before
        whole = late.read_bytes()
        late.write_bytes(whole[: len(whole) // 2])
        for ranks in (1, 2):
            self.expect_error(ranks, "run", re.escape(f"/train/b/{late.name}: can not be decoded"))
            self.assertTrue((self.folder / "run").exists(), "it is found while training")
        early.write_bytes(b"")
        for ranks in (1, 2):
            self.expect_error(ranks, "other", re.escape(f"/train/b/{early.name}: got an empty file"))
            self.assertFalse((self.folder / "other").exists(), "it is found before training")


if __name__ == "__main__":
    unittest.main(verbosity=2)
