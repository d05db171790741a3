"""Data sources against Python's readers of the same files (numpy, gzip, h5py, PIL), and how they refuse bad ones."""
import gzip
import io
import shutil
import struct
import unittest
import zipfile

import numpy

from support import Case

IDX_TYPES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx(array):
    """An array as the bytes of an IDX file."""
    code = IDX_TYPES[array.dtype.str[1:]]
    big = array.astype(array.dtype.newbyteorder(">"))
    return struct.pack(">BBBB", 0, 0, code, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + big.tobytes()


class Reading(Case):
    def setUp(self):
        super().setUp()
        self.random = numpy.random.RandomState(3)
        self.set = self.folder / "set"
        self.set.mkdir()

    def dump(self, source, shape, split="train", classes=10, path=None, data="", expect=0):
        """What the reader gives: (inputs, labels), or with `expect` the text of its error."""
        config = self.folder / "config.toml"
        config.write_text(
            f"[model]\ninput = {list(shape)}\n[data]\nsource = \"{source}\"\n"
            + (f"path = {path!r}\n" if isinstance(path, list) else f'path = "{path or self.set}"\n')
            + f"batch = 4\n{data}\n[train]\nsteps = 1\n")
        out = self.folder / "samples.bin"
        done = self.run_program(0, config, classes, split, out, program="dump_samples")
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        if expect:
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            return done.stderr.strip()
        raw = out.read_bytes()
        count, dims = struct.unpack_from("<2q", raw)
        sample = struct.unpack_from(f"<{dims}q", raw, 16)
        size = int(numpy.prod(sample, dtype=int)) * count
        values = numpy.frombuffer(raw, "f8", size, 16 + 8 * dims).reshape(count, *sample)
        return values, numpy.frombuffer(raw, "i4", count, 16 + 8 * dims + 8 * size)

    def check(self, inputs, labels, source, shape, **options):
        got, classes = self.dump(source, shape, **options)
        self.assertEqual(got.shape, inputs.shape)
        self.assertTrue((got == inputs).all())
        self.assertEqual(classes.tolist(), labels.tolist())

    def values(self, kind, shape):
        kind = numpy.dtype(kind)
        if kind.kind == "b":
            return self.random.rand(*shape) > 0.5
        if kind.kind == "f":
            return self.random.randn(*shape).astype(kind)
        low, high = (0, 200) if kind.kind == "u" else (-100, 100)
        return self.random.randint(low, high, shape).astype(kind)

    def refuse(self, *parts, source, shape=(1, 4, 5), **options):
        text = self.dump(source, shape, expect=2, **options)
        for part in parts:
            self.assertIn(part, text)


class Idx(Reading):
    def fill(self, inputs=None, labels=None, split="train", packed=False, name="{}-{}-idx{}-ubyte"):
        inputs = self.values("u1", (7, 4, 5)) if inputs is None else inputs
        labels = self.random.randint(0, 10, len(inputs)).astype("u1") if labels is None else labels
        for content, array in (("images", inputs), ("labels", labels)):
            path = self.set / name.format(split, content, array.ndim)
            data = idx(array)
            path = path.with_name(path.name + ".gz") if packed else path
            path.write_bytes(gzip.compress(data) if packed else data)
        return inputs, labels

    def test_every_type_plain_and_packed(self):
        for kind in IDX_TYPES:
            for packed in (False, True):
                with self.subTest(kind=kind, packed=packed):
                    shutil.rmtree(self.set)
                    self.set.mkdir()
                    inputs, labels = self.fill(self.values(kind, (7, 4, 5)), packed=packed)
                    held, truth = self.fill(self.values(kind, (3, 4, 5)), split="t10k", packed=packed)
                    self.check(inputs[:, None], labels, "idx", (1, 4, 5))
                    self.check(held[:, None], truth, "idx", (1, 4, 5), split="validation")

    def test_names_and_shapes(self):
        inputs, labels = self.fill(self.values("u1", (5, 3, 4, 6)), name="emnist-{}-{}.idx{}-ubyte")
        self.check(inputs, labels, "idx", (3, 4, 6))
        self.check(inputs.reshape(5, 72), labels, "idx", (72,))
        (self.set / "emnist-train-images.idx4-ubyte.gz").write_bytes(b"not read: the plain one is there")
        self.check(inputs, labels, "idx", (3, 4, 6))
        self.assertEqual(len(self.dump("idx", (3, 4, 6), split="validation")[1]), 0)

    def test_bad_files(self):
        inputs, labels = self.fill()
        images, classes = self.set / "train-images-idx3-ubyte", self.set / "train-labels-idx1-ubyte"
        whole = images.read_bytes()

        def refuse(data, *parts, path=images, **options):
            saved = path.read_bytes()
            path.write_bytes(data)
            self.refuse(str(path), *parts, source="idx", **options)
            path.write_bytes(saved)

        refuse(whole[:-1], "got 155 bytes expected 156, for shape 7x4x5. it is truncated")
        refuse(whole + b"x", "got 157 bytes expected 156", "damaged or another format")
        refuse(b"", "got 0 bytes expected an IDX file")
        refuse(whole[:9], "got 9 bytes expected an IDX file")
        refuse(b"\x00\x00\x07" + whole[3:], "begins with 00 00 07 03 expected an IDX file")
        refuse(b"\x89PNG" + whole, "begins with 89 50 4e 47 expected an IDX file")
        refuse(gzip.compress(whole), "it is packed by gzip: its name has to end in .gz")
        refuse(idx(inputs[:0]), "got 0 samples expected at least one")
        refuse(idx(inputs[:, :3]), "got samples of shape 3x5 expected 1x4x5 as in model.input")
        refuse(idx(labels[:6]), "got 6 labels expected 7, one for each sample of", path=classes)
        refuse(idx(numpy.full(7, 10, "u1")), "[0], got 10 expected a class from 0 to 9", path=classes)
        refuse(idx(labels.astype("f4")), "got reals of 1 dims expected a list of integers", path=classes)
        refuse(idx(inputs), "got integers of 3 dims expected a list of integers", path=classes)

        packed = self.set / "train-images-idx3-ubyte.gz"
        images.unlink()
        self.refuse('got no file of images for "train" expected one named like train-images-idx3-ubyte', source="idx")
        good = gzip.compress(whole)
        for data, part in ((good[:-20], "expected a whole"), (b"", "got an empty file"),
                           (whole, "got a file that is not packed by gzip"),
                           (good[:-8] + b"\0" * 8, "can not be unpacked, got"),
                           (gzip.compress(whole[:-1]), "got 155 bytes unpacked expected 156")):
            packed.write_bytes(data)
            self.refuse(str(packed), part, source="idx")
        packed.write_bytes(good)
        (self.set / "more-train-images-idx3-ubyte").write_bytes(whole)
        self.refuse("got more-train-images-idx3-ubyte and train-images-idx3-ubyte.gz expected one file of images",
                    source="idx")
        self.refuse("nowhere: got nothing expected a folder of IDX files", source="idx", path=self.folder / "nowhere")
        self.refuse("got no folder expected a folder of IDX files", source="idx", path=classes)


class Cifar(Reading):
    def records(self, count, label_bytes=1, classes=10):
        labels = self.random.randint(0, classes, (count, label_bytes)).astype("u1")
        images = self.values("u1", (count, 3, 32, 32))
        return numpy.concatenate([labels, images.reshape(count, -1)], 1).tobytes(), images, labels

    def test_cifar_10(self):
        parts = [self.records(n) for n in (4, 3, 5)]
        for i, (data, _, _) in enumerate(parts, 1):
            (self.set / f"data_batch_{i}.bin").write_bytes(data)
        held = self.records(2)
        (self.set / "test_batch.bin").write_bytes(held[0])
        self.check(numpy.concatenate([p[1] for p in parts]), numpy.concatenate([p[2][:, 0] for p in parts]),
                   "cifar", (3, 32, 32))
        self.check(held[1], held[2][:, 0], "cifar", (3, 32, 32), split="validation")

    def test_cifar_100(self):
        data, images, labels = self.records(6, 2, 20)
        (self.set / "train.bin").write_bytes(data)
        self.check(images, labels[:, 1], "cifar", (3, 32, 32), classes=100)
        self.check(images, labels[:, 0], "cifar", (3, 32, 32), classes=20, data='labels = "coarse"')

    def test_bad_files(self):
        shape = (3, 32, 32)
        self.refuse("got none of CIFAR's files expected the files of CIFAR-10", source="cifar", shape=shape)
        data, _, labels = self.records(4)
        first = self.set / "data_batch_1.bin"
        for bad, part in ((data[:-1], "got 12291 bytes expected a multiple of 3073"), (b"", "got 0 bytes")):
            first.write_bytes(bad)
            self.refuse(str(first), part, source="cifar", shape=shape)
        first.write_bytes(data)
        self.refuse("got samples of shape 3x32x32 expected 3x28x28", source="cifar", shape=(3, 28, 28))
        self.refuse(f"{first}: label[", f"got {labels.max()} expected a class from 0 to {labels.max() - 1}",
                    source="cifar", shape=shape, classes=int(labels.max()))
        (self.set / "data_batch_3.bin").write_bytes(data)
        self.refuse("data_batch_2.bin: got nothing expected a file", source="cifar", shape=shape)
        (self.set / "data_batch_3.bin").unlink()
        (self.set / "train.bin").write_bytes(data)
        self.refuse("got data_batch_1.bin and train.bin", source="cifar", shape=shape)
        self.refuse("got nothing expected a folder of CIFAR's", source="cifar", shape=shape, path="/nowhere")


class NumPy(Reading):
    KINDS = ("|b1", "|u1", "|i1", "<u2", ">u2", "<i2", ">i2", "<u4", "<i4", ">i4", "<u8", "<i8", ">i8", "<f2", ">f2",
             "<f4", ">f4", "<f8", ">f8")

    def test_every_type_and_order(self):
        for kind in self.KINDS:
            for order in "CF":
                with self.subTest(kind=kind, order=order):
                    inputs = numpy.asarray(self.values(kind, (6, 2, 3, 4)), dtype=kind, order=order)
                    labels = self.random.randint(0, 10, 6).astype(kind if kind[1] in "iu" else "i8")
                    numpy.save(self.set / "train_inputs.npy", inputs)
                    numpy.save(self.set / "train_labels.npy", labels)
                    self.check(inputs.astype("f8"), labels, "npy", (2, 3, 4))
                    for save in (numpy.savez, numpy.savez_compressed):
                        save(self.folder / "set.npz", x_train=inputs, y_train=labels[:, None], x_test=inputs[:2],
                             y_test=labels[:2])
                        self.check(inputs.astype("f8"), labels, "npz", (2, 3, 4), path=self.folder / "set.npz")
                        self.check(inputs[:2].astype("f8"), labels[:2], "npz", (2, 3, 4),
                                   path=self.folder / "set.npz", split="validation")

    def test_infinite_and_subnormal_halves(self):
        inputs = numpy.array([[0, -0.0, 6e-8, 6e-5, 65504, numpy.inf, -numpy.inf, 1 / 3]], "f2")
        numpy.savez(self.folder / "set.npz", x_train=inputs, y_train=[1])
        self.check(inputs.astype("f8"), numpy.array([1]), "npz", (8,), path=self.folder / "set.npz")

    def test_channels_last(self):
        inputs, labels = self.values("u1", (5, 4, 6, 3)), self.random.randint(0, 10, 5)
        for order in "CF":
            numpy.save(self.set / "train_inputs.npy", numpy.asarray(inputs, order=order))
            numpy.save(self.set / "train_labels.npy", labels)
            self.check(inputs.transpose(0, 3, 1, 2), labels, "npy", (3, 4, 6))

    def test_headers_of_later_versions(self):
        inputs, labels = self.values("f4", (5, 4)), self.random.randint(0, 10, 5)
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(self.set / "train_inputs.npy", "wb") as file:
                numpy.lib.format.write_array(file, inputs, version)
            numpy.save(self.set / "train_labels.npy", labels)
            self.check(inputs.astype("f8"), labels, "npy", (4,))

    def test_bad_arrays(self):
        inputs, labels = self.values("f4", (5, 1, 4, 5)), self.random.randint(0, 10, 5)
        path = self.set / "train_inputs.npy"
        self.refuse("got no array train_inputs or x_train", source="npy")
        numpy.save(path, inputs)
        self.refuse("got no array train_labels or y_train expected one", source="npy")
        numpy.save(self.set / "train_labels.npy", labels)
        whole = path.read_bytes()

        def refuse(data, *parts):
            path.write_bytes(data)
            self.refuse(str(path), *parts, source="npy")
            path.write_bytes(whole)

        refuse(whole[:-1], "got 399 bytes of elements expected 400, for shape 5x1x4x5. it is truncated")
        refuse(whole + b"x", "got 401 bytes of elements expected 400", "it is damaged")
        refuse(whole[:50], "got 50 bytes expected a header of", "it is truncated")
        refuse(whole[:5], "got 5 bytes that do not begin as a .npy file")
        refuse(b"", "got 0 bytes that do not begin as a .npy file")
        refuse(b"hello" + whole, "that do not begin as a .npy file")
        refuse(whole[:6] + b"\x09" + whole[7:], "got .npy version 9 expected 1, 2 or 3")
        refuse(whole.replace(b"'descr'", b"'dscr' "), "its header, got", "expected that of a .npy file. it is damaged")
        refuse(whole.replace(b"(5, 1", b"(5; 1"), "its header, got")
        refuse(whole.replace(b"'<f4'", b"'<f9'"), "got elements of type <f9 expected integers or reals")

        def refuse_array(array, *parts, name="train_inputs"):
            saved = (self.set / f"{name}.npy").read_bytes()
            numpy.save(self.set / f"{name}.npy", array)
            self.refuse(f"{name}.npy", *parts, source="npy")
            (self.set / f"{name}.npy").write_bytes(saved)

        refuse_array(numpy.array(["a", "b"]), "got elements of type <U1")
        refuse_array(inputs.astype("c8"), "got elements of type <c8")
        refuse_array(numpy.zeros(5, [("a", "f4"), ("b", "i4")]), "got elements of type [(")
        refuse_array(numpy.array([{}, None]), "got elements of type |O")
        refuse_array(inputs[:, :, :3], "got samples of shape 1x3x5 expected 1x4x5 as in model.input")
        refuse_array(inputs[:0], "got 0 samples expected at least one")
        refuse_array(numpy.float32(3), "got shape scalar expected [samples, …]")
        refuse_array(labels[:4], "got 4 labels expected 5", name="train_labels")
        refuse_array(labels * 0.5, "got reals of shape 5 expected a list of integers", name="train_labels")
        refuse_array(labels[None], "got integers of shape 1x5 expected a list of integers", name="train_labels")
        refuse_array(labels - 20, "expected a class from 0 to 9", name="train_labels")
        refuse_array(labels + 2**40, "expected an integer of 32 bits", name="train_labels")
        self.refuse("got nothing expected a folder of .npy files", source="npy", path="/nowhere")

    def test_bad_archives(self):
        inputs, labels = self.values("f4", (50, 1, 4, 5)), self.random.randint(0, 10, 50)
        path = self.folder / "set.npz"
        numpy.savez_compressed(path, x_train=inputs, y_train=labels)
        whole = path.read_bytes()

        def refuse(data, *parts):
            path.write_bytes(data)
            self.refuse(str(path), *parts, source="npz", path=path)

        refuse(whole[:-1000], "can not be opened, got", "truncated, damaged or another format")
        refuse(b"", "got an empty file")
        refuse(b"hello" * 100, "can not be opened, got")
        middle = bytearray(whole)
        middle[1500] ^= 255
        refuse(bytes(middle), "x_train.npy: can not be unpacked, got", "the file is damaged")
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("other.npy", b"x")
        refuse(buffer.getvalue(), "got no array train_inputs or x_train")
        path.unlink()
        self.refuse("can not be opened", "set.npz", source="npz", path=path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
