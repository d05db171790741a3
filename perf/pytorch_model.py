"""The network of a model file in PyTorch: the peer of benchmarks, and what training is held to.

    network = pytorch_model.load("inputs/resnet50.toml", overrides={"model.bias": False})
    logits = network(x)            # every loss's logits, in the order of the file: a list
    loss = network.loss(logits, labels)

Layers have SoyBean's names, so that `network.layers["conv2d_1"].weight` is the checkpoint's `conv2d_1.weight`.
"""
import sys
import tomllib

import torch
from torch import nn


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


ACTIVATIONS = {
    "relu": nn.ReLU, "relu6": nn.ReLU6, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "silu": nn.SiLU, "hard_swish": nn.Hardswish,
    "leaky_relu": lambda: nn.LeakyReLU(0.01), "elu": nn.ELU, "gelu": nn.GELU,
}


def product(a, b):
    return a * b


def total(*terms):
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def activation_of(table):
    op = table["op"]
    if op == "leaky_relu":
        return nn.LeakyReLU(table.get("slope", 0.01))
    if op == "elu":
        return nn.ELU(table.get("alpha", 1.0))
    if op == "gelu":
        return nn.GELU(approximate=table.get("approximate", "none"))
    return ACTIVATIONS[op]()


class Positions(nn.Embedding):
    """A row for each position of sequences, added to it."""

    def forward(self, x):
        return x + self.weight[:x.shape[1]]


class Attention(nn.Module):
    """Of sequences [batch, positions, features], projections as dense layers."""

    def __init__(self, features, table, bias):
        super().__init__()
        self.heads, self.causal = table["heads"], table.get("causal", False)
        self.kv_heads = table.get("kv_heads", self.heads)
        width = table.get("head_dim", features // self.heads)
        self.base, bias = table.get("rotary"), bias and table.get("bias", True)
        self.query = nn.Linear(features, self.heads * width, bias)
        self.key = nn.Linear(features, self.kv_heads * width, bias)
        self.value = nn.Linear(features, self.kv_heads * width, bias)
        self.output = nn.Linear(self.heads * width, table.get("units", features), bias)

    def rotated(self, x):
        """Each head's halves as pairs, turned by position · base^(-2i/width)."""
        if self.base is None:
            return x
        half = x.shape[-1] // 2
        angles = torch.outer(torch.arange(x.shape[-2], dtype=x.dtype),
                             self.base ** (-torch.arange(half, dtype=x.dtype) / half))
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    def forward(self, x):
        def heads(y, count):
            return y.unflatten(-1, (count, -1)).transpose(1, 2)

        q, k = self.rotated(heads(self.query(x), self.heads)), self.rotated(heads(self.key(x), self.kv_heads))
        y = nn.functional.scaled_dot_product_attention(q, k, heads(self.value(x), self.kv_heads), is_causal=self.causal,
                                                       enable_gqa=self.kv_heads != self.heads)
        return self.output(y.transpose(1, 2).flatten(2))


def module_of(table, shapes, bias, layers, vocabulary):
    """The module of one layer. `shapes`: of its inputs, without the batch; of sequences [positions, features]. `layers`:
    the modules so far."""
    op, shape = table["op"], shapes[0]
    if op == "embedding":
        return nn.Embedding(table.get("num_embeddings", vocabulary), table["embedding_dim"])
    if op == "positional_embedding":
        return Positions(table.get("num_embeddings", shape[0]), shape[1])
    if op == "attention":
        return Attention(shape[-1], table, bias)
    if op == "layer_norm" and len(shape) < 3:
        return nn.LayerNorm(shape[-1], table.get("eps", 1e-5), table.get("affine", True))
    if op == "rms_norm" and len(shape) < 3:
        return nn.RMSNorm(shape[-1], table.get("eps", 1.1920928955078125e-07), table.get("affine", True))
    if op == "conv2d":
        return nn.Conv2d(shape[0], table["channels"], table["kernel"], table.get("stride", 1), table.get("padding", 0),
                         table.get("dilation", 1), table.get("groups", 1), bias and table.get("bias", True))
    if op == "dense":
        tied = layers[table["tied"]].weight if "tied" in table else None
        dense = nn.Linear(shape[-1], table["units"] if tied is None else len(tied), bias and table.get("bias", True))
        if tied is not None:
            dense.weight = tied
        return dense
    if op == "batch_norm":
        kind = nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d
        return kind(shape[0], table.get("eps", 1e-5), table.get("momentum", 0.1), table.get("affine", True))
    if op == "max_pool":
        return nn.MaxPool2d(table["kernel"], table.get("stride"), table.get("padding", 0),
                            ceil_mode=table.get("ceil_mode", False))
    if op == "avg_pool":
        return nn.AvgPool2d(table["kernel"], table.get("stride"), table.get("padding", 0), table.get("ceil_mode", False),
                            table.get("count_include_pad", True))
    if op == "global_avg_pool":
        return nn.AdaptiveAvgPool2d(1)
    if op == "lrn":
        return nn.LocalResponseNorm(table["size"], table.get("alpha", 1e-4), table.get("beta", 0.75), table.get("k", 1.0))
    if op == "clamp":
        return Function(lambda x: torch.clamp(x, table.get("min"), table.get("max")))
    if op == "flatten":
        return nn.Flatten()
    if op == "dropout":
        return nn.Dropout(table["rate"])
    if op == "concat":
        return Function(lambda *x: torch.cat(x, 1))
    if op in ("add", "residual"):
        return Function(total)
    if op == "mul":
        return Function(product)
    if op in ACTIVATIONS:
        return activation_of(table)
    sys.exit(f"pytorch_model: no operator {op}")


class Network(nn.Module):
    """Layers in the order of the file, each with the names of what it takes."""

    def __init__(self, document):
        super().__init__()
        model = document["model"]
        self.sample = list(model["input"])
        self.bias = model.get("bias", True)
        self.vocabulary = model.get("vocabulary")  # of tokens
        self.layers = nn.ModuleDict()
        self.order = []  # (name of the result, key in layers, names of the operands)
        self.shapes = {"input": self.sample}
        self.counts, self.last = {}, "input"
        with torch.no_grad():
            self.add_all(model["layers"])
        self.losses = model.get("losses") or [{"op": model["loss"], "input": self.last}]

    def add_all(self, tables):
        for table in tables:
            for _ in range(table.get("repeat", 1)):
                if "repeat" in table:
                    self.add_all(table["layers"])
                else:
                    self.add(table)

    def branch(self, tables, start):
        self.last = start
        self.add_all(tables)
        return self.last

    def add(self, table):
        op = table["op"]
        self.counts[op] = self.counts.get(op, 0) + 1
        name = table.get("name", f"{op}_{self.counts[op]}")
        inputs = table.get("inputs") or [table.get("input", self.last)]
        if op == "residual":
            start = inputs[0]
            inputs = [self.branch(table.get("shortcut", []), start), self.branch(table["body"], start)]
        if "branches" in table:
            inputs = [self.branch(tables, inputs[0]) for tables in table["branches"]]
        self.append(name, name, inputs, module_of(table, [self.shapes[i] for i in inputs], self.bias, self.layers,
                                                 self.vocabulary))
        if "activation" in table:
            self.append(name, name + ".activation", [name], ACTIVATIONS[table["activation"]]())
        self.last = name

    def append(self, name, key, inputs, module):
        module.eval()  # a batch norm has no statistics of one sample
        kind = torch.long if self.vocabulary and inputs == ["input"] else None
        out = module(*(torch.zeros(1, *self.shapes[i], dtype=kind) for i in inputs))
        module.train()
        self.shapes[name] = list(out.shape[1:])
        self.layers[key.replace(".", "/")] = module
        self.order.append((name, key.replace(".", "/"), inputs))

    def forward(self, x):
        results = {"input": x}
        for name, key, inputs in self.order:
            results[name] = self.layers[key](*(results[i] for i in inputs))
        return [results[loss.get("input", self.last)] for loss in self.losses]

    def loss(self, logits, labels):
        return sum(loss.get("weight", 1.0) * nn.functional.cross_entropy(y.flatten(0, -2), labels.flatten())
                   for loss, y in zip(self.losses, logits))

    def classes(self):
        return self.shapes[self.last][-1]


def load(path, overrides=None):
    """The network of a model file. `overrides`: dotted keys of tables to values, as with --set."""
    with open(path, "rb") as file:
        document = tomllib.load(file)
    for key, value in (overrides or {}).items():
        *tables, last = key.split(".")
        place = document
        for table in tables:
            place = place.setdefault(table, {})
        place[last] = value
    network = Network(document)
    network.document = document
    return network


def multiply_adds(network):
    """Of the forward pass of one sample: products of convolutions and dense layers."""
    count = 0

    def add(module, inputs, result):
        nonlocal count
        if isinstance(module, nn.Conv2d):
            count += result.numel() * module.weight[0].numel()
        elif isinstance(module, nn.Linear):
            count += result.numel() * module.in_features

    hooks = [module.register_forward_hook(add) for module in network.modules()]
    network.eval()
    with torch.no_grad():
        network(torch.zeros(1, *network.sample, dtype=torch.long if network.vocabulary else None))
    network.train()
    for hook in hooks:
        hook.remove()
    return count
