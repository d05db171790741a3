"""Augmented training: any number of ranks and threads follows the serial run, a resumed run the one that was not stopped."""
import unittest

from support import TINY, Case

AUGMENTED = TINY.replace('samples = 50', '''samples = 50
augment = [
  { op = "crop", padding = [1, 2] },
  { op = "resized_crop", scale = [0.4, 1] },
  { op = "flip" },
  { op = "cutout", size = 2 },
]
normalise = { mean = [0.1, 0.2], std = [1.5] }''')


class Augmentation(Case):
    def test_ranks_and_threads_do_not_matter(self):
        model = self.model(AUGMENTED)
        self.train(1, model, run_dir="serial")
        serial = self.losses("serial")
        self.train(1, model, "--set", "data.augment=[]", run_dir="plain")
        self.assertNotEqual(self.losses("plain"), serial)
        for ranks, strategy, threads in ((2, "model", 1), (3, "data", 3), (5, "auto", 2), (8, "kcut", 1)):
            with self.subTest(ranks=ranks, strategy=strategy):
                self.train(ranks, model, "--strategy", strategy, "--set", f"data.threads={threads}")
                self.assert_close(self.losses(), serial, 1e-9, f"{strategy} on {ranks}")
        self.train(1, model, "--set", "data.threads=4", "--set", "data.prefetch=0", run_dir="threads")
        self.assertEqual(self.losses("threads"), serial)

    def test_a_resumed_run_goes_on_bit_by_bit(self):
        model = self.model(AUGMENTED)
        self.train(1, model, run_dir="whole")
        self.train(1, model, "--set", "train.steps=5")
        self.train(1, model, "--resume")
        self.assertEqual(self.losses(), self.losses("whole"))

    def test_changed_data_is_noted_when_a_run_goes_on(self):
        model = self.model(AUGMENTED)
        self.train(1, model, "--set", "train.steps=2")
        done = self.train(2, model, "--set", "train.steps=3", "--set", "data.threads=2", "--resume")
        self.assertNotIn("note:", done.stdout)
        done = self.train(2, model, "--set", "train.steps=4", "--set", "data.shuffle=false", "--set",
                          "data.normalise.std=[2]", "--resume")
        self.assertIn("note: data.normalise.std was [1.5] and is [2.0]; data.shuffle was true and is false. from here on the "
                      "samples are not those the run would have gone on with\n", done.stdout)

    def test_the_resolved_configuration_gives_the_same_run(self):
        self.train(1, self.model(AUGMENTED), run_dir="first")
        self.train(1, self.folder / "first" / "config.toml", run_dir="second")
        self.assertEqual(self.losses("second"), self.losses("first"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
