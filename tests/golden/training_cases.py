"""Networks whose training is held to PyTorch's: shared by make_training_losses.py and tests/e2e/pytorch_losses.py."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 100

LENET = f"""
[model]
name = "lenet_digits"
input = [1, 8, 8]
layers = [
  {{ op = "conv2d", channels = 6, kernel = 3, padding = 1, activation = "tanh" }},
  {{ op = "avg_pool", kernel = 2 }},
  {{ op = "conv2d", channels = 16, kernel = 3, activation = "tanh" }},
  {{ op = "flatten" }},
  {{ op = "dense", units = 48, activation = "tanh" }},
  {{ op = "dense", units = 32, activation = "tanh" }},
  {{ op = "dense", units = 10 }},
]
loss = "softmax_cross_entropy"

[data]
source = "hdf5"
path = "{ROOT}/inputs/data/digits.h5"
batch = 32
shuffle = false
normalise = {{ scale = 0.0625, mean = [0.25], std = [0.5] }}

[train]
optimizer = {{ name = "sgd", lr = 0.1, momentum = 0.9, weight_decay = 1e-4 }}
"""

BLOCK = """  { op = "residual", activation = "relu", %sbody = [
    { op = "conv2d", channels = %d, kernel = 3, stride = %d, padding = 1, bias = false },
    { op = "batch_norm", activation = "relu" },
    { op = "conv2d", channels = %d, kernel = 3, padding = 1, bias = false },
    { op = "batch_norm" },
  ] },
"""
PROJECTION = """shortcut = [
    { op = "conv2d", channels = %d, kernel = 1, stride = 2, bias = false },
    { op = "batch_norm" },
  ], """

RESNET = """
[model]
name = "resnet_cifar"
input = [3, 32, 32]
init = "kaiming_normal"
layers = [
  { op = "conv2d", channels = 6, kernel = 3, stride = 2, padding = 1, bias = false },
  { op = "batch_norm", activation = "relu" },
""" + BLOCK % ("", 6, 1, 6) + BLOCK % (PROJECTION % 10, 10, 2, 10) + """  { op = "global_avg_pool" },
  { op = "flatten" },
  { op = "dense", units = 10, init = "default" },
]
loss = "softmax_cross_entropy"

[data]
source = "cifar"
path = "."
batch = 16
shuffle = false
normalise = { scale = 0.00392156862745098, mean = [0.5, 0.5, 0.5], std = [0.25, 0.25, 0.25] }

[train]
optimizer = { name = "sgd", lr = 0.02, momentum = 0.9, weight_decay = 5e-4 }
"""


GPT = f"""
[model]
name = "gpt"
input = [24]
vocabulary = 256
init = "normal"
init_std = 0.1
layers = [
  {{ op = "embedding", name = "wte", embedding_dim = 24 }},
  {{ op = "positional_embedding", num_embeddings = 32 }},
  {{ op = "residual", body = [ {{ op = "layer_norm" }}, {{ op = "attention", heads = 4, causal = true }} ] }},
  {{ op = "residual", body = [
    {{ op = "rms_norm" }},
    {{ op = "attention", heads = 4, kv_heads = 2, causal = true, rotary = 10000.0 }},
  ] }},
  {{ op = "residual", body = [
    {{ op = "layer_norm" }},
    {{ op = "dense", units = 64 }},
    {{ op = "gelu", approximate = "tanh" }},
    {{ op = "dense", units = 24 }},
  ] }},
  {{ op = "layer_norm" }},
  {{ op = "dense", tied = "wte", bias = false }},
]
loss = "softmax_cross_entropy"

[data]
source = "tokens"
dtype = "uint8"
path = "{ROOT}/inputs/data/gospels.txt"
batch = 8
shuffle = false

[train]
optimizer = {{ name = "sgd", lr = 0.2, momentum = 0.9, weight_decay = 1e-4 }}
"""


def write_cifar(folder, images=160):
    """Files in CIFAR-10's binary format: labels, and pictures whose colours lean towards their label."""
    import numpy

    random = numpy.random.RandomState(7)  # the same numbers with every NumPy
    for name in ("data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"):
        labels = random.randint(0, 10, images // 2)
        pictures = random.randint(0, 156, (images // 2, 3, 32, 32)) + 10 * labels[:, None, None, None]
        records = numpy.concatenate([labels[:, None], pictures.reshape(images // 2, -1)], 1).astype(numpy.uint8)
        (pathlib.Path(folder) / name).write_bytes(records.tobytes())


def samples(case, folder):
    """All training samples in their order, normalised, in fp64, or tokens; and their labels."""
    import numpy

    if case == "gpt":
        text = numpy.fromfile(ROOT / "inputs" / "data" / "gospels.txt", numpy.uint8).astype(numpy.int64)
        count = (len(text) - 1) // 24
        return text[:24 * count].reshape(count, 24), text[1:24 * count + 1].reshape(count, 24)
    if case == "lenet_digits":
        import h5py

        with h5py.File(ROOT / "inputs" / "data" / "digits.h5") as file:
            x, labels = file["train/inputs"][()].astype(numpy.float64), file["train/labels"][()]
        return (x.reshape(-1, 1, 8, 8) * 0.0625 - 0.25) / 0.5, labels
    parts = [numpy.frombuffer((pathlib.Path(folder) / f"data_batch_{n}.bin").read_bytes(), numpy.uint8).reshape(-1, 3073)
             for n in (1, 2)]
    records = numpy.concatenate(parts).astype(numpy.float64)
    return (records[:, 1:].reshape(-1, 3, 32, 32) * 0.00392156862745098 - 0.5) / 0.25, records[:, 0].astype(numpy.int64)


CASES = {"lenet_digits": LENET, "resnet_cifar": RESNET, "gpt": GPT}
