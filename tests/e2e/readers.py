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

    def dump(self, source, shape, split="train", classes=10, path=None, data="", expect=0, targets=None):
        """What the reader gives: (inputs, labels), or with `expect` the text of its error. With the shape of `targets`
        (inputs, labels, targets)."""
        config = self.folder / "config.toml"
        config.write_text(
            f"[model]\ninput = {list(shape)}\n[data]\nsource = \"{source}\"\n"
            + (f"path = {path!r}\n" if isinstance(path, list) else f'path = "{path or self.set}"\n')
            + f"batch = 4\n{data}\n[train]\nsteps = 1\n")
        out = self.folder / "samples.bin"
        of_targets = ["x".join(map(str, targets))] if targets else []
        done = self.run_program(0, config, classes, split, out, *of_targets, program="dump_samples")
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        if expect:
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            return done.stderr.strip()
        raw = out.read_bytes()
        values, at = self.unpacked(raw, 0)
        labels = numpy.frombuffer(raw, "i4", len(values), at)
        return (values, labels, self.unpacked(raw, at + labels.nbytes)[0]) if targets else (values, labels)

    def unpacked(self, raw, at):
        """The array that begins at byte `at`, and where it ends."""
        count, dims = struct.unpack_from("<2q", raw, at)
        sample = struct.unpack_from(f"<{dims}q", raw, at + 16)
        size = int(numpy.prod(sample, dtype=int)) * count
        at += 16 + 8 * dims
        return numpy.frombuffer(raw, "f8", size, at).reshape(count, *sample), at + 8 * size

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
        refuse(b"\x00\x00\x07" + whole[3:], "its first bytes, got 00 00 07 03 expected those of an IDX file")
        refuse(b"\x89PNG" + whole, "its first bytes, got 89 50 4e 47 expected those of an IDX file")
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
        self.refuse("got a file expected a folder of IDX files", source="idx", path=classes)


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
        refuse(whole[:6] + b"\xff" + whole[7:], "got .npy version 255 expected 1, 2 or 3")
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


class Hdf5(Reading):
    """One file: tests/e2e/bad_input.py and inputs/digits.toml."""

    def write(self, name, train=None, validation=None):
        import h5py

        with h5py.File(self.set / name, "w") as file:
            for split, pair in (("train", train), ("validation", validation)):
                if pair:
                    file[f"{split}/inputs"], file[f"{split}/labels"] = pair
        return pair

    def pair(self, count, kind="u1"):
        return self.values(kind, (count, 2, 3, 4)), self.random.randint(0, 10, count)

    def test_several_files(self):
        parts = [self.pair(n, kind) for n, kind in ((4, "u1"), (1, "f4"), (6, "f8"))]
        held = self.pair(3)
        for number, part in zip((10, 2, 3), parts):  # by name: 10, 2, 3
            self.write(f"part-{number}.h5", part, held if number == 2 else None)
        self.write("held.h5", validation=held)
        inputs, labels = (numpy.concatenate([p[i] for p in parts]) for i in (0, 1))
        self.check(inputs, labels, "hdf5", (2, 3, 4), path=self.set / "part-*.h5")
        self.check(held[0], held[1], "hdf5", (2, 3, 4), path=self.set / "part-[0-9]*.h5", split="validation")
        names = [str(self.set / name) for name in ("part-3.h5", "held.h5", "part-10.h5")]
        self.check(numpy.concatenate([parts[2][0], parts[0][0]]), numpy.concatenate([parts[2][1], parts[0][1]]), "hdf5",
                   (2, 3, 4), path=names)
        self.check(held[0], held[1], "hdf5", (2, 3, 4), path=names, split="validation")
        self.check(held[0], held[1], "hdf5", (2, 3, 4), path=["set/part-3.h5", "set/held.h5"], split="validation")
        (self.set / "part-*.h5").write_bytes((self.set / "part-3.h5").read_bytes())
        self.check(*parts[2], "hdf5", (2, 3, 4), path=self.set / "part-*.h5")  # a file of that name goes before

    def test_bad_files(self):
        self.refuse("part-*.h5: got no file of such a name expected at least one", source="hdf5",
                    path=self.set / "part-*.h5")
        self.write("part-1.h5", self.pair(2))
        self.write("held.h5", validation=self.pair(2))
        self.refuse("held.h5: got no group /train in it expected one to train with", source="hdf5", shape=(2, 3, 4),
                    path=self.set / "held.h5")
        self.refuse("got no group /train in any file", source="hdf5", shape=(2, 3, 4), path=["set/held.h5"] * 2)
        self.refuse("nowhere.h5", source="hdf5", shape=(2, 3, 4), path=["set/part-1.h5", "set/nowhere.h5"])
        self.refuse("data.path, got [] (array) expected the paths of HDF5 files", source="hdf5", path=[])
        self.refuse("expected paths of files", source="hdf5", path=["set/part-1.h5", ""])
        self.refuse("data.path[1], got 3 (integer) expected a string", source="hdf5", path=["set/part-1.h5", 3])


class Targets(Reading):
    """Numbers that come with the samples; CLASSES = 0: no labels."""

    def compare(self, wanted, shape, **options):
        got = self.dump(shape=(2, 3), targets=shape, **options)
        self.assertEqual(got[2].shape, (len(wanted), *shape))
        self.assertTrue((got[2] == wanted.reshape(got[2].shape)).all())
        return got

    def test_every_source(self):
        import h5py

        for kind in ("<f4", "<f8", ">f4"):
            for shape, stored in (((3,), (3,)), ((1,), ()), ((1,), (1,)), ((2, 3, 4), (2, 3, 4)), ((2, 1, 4), (2, 4))):
                with self.subTest(kind=kind, shape=shape, stored=stored):
                    inputs, labels = self.values("f4", (6, 2, 3)), self.random.randint(0, 10, 6)
                    targets = self.values(kind, (6, *stored))
                    with h5py.File(self.set / "set.h5", "w") as file:
                        for split, rows in (("train", slice(None)), ("validation", slice(4))):
                            file[f"{split}/inputs"], file[f"{split}/labels"] = inputs[rows], labels[rows]
                            file[f"{split}/targets"] = targets[rows]
                    arrays = dict(x_train=inputs, train_targets=targets, train_labels=labels, x_val=inputs[:4],
                                  y_val=targets[:4], val_labels=labels[:4])
                    numpy.savez(self.folder / "set.npz", **arrays)
                    for name, array in arrays.items():
                        numpy.save(self.set / f"{name}.npy", array)
                    for source, path in (("hdf5", self.set / "set.h5"), ("npz", self.folder / "set.npz"), ("npy", None)):
                        for split, count in (("train", 6), ("validation", 4)):
                            got = self.compare(targets[:count], shape, source=source, path=path, split=split)
                            self.assertEqual(got[1].tolist(), labels[:count].tolist())
                            self.compare(targets[:count], shape, source=source, path=path, split=split, classes=0)

    def test_in_place_of_labels(self):
        import h5py

        inputs, targets = self.values("f4", (6, 2, 3)), self.values("f8", (6, 4))
        with h5py.File(self.set / "a.h5", "w") as file:
            file["train/inputs"], file["train/targets"] = inputs[:2], targets[:2]
        with h5py.File(self.set / "b.h5", "w") as file:
            file["train/inputs"], file["train/targets"] = inputs[2:], targets[2:]
        numpy.savez(self.folder / "set.npz", x_train=inputs, y_train=targets)
        for source, path in (("hdf5", self.set / "*.h5"), ("npz", self.folder / "set.npz")):
            self.compare(targets, (4,), source=source, path=path, classes=0)
        self.refuse("a.h5", "train/labels", source="hdf5", shape=(2, 3), path=self.set / "*.h5")

    def test_bad_ones(self):
        import h5py

        inputs, targets = self.values("f4", (6, 2, 3)), self.values("f8", (6, 4))
        path = self.set / "set.h5"

        def refuse(array, hdf5, numpys=None):
            path.unlink(missing_ok=True)
            with h5py.File(path, "w") as file:
                file["train/inputs"] = inputs
                if array is not None:
                    file["train/targets"] = array
            for name in ("train_inputs", "train_targets"):
                (self.set / f"{name}.npy").unlink(missing_ok=True)
            numpy.save(self.set / "train_inputs.npy", inputs)
            if array is not None:
                numpy.save(self.set / "train_targets.npy", array)
            options = dict(shape=(2, 3), targets=(4,), classes=0)
            self.refuse(f"{path}: ", hdf5, source="hdf5", path=path, **options)
            self.refuse(numpys or hdf5, source="npy", **options)

        refuse(None, "train/targets", "got no array train_targets or y_train expected one")
        refuse(targets[:5], "got 5 targets expected 6, one for each sample")
        refuse(targets[:, :3], "got targets of shape 3 expected 4 as what the loss is of")
        refuse(targets[:, :, None, None] * numpy.ones((1, 1, 2, 2)), "got targets of shape 4x2x2 expected 4 as what")
        refuse(targets.astype("i4"), "got integers of shape 6x4 expected targets, reals of shape [samples, …]. store "
               "float32 or float64")
        refuse(targets.astype("c16"), "expected targets, reals of shape", "got elements of type <c16")
        bad = targets.copy()
        bad[4, 2] = numpy.nan
        refuse(bad, "train/targets[4], got nan expected finite numbers",
               "train_targets.npy[4], got nan expected finite numbers")
        bad[4, 2] = -numpy.inf
        refuse(bad, "train/targets[4], got -inf expected finite numbers",
               "train_targets.npy[4], got -inf expected finite numbers")
        whole = (self.set / "train_targets.npy").read_bytes()
        (self.set / "train_targets.npy").write_bytes(whole[:-8])
        self.refuse("train_targets.npy: got 184 bytes of elements expected 192", "it is truncated", source="npy",
                    shape=(2, 3), targets=(4,), classes=0)
        path.write_bytes(path.read_bytes()[:-100])
        self.refuse(str(path), source="hdf5", path=path, shape=(2, 3), targets=(4,), classes=0)
        for source in ("idx", "cifar", "image_folder"):
            self.refuse(f'data.source: got "{source}" for a loss with target = "targets" expected one of synthetic, hdf5, '
                        "npy, npz. the other sources have labels alone", source=source, shape=(3, 32, 32), targets=(4,))


class ImageFolder(Reading):
    def picture(self, height, width, mode="RGB"):
        """Smooth, so that JPEG keeps it, with some noise."""
        from PIL import Image

        y, x = numpy.mgrid[0:height, 0:width]
        channels = [128 + 100 * numpy.sin(x / (5 + 3 * c) + y / (7 - c)) for c in range(3)]
        pixels = numpy.stack(channels, -1) + self.random.randint(-20, 20, (height, width, 3))
        return Image.fromarray(pixels.clip(0, 255).astype("u1")).convert(mode)

    def save(self, image, name, split="train", **options):
        path = self.set / split / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path, **options)
        return path

    def fill(self):
        """Every kind of file, each in a class of its own, and what Pillow makes of it."""
        from PIL import Image

        big, small = self.picture(61, 47), self.picture(20, 33)
        alpha = big.copy()
        alpha.putalpha(self.picture(61, 47, "L"))
        grey = self.picture(40, 40, "L")
        clear = grey.convert("P")
        kinds = [
            ("a.jpg", big, dict(quality=90)),
            ("b.JPEG", small, dict(quality=95, progressive=True, subsampling=0)),
            ("c.jpg", grey, {}),
            ("d.jpg", self.picture(40, 50, "CMYK"), {}),
            ("e.png", big, {}),
            ("f.png", alpha, {}),
            ("g.png", grey, {}),
            ("h.png", alpha.convert("LA"), {}),
            ("i.png", big.quantize(50), {}),
            ("j.png", clear, dict(transparency=7)),
            ("k.png", self.picture(37, 29, "1"), {}),
            ("l.jpg", self.picture(301, 224), dict(quality=75, optimize=True)),
            ("m.png", self.picture(2, 300), {}),
        ]
        return [self.save(image, f"{name[0]}/{name}", **options) for name, image, options in kinds]

    def fitted(self, path, height, width, mode, resize=0):
        """torchvision's Resize and CenterCrop on what Pillow reads."""
        from PIL import Image

        image = Image.open(path).convert(mode)
        w, h = image.size
        if resize:
            w, h = (resize, resize * h // w) if w <= h else (resize * w // h, resize)
        elif w * height <= h * width:
            w, h = width, width * h // w
        else:
            w, h = height * w // h, height
        image = image.resize((w, h), Image.BILINEAR)
        left, top = round((w - width) / 2), round((h - height) / 2)
        pixels = numpy.asarray(image.crop((left, top, left + width, top + height)))
        return pixels[None] if mode == "L" else pixels.transpose(2, 0, 1)

    def test_against_pillow(self):
        paths = self.fill()
        for shape, resize in (((3, 32, 32), 0), ((3, 32, 32), 40), ((1, 32, 32), 37), ((3, 24, 56), 0), ((1, 50, 10), 51)):
            with self.subTest(shape=shape, resize=resize):
                wanted = numpy.stack([self.fitted(p, *shape[1:], "RGB" if shape[0] == 3 else "L", resize)
                                      for p in paths])
                self.check(wanted, numpy.arange(len(paths)), "image_folder", shape, classes=len(paths),
                           data=f"resize = {resize}")

    def test_16_bits_count_by_their_upper_8(self):
        from PIL import Image

        deep = self.random.randint(0, 65536, (6, 5)).astype("u2")
        self.save(Image.fromarray(deep), "a/a.png")
        self.check((deep >> 8)[None, None], numpy.array([0]), "image_folder", (1, 6, 5))

    def test_interlaced(self):
        path = self.save(self.picture(11, 13), "a/a.png")
        # Adam7 by hand: the passes' rows one after the other.
        import zlib
        from PIL import Image

        pixels = numpy.asarray(Image.open(path))
        lines = b""
        for top, left, down, right in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
                                       (1, 0, 2, 1)):
            for row in pixels[top::down, left::right]:
                lines += b"\0" + row.tobytes() if row.size else b""

        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 13, 11, 8, 2, 0, 0, 1))
                         + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
        self.check(pixels.transpose(2, 0, 1)[None], numpy.array([0]), "image_folder", (3, 11, 13))

    def test_order_and_splits(self):
        wanted = []
        for name in ("B/x.png", "B/y10.png", "B/y2.png", "a/z.png", "\u00e9t\u00e9/\u00f1.png"):
            wanted.append(self.save(self.picture(8, 8), name))
        held = self.save(self.picture(8, 8), "a/held.png", split="val")
        for junk in (".DS_Store", "readme.txt", "a/notes.txt", "a/.hidden.png", ".git/x"):
            path = self.set / "train" / junk
            path.parent.mkdir(exist_ok=True)
            path.write_text("not an image")
        pixels = numpy.stack([self.fitted(p, 8, 8, "RGB") for p in wanted])
        self.check(pixels, numpy.array([0, 0, 0, 1, 2]), "image_folder", (3, 8, 8), classes=3)
        self.check(self.fitted(held, 8, 8, "RGB")[None], numpy.array([1]), "image_folder", (3, 8, 8), split="validation")
        (self.set / "val").rename(self.set / "validation")
        self.check(self.fitted(self.set / "validation/a/held.png", 8, 8, "RGB")[None], numpy.array([1]), "image_folder",
                   (3, 8, 8), split="validation")

    def test_bad_folders(self):
        def refuse(*parts, **options):
            self.refuse(*parts, source="image_folder", **{"shape": (3, 8, 8), **options})

        refuse("set/train: got nothing expected a folder with a folder of images for each class")
        (self.set / "train").mkdir()
        refuse("set/train: got no folders expected one for each class")
        (self.set / "train" / "a").mkdir()
        refuse("set/train/a: got a folder without images expected files that end in .jpg, .jpeg or .png")
        self.save(self.picture(9, 9), "a/a.png")
        self.save(self.picture(9, 9), "b/b.png")
        refuse("set/train: got 2 folders expected at most 1 classes, the outputs of the model", classes=1)
        self.save(self.picture(9, 9), "c/c.png", split="val")
        refuse("set/val/c: got a class that is not among those to train with expected one of its 2 folders")
        (self.set / "validation").mkdir()
        refuse("set: got validation/ and val/ expected one of them")
        shutil.rmtree(self.set / "val")
        (self.set / "train" / "b" / "more").mkdir()
        refuse("set/train/b/more: got a folder expected images")
        shutil.rmtree(self.set / "train" / "b" / "more")
        refuse("data.source", "expected a source of samples of shape 72, as in model.input", shape=(72,))
        refuse("expected a source of samples of shape 2x8x8", shape=(2, 8, 8))
        refuse("data.resize, got 7 (integer) expected at least 8, the longer side of model.input, or 0", data="resize = 7")

    def test_bad_images(self):
        good = {name: self.save(self.picture(40, 40), f"a/{name}").read_bytes() for name in ("a.jpg", "b.png")}

        def refuse(name, data, *parts):
            path = self.set / "train" / "a" / name
            path.write_bytes(data)
            self.refuse(f"train/a/{name}: ", *parts, source="image_folder", shape=(3, 8, 8))
            path.write_bytes(good[name])

        for name, kind in (("a.jpg", "JPEG"), ("b.png", "PNG")):
            whole = good[name]
            refuse(name, b"", "got an empty file expected a JPEG or PNG image")
            refuse(name, b"hello", "got a file that begins otherwise expected a JPEG or PNG image")
            refuse(name, b"GIF89a" + whole, "got a file that begins otherwise")
            for length in (20, 150, len(whole) // 2, len(whole) - 20):
                refuse(name, whole[:length], "can not be decoded, got", f"expected a whole {kind} image")
        refuse("b.png", good["b.png"][:800] + b"x" + good["b.png"][801:], "can not be decoded, got")
        huge = bytearray(good["b.png"])
        huge[16:24] = struct.pack(">II", 60000, 60000)
        import zlib

        huge[29:33] = struct.pack(">I", zlib.crc32(bytes(huge[12:29])))
        refuse("b.png", bytes(huge), "got an image of 60000x60000 pixels expected at most")
        (self.set / "train/a/c.jpg").symlink_to("nowhere.jpg")
        self.refuse("train/a/c.jpg: can not be opened", source="image_folder", shape=(3, 8, 8))


if __name__ == "__main__":
    unittest.main(verbosity=2)
