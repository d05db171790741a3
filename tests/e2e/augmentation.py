"""Augmented training: any number of ranks and threads follows the serial run, a resumed run the one that was not stopped.
Mixed samples against NumPy."""
import math
import struct
import unittest

import numpy

from support import TINY, Case, tensors

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


MIXED = TINY.replace("samples = 50", """samples = 50
augment = [
  { op = "flip" },
  { op = "cutout", size = 2 },
  { op = "mixup", alpha = 0.4, p = 0.5 },
  { op = "cutmix", p = 0.8 },
]""").replace('loss = "softmax', 'loss = { op = "softmax').replace('entropy"\n', 'entropy", label_smoothing = 0.1 }\ntop_k = 2\n')

MASK = 2**64 - 1


def philox(counter, key):
    """Philox4x32-10 of Salmon et al., as NumPy has it for 4x64 bits alone."""
    a, b, c, d = counter
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = q >> 32 ^ b ^ key[0], q & 0xFFFFFFFF, p >> 32 ^ d ^ key[1], p & 0xFFFFFFFF
        key = key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF
    return a, b, c, d


def uniforms(seed, place, sample, epoch):
    """The random numbers of one step of data.augment for one sample in one epoch."""
    name = 0xCBF29CE484222325
    for char in b"augmentation":
        name = (name ^ char) * 0x100000001B3 & MASK
    name += place << 16
    while True:
        key = name * 0x9E3779B97F4A7C15 & MASK
        key = (key ^ key >> 32) * 0xD6E8FEB86659FD93 & MASK
        key ^= key >> 32 ^ seed
        words = philox((sample & 0xFFFFFFFF, sample >> 32, epoch, 0), (key & 0xFFFFFFFF, key >> 32))
        yield ((words[1] << 32 | words[0]) >> 11) / 2**53
        name += 1


def log_gamma_variate(shape, draws):
    """Marsaglia and Tsang."""
    more = 0
    if shape < 1:
        more, shape = math.log(1 - next(draws)) / shape, shape + 1
    d = shape - 1 / 3
    while True:
        radius = math.sqrt(-2 * math.log(1 - next(draws)))
        x = radius * math.cos(2 * math.pi * next(draws))
        v, u = (1 + x / math.sqrt(9 * d)) ** 3, 1 - next(draws)
        if v > 0 and math.log(u) < x * x / 2 + d - d * v + d * math.log(v):
            return math.log(d * v) + more


class Mixed(Case):
    """mixup and cutmix on samples whose labels are their numbers."""

    def make(self, shape, steps, batch=7, count=20, classes=20):
        """Writes a data set and a model of one dense layer that mixes it."""
        self.random = numpy.random.RandomState(4)
        self.inputs = self.random.randn(count, *shape)
        self.labels = numpy.arange(count) % classes
        held = self.random.randn(5, *shape), self.random.randint(0, classes, 5)
        numpy.savez(self.folder / "set.npz", x_train=self.inputs, y_train=self.labels, x_val=held[0], y_val=held[1])
        self.held, self.batch, self.classes = held, batch, classes
        flatten = '{ op = "flatten" }, ' if len(shape) == 3 else ""
        return self.model(f"""
[model]
input = {list(shape)}
layers = [{flatten}{{ op = "dense", name = "fc", units = {classes} }}]
loss = {{ op = "softmax_cross_entropy", label_smoothing = 0.1 }}
[data]
source = "npz"
path = "set.npz"
batch = {batch}
shuffle = false
augment = [{steps}]
[train]
steps = 12
precision = "fp64"
seed = 9
optimizer = {{ name = "sgd", lr = 0.2 }}
""")

    def mix(self, sample, epoch, steps):
        """(partner, share, window) of a sample by `steps`, a list of (op, alpha, p) that are at these places."""
        height, width = self.inputs.shape[-2:]
        for place, (op, alpha, p) in enumerate(steps):
            draws = uniforms(9, place, sample, epoch)
            if next(draws) >= p:
                continue
            partner = int(next(draws) * len(self.inputs))
            a, b = log_gamma_variate(alpha, draws), log_gamma_variate(alpha, draws)
            share = 1 / (1 + math.exp(b - a))
            if op == "mixup":
                return partner, share, None
            up, left = int(height * math.sqrt(1 - share)) // 2, int(width * math.sqrt(1 - share)) // 2
            y, x = int(next(draws) * height), int(next(draws) * width)
            rows = slice(max(0, y - up), min(height, y + up))
            columns = slice(max(0, x - left), min(width, x + left))
            cut = numpy.zeros((height, width))
            cut[rows, columns] = 1
            return partner, 1 - cut.mean(), (rows, columns)
        return sample, 1.0, None

    def expected(self, steps, number):
        """Inputs, labels, partners and shares of the first `number` batches."""
        rows = []
        for at in range(number * self.batch):
            epoch, sample = divmod(at, len(self.inputs))
            partner, share, window = self.mix(sample, epoch, steps)
            value = self.inputs[sample].copy()
            if window:
                value[(slice(None), *window)] = self.inputs[partner][(slice(None), *window)]
            else:
                value = share * value + (1 - share) * self.inputs[partner]
            rows.append((value, self.labels[sample], self.labels[partner], share))
        return [numpy.array(column) for column in zip(*rows)]

    def dump(self, model, number):
        out = self.folder / "batches.bin"
        done = self.run_program(0, model, self.classes, "steps", out, number, program="dump_samples")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        raw = out.read_bytes()
        count, dims = struct.unpack_from("<2q", raw)
        at = 16 + 8 * dims
        values = numpy.frombuffer(raw, "f8", self.inputs[0].size * count, at).reshape(count, *self.inputs.shape[1:])
        at += values.nbytes
        labels, partners = numpy.frombuffer(raw, "i4", 2 * count, at).reshape(2, count)
        return values, labels, partners, numpy.frombuffer(raw, "f8", count, at + 8 * count)

    def test_batches_against_numpy(self):
        for shape, text, steps in (
                ((3, 6, 9), '{ op = "mixup", alpha = 0.3 }', [("mixup", 0.3, 1)]),
                ((3, 6, 9), '{ op = "cutmix" }', [("cutmix", 1.0, 1)]),
                ((1, 8, 5), '{ op = "mixup", alpha = 2.5, p = 0.4 }, { op = "cutmix", alpha = 0.6, p = 0.7 }',
                 [("mixup", 2.5, 0.4), ("cutmix", 0.6, 0.7)]),
                ((1, 1, 11), '{ op = "mixup" }', [("mixup", 1.0, 1)])):
            with self.subTest(steps=text):
                model = self.make(shape, text)
                for got, wanted in zip(self.dump(model, 9), self.expected(steps, 9)):
                    self.assertLess(abs(got - wanted).max(), 1e-12)
                mixed = self.expected(steps, 9)
                self.assertGreater((mixed[1] != mixed[2]).sum(), 30)
                if steps[-1][2] < 1:
                    self.assertGreater((mixed[3] == 1).sum(), 5)

    def loss(self, logits, labels, partners, shares):
        goal = numpy.zeros_like(logits)
        rows = numpy.arange(len(logits))
        numpy.add.at(goal, (rows, labels), shares)
        numpy.add.at(goal, (rows, partners), 1 - shares)
        goal = 0.9 * goal + 0.1 / self.classes
        shifted = logits - logits.max(1, keepdims=True)
        logs = shifted - numpy.log(numpy.exp(shifted).sum(1, keepdims=True))
        return -(goal * logs).sum(1).mean(), (numpy.exp(logs) - goal) / len(logits)

    def test_training_against_numpy(self):
        """From the weights after the first step on: softmax regression by gradient descent on mixed labels."""
        for classes in (5, 256):  # the latter in steps
            with self.subTest(classes=classes):
                steps = [("mixup", 0.5, 0.5), ("cutmix", 1.0, 1)]
                model = self.make((2, 5, 4), '{ op = "mixup", alpha = 0.5, p = 0.5 }, { op = "cutmix" }', classes=classes)
                self.train(1, model, "--set", "train.steps=1", run_dir="first")
                found = tensors(self.folder / "first" / "checkpoints" / "latest.h5")
                weight, bias = (found[f"parameters/fc.{name}"].copy() for name in ("weight", "bias"))
                inputs, labels, partners, shares = self.expected(steps, 12)
                wanted, right = [], []
                for step in range(1, 12):
                    rows = slice(step * self.batch, (step + 1) * self.batch)
                    x = inputs[rows].reshape(self.batch, -1)
                    loss, slope = self.loss(x @ weight.T + bias, labels[rows], partners[rows], shares[rows])
                    wanted.append(loss)
                    right.append(((x @ weight.T + bias).argmax(1) == labels[rows]).mean())
                    weight -= 0.2 * slope.T @ x
                    bias -= 0.2 * slope.sum(0)
                x = self.held[0].reshape(5, -1)
                held, _ = self.loss(x @ weight.T + bias, self.held[1], self.held[1], numpy.ones(5))
                for ranks, strategy in ((1, "auto"), (2, "model"), (3, "data"), (4, "auto")):
                    self.train(ranks, model, "--strategy", strategy)
                    self.assert_close(self.losses()[1:], wanted, 1e-10, f"{strategy} on {ranks}")
                    self.assertEqual([round(r["accuracy"] * self.batch) for r in self.metrics()[1:]],
                                     [round(r * self.batch) for r in right])
                    self.assert_close([self.summary()["validation"]["loss"]], [held], 1e-10, "validation")

    def test_ranks_batches_and_resuming_do_not_matter(self):
        model = self.model(MIXED)
        self.train(1, model, run_dir="serial")
        serial = self.losses("serial")
        self.train(1, model, "--set", "data.augment=[]", run_dir="plain")
        self.assertNotEqual(self.losses("plain"), serial)
        for ranks, strategy, parts in ((2, "model", 1), (3, "data", 3), (4, "auto", 1), (8, "kcut", 2)):
            with self.subTest(ranks=ranks, strategy=strategy):
                self.train(ranks, model, "--strategy", strategy, "--set", f"train.microbatches={parts}")
                self.assert_close(self.losses(), serial, 1e-9, f"{strategy} on {ranks}")
        self.train(1, model, "--set", "train.steps=5")
        self.train(1, model, "--resume")
        self.assertEqual(self.losses(), serial)
        self.train(1, self.folder / "serial" / "config.toml", run_dir="again")
        self.assertEqual(self.losses("again"), serial)
        done = self.run_program(4, model, "--verify")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("verify: passed", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
