#!/usr/bin/env python3
"""Writes operator_values.json: what PyTorch computes in fp64 for small models of one or a few layers each.

usage: make_operator_values.py        (needs PyTorch; any version of 2.x gives the same values to 1e-14)

Each case is a model file's [model] table and the same network in PyTorch. The samples are multiplied by a parameter
`factor` of their shape before the first layer sees them, so that the gradient by `factor` shows the gradient by the
input. tests/ops/torch_values_test.cpp builds the model, feeds `inputs` and compares:
  values     tensors of the graph after a training step, by name: layers' results, next values of running statistics
  gradients  of the loss, by parameter
  evaluated  tensors after a validation batch
All arrays are flat, in logical (row-major, channels first) order.
"""
import json
import pathlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
CASES = []


class Run:
    """One case: draws inputs and notes results. Names are those of the graph's tensors."""

    def __init__(self, name, sample, batch):
        self.generator = torch.Generator().manual_seed(sum(map(ord, name)))
        self.inputs, self.values, self.evaluated, self.parameters = {}, {}, {}, {}
        self.batch = batch
        self.x = self.parameter("factor", batch, *sample) * self.source("input", batch, *sample)

    def draw(self, *shape, low=-2.0, high=2.0):
        """Random numbers of three digits, which keeps the file small."""
        return torch.round((low + (high - low) * torch.rand(*shape, generator=self.generator)) * 1e3) / 1e3

    def source(self, name, *shape, low=-2.0, high=2.0):
        self.inputs[name] = self.draw(*shape, low=low, high=high)
        return self.inputs[name]

    def parameter(self, name, *shape, low=-1.5, high=1.5):
        self.parameters[name] = self.source(name, *shape, low=low, high=high).clone().requires_grad_()
        return self.parameters[name]

    def classes(self, logits):
        """The default loss: cross-entropy of labels drawn here."""
        labels = torch.randint(logits.shape[1], (self.batch,), generator=self.generator)
        weights = torch.full((self.batch,), 1 / self.batch)
        self.inputs["labels"], self.inputs["sample_weights"] = labels, weights
        return (weights * F.cross_entropy(logits, labels, reduction="none")).sum()


def case(name, layers, sample=(3, 3, 2), batch=2, model=""):
    """Decorates f(run) -> logits [B, K], or the loss itself (a scalar). `layers` are TOML tables, one string."""

    def add(f):
        text = f"input = {list(sample)}\n{model}layers = [\n{layers}\n]\n"
        if "loss" not in model:
            text += 'loss = "softmax_cross_entropy"\n'
        CASES.append((name, text, sample, batch, f))
        return f

    return add


def flat(y):
    return y.flatten(1)


# --- one function per case, family by family --------------------------------------------------------------------------

def unary(name, keys, f):
    """A layer `y` of one operator on its own, flattened into the loss."""

    @case(name, f'  {{ op = "{keys[0]}", name = "y"{"".join(", " + k for k in keys[1:])} }},\n  {{ op = "flatten" }},')
    def _(run):
        run.values["y"] = f(run.x)
        return flat(run.values["y"])


unary("relu", ["relu"], F.relu)
unary("tanh", ["tanh"], torch.tanh)
unary("sigmoid", ["sigmoid"], torch.sigmoid)
unary("leaky_relu", ["leaky_relu"], F.leaky_relu)
unary("leaky_relu_slope", ["leaky_relu", "slope = 0.3"], lambda x: F.leaky_relu(x, 0.3))
unary("elu", ["elu"], F.elu)
unary("elu_alpha", ["elu", "alpha = 0.4"], lambda x: F.elu(x, 0.4))
unary("gelu", ["gelu"], F.gelu)
unary("gelu_tanh", ["gelu", 'approximate = "tanh"'], lambda x: F.gelu(x, approximate="tanh"))
unary("silu", ["silu"], F.silu)
unary("hard_swish", ["hard_swish"], F.hardswish)


@case("activations_of_layers", """  { op = "dense", name = "a", units = 5, activation = "gelu" },
  { op = "dense", name = "b", units = 4, activation = "hard_swish" },
  { op = "dense", name = "c", units = 4, activation = "elu" },
  { op = "dense", name = "d", units = 3, activation = "leaky_relu" },""", sample=(6,), batch=3)
def _(run):
    x = run.x
    for name, units, activation in (("a", 5, F.gelu), ("b", 4, F.hardswish), ("c", 4, F.elu), ("d", 3, F.leaky_relu)):
        weight = run.parameter(f"{name}.weight", units, x.shape[1])
        x = activation(F.linear(x, weight, run.parameter(f"{name}.bias", units)))
    return x


# --- writing ----------------------------------------------------------------------------------------------------------


def numbers(tensor):
    """Integers as such, the rest with 16 digits."""
    return [v if isinstance(v, int) else float(f"{v:.16g}") for v in tensor.detach().flatten().tolist()]


def compute(name, text, sample, batch, f):
    run = Run(name, sample, batch)
    result = f(run)
    loss = result if result.dim() == 0 else run.classes(result)
    names = list(run.parameters)
    gradients = torch.autograd.grad(loss, [run.parameters[n] for n in names])
    run.values["loss"] = loss
    each = lambda tensors: {n: numbers(t) for n, t in tensors.items()}
    return {"model": text, "batch": batch, "inputs": each(run.inputs), "values": each(run.values),
            "gradients": each(dict(zip(names, gradients))), "evaluated": each(run.evaluated)}


def main():
    names = [c[0] for c in CASES]
    assert len(set(names)) == len(names), "two cases of one name"
    lines = [f"{json.dumps(c[0])}: {json.dumps(compute(*c))}" for c in sorted(CASES, key=lambda c: c[0])]
    path = pathlib.Path(__file__).with_name("operator_values.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
