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
from torch import nn

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


def case(name, layers, sample=(3, 3, 2), batch=2, model="", mixed=False):
    """Decorates f(run) -> logits [B, K], or the loss itself (a scalar). `layers` are TOML tables, one string. `mixed`: of
    samples that are mixed with partners."""

    def add(f):
        text = f"input = {list(sample)}\n{model}layers = [\n{layers}\n]\n"
        if "loss" not in model:
            text += 'loss = "softmax_cross_entropy"\n'
        CASES.append((name, text, sample, batch, f, mixed))
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


@case("relu6", """  { op = "scale", factor = 5 },
  { op = "relu6", name = "y" },
  { op = "flatten" },""")
def _(run):
    run.values["y"] = F.relu6(5 * run.x)
    return flat(run.values["y"])


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


# --- joining, reordering, resizing ------------------------------------------------------------------------------------


@case("concat_and_slice", """  { op = "concat", name = "y", branches = [
    [],
    [{ op = "tanh", name = "t" }, { op = "slice", name = "s", begin = 1, end = 3 }],
  ] },
  { op = "flatten", name = "f" },
  { op = "dense", name = "d", units = 4 },
  { op = "concat", name = "z", inputs = ["d", "f"] },""")
def _(run):
    y = torch.cat([run.x, torch.tanh(run.x)[:, 1:3]], 1)
    d = F.linear(flat(y), run.parameter("d.weight", 4, 30), run.parameter("d.bias", 4))
    run.values["y"], run.values["z"] = y, torch.cat([d, flat(y)], 1)
    return run.values["z"]


@case("branches_of_add_and_mul", """  { op = "add", name = "a", branches = [
    [], [{ op = "sigmoid" }, { op = "tanh" }] ], activation = "relu" },
  { op = "mul", name = "m", branches = [[{ op = "identity" }], [{ op = "tanh" }]] },
  { op = "flatten" },""")
def _(run):
    run.values["a.relu"] = torch.relu(run.x + torch.tanh(torch.sigmoid(run.x)))
    run.values["m"] = run.values["a.relu"] * torch.tanh(run.values["a.relu"])
    return flat(run.values["m"])


unary("reshape_images", ["reshape", "shape = [2, -1, 3]"], lambda x: x.reshape(-1, 2, 3, 3))
unary("transpose", ["transpose", "dim0 = 1", "dim1 = 3"], lambda x: x.transpose(1, 3))
unary("permute", ["permute", "dims = [0, 3, 1, 2]"], lambda x: x.permute(0, 3, 1, 2))
unary("pad", ["pad", "padding = [1, 0, 2, 3]"], nn.ZeroPad2d((0, 3, 1, 2)))
unary("upsample_nearest", ["upsample", "scale_factor = [2, 3]"], lambda x: F.interpolate(x, scale_factor=(2, 3)))
unary("upsample_nearest_size", ["upsample", "size = [2, 5]"], lambda x: F.interpolate(x, size=(2, 5)))
for _aligned in (False, True):
    for _size in ((7, 5), (2, 1)):
        unary(f"upsample_bilinear_{_size[0]}_{'aligned' if _aligned else 'centred'}",
              ["upsample", f"size = {list(_size)}", 'mode = "bilinear"', f"align_corners = {str(_aligned).lower()}"],
              lambda x, a=_aligned, s=_size: F.interpolate(x, size=s, mode="bilinear", align_corners=a))
unary("upsample_bilinear_scale", ["upsample", "scale_factor = 3", 'mode = "bilinear"'],
      lambda x: F.interpolate(x, scale_factor=3, mode="bilinear"))


@case("reshape_features", """  { op = "flatten" },
  { op = "dense", name = "d", units = 12 },
  { op = "reshape", name = "y", shape = [3, 2, 2] },
  { op = "max_pool", name = "p", kernel = [2, 1] },
  { op = "flatten" },""")
def _(run):
    d = F.linear(flat(run.x), run.parameter("d.weight", 12, 18), run.parameter("d.bias", 12))
    run.values["y"] = d.reshape(-1, 3, 2, 2)
    run.values["p"] = F.max_pool2d(run.values["y"], (2, 1))
    return flat(run.values["p"])


# --- windows ----------------------------------------------------------------------------------------------------------


def pool(name, keys, f, size):
    """A pooling layer `y` on 2 x height x width images."""

    @case(name, f'  {{ op = "{keys[0]}", name = "y"{"".join(", " + k for k in keys[1:])} }},\n  {{ op = "flatten" }},',
          sample=(2, *size))
    def _(run):
        run.values["y"] = f(run.x)
        return flat(run.values["y"])


CEIL = "ceil_mode = true"
pool("max_pool_ceil", ["max_pool", "kernel = 3", "stride = 2", CEIL], nn.MaxPool2d(3, 2, ceil_mode=True), (6, 7))
pool("max_pool_last_window", ["max_pool", "kernel = 2", "stride = 3", "padding = 1", CEIL],
     nn.MaxPool2d(2, 3, 1, ceil_mode=True), (5, 6))
pool("max_pool_dilated", ["max_pool", "kernel = [2, 3]", "stride = [1, 2]", "padding = 1", "dilation = 2", CEIL],
     nn.MaxPool2d((2, 3), (1, 2), 1, 2, ceil_mode=True), (5, 6))
pool("max_pool_uneven", ["max_pool", "kernel = 3", "stride = 2", "padding = [0, 1, 1, 0]"],
     lambda x: F.max_pool2d(F.pad(x, (1, 0, 0, 1), value=-float("inf")), 3, 2), (6, 7))
pool("avg_pool_ceil", ["avg_pool", "kernel = 3", "stride = 2", "padding = 1", CEIL],
     nn.AvgPool2d(3, 2, 1, ceil_mode=True), (6, 7))
pool("avg_pool_image_only", ["avg_pool", "kernel = 3", "stride = 1", "padding = 1", "count_include_pad = false"],
     nn.AvgPool2d(3, 1, 1, count_include_pad=False), (4, 5))
pool("avg_pool_image_only_ceil", ["avg_pool", "kernel = [3, 2]", "stride = 2", "padding = 1", CEIL,
                                  "count_include_pad = false"],
     nn.AvgPool2d((3, 2), 2, 1, ceil_mode=True, count_include_pad=False), (6, 7))
pool("avg_pool_uneven", ["avg_pool", "kernel = 2", "stride = 1", "padding = [1, 0, 0, 1]"],
     lambda x: F.avg_pool2d(F.pad(x, (0, 1, 1, 0)), 2, 1), (3, 4))


def convolution(name, keys, weight, f, size=(5, 4), channels=4):
    """A convolution `y` with bias on 4 x height x width images; f(x, weight, bias)."""

    @case(name, f'  {{ op = "{keys[0]}", name = "y"{"".join(", " + k for k in keys[1:])} }},\n  {{ op = "flatten" }},',
          sample=(4, *size))
    def _(run):
        y = f(run.x, run.parameter("y.weight", *weight), run.parameter("y.bias", channels))
        run.values["y.bias_add"] = y
        return flat(y)


convolution("conv2d_uneven", ["conv2d", "channels = 4", "kernel = [3, 2]", "padding = [0, 1, 2, 2]"], (4, 4, 3, 2),
            lambda x, w, b: F.conv2d(F.pad(x, (1, 2, 0, 2)), w, b))
convolution("conv2d_same", ["conv2d", "channels = 4", "kernel = [4, 3]", 'padding = "same"', "dilation = [1, 2]"],
            (4, 4, 4, 3), lambda x, w, b: F.conv2d(x, w, b, padding="same", dilation=(1, 2)))
convolution("conv2d_rectangular", ["conv2d", "channels = 4", "kernel = [1, 7]", "padding = [0, 3]"], (4, 4, 1, 7),
            lambda x, w, b: F.conv2d(x, w, b, padding=(0, 3)))
convolution("conv2d_depthwise", ["conv2d", "channels = 8", "kernel = 3", "padding = 1", "stride = [2, 1]", "groups = 4"],
            (8, 1, 3, 3), lambda x, w, b: F.conv2d(x, w, b, padding=1, stride=(2, 1), groups=4), channels=8)
convolution("conv2d_grouped", ["conv2d", "channels = 6", "kernel = 2", "dilation = 2", "groups = 2"], (6, 2, 2, 2),
            lambda x, w, b: F.conv2d(x, w, b, dilation=2, groups=2), channels=6)
convolution("conv_transpose2d", ["conv_transpose2d", "channels = 3", "kernel = 3", "stride = 2", "padding = 1",
                                 "output_padding = [1, 0]"], (4, 3, 3, 3),
            lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, (1, 0)), (3, 4), 3)
convolution("conv_transpose2d_grouped", ["conv_transpose2d", "channels = 6", "kernel = [2, 3]", "stride = [1, 2]",
                                         "groups = 2", "dilation = [2, 1]"], (4, 3, 2, 3),
            lambda x, w, b: F.conv_transpose2d(x, w, b, (1, 2), 0, 0, 2, (2, 1)), (3, 2), 6)


def batch_norm(run, name, x, eps=1e-5, momentum=0.1, affine=True):
    """Layer `name` in training and in validation; notes its next running statistics."""
    channels = x.shape[1]
    mean = run.source(f"{name}.running_mean", channels)
    var = run.source(f"{name}.running_var", channels, low=0.2)
    weight = run.parameter(f"{name}.weight", channels) if affine else None
    bias = run.parameter(f"{name}.bias", channels) if affine else None
    run.evaluated[name] = F.batch_norm(x, mean, var, weight, bias, False, momentum, eps)
    next_mean, next_var = mean.clone(), var.clone()
    y = F.batch_norm(x, next_mean, next_var, weight, bias, True, momentum, eps)
    run.values.update({name: y, f"{name}.running_mean.next": next_mean, f"{name}.running_var.next": next_var})
    return y


@case("batch_norm", '  { op = "batch_norm", name = "y", activation = "tanh" },\n  { op = "flatten" },', batch=3)
def _(run):
    return flat(torch.tanh(batch_norm(run, "y", run.x)))


@case("batch_norm_keys", '  { op = "batch_norm", name = "y", eps = 0.02, momentum = 0.35, affine = false },\n'
      '  { op = "flatten" },')
def _(run):
    return flat(batch_norm(run, "y", run.x, eps=0.02, momentum=0.35, affine=False))


@case("batch_norm_features", """  { op = "dense", name = "a", units = 4 },
  { op = "batch_norm", name = "n", activation = "relu" },
  { op = "dense", name = "b", units = 3, bias = false },
  { op = "batch_norm", name = "m", momentum = 1 },""", sample=(5,), batch=4)
def _(run):
    a = F.linear(run.x, run.parameter("a.weight", 4, 5), run.parameter("a.bias", 4))
    n = F.relu(batch_norm(run, "n", a))
    m = batch_norm(run, "m", F.linear(n, run.parameter("b.weight", 3, 4)), momentum=1)
    # In validation the second layer reads what the first gives there.
    running = [run.inputs[f"m.running_{s}"] for s in ("mean", "var")]
    evaluated = F.linear(F.relu(run.evaluated["n"]), run.parameters["b.weight"])
    run.evaluated["m"] = F.batch_norm(evaluated, *running, run.parameters["m.weight"], run.parameters["m.bias"])
    return m



def norm_case(name, keys, affine, f, sample=(4, 3, 2)):
    """A layer `y` with weight and bias of shape `affine`."""

    @case(name, f'  {{ op = "{keys[0]}", name = "y"{"".join(", " + k for k in keys[1:])} }},\n  {{ op = "flatten" }},'
          if len(sample) == 3 else f'  {{ op = "{keys[0]}", name = "y"{"".join(", " + k for k in keys[1:])} }},', sample=sample)
    def _(run):
        weights = [run.parameter(f"y.{n}", *affine) for n in ("weight", "bias")] if affine else [None, None]
        run.values["y"] = f(run.x, *weights)
        return flat(run.values["y"])


norm_case("group_norm", ["group_norm", "groups = 2"], (4,), lambda x, w, b: F.group_norm(x, 2, w, b))
norm_case("group_norm_keys", ["group_norm", "groups = 4", "eps = 0.03", "affine = false"], None,
          lambda x, w, b: F.group_norm(x, 4, eps=0.03))
norm_case("group_norm_features", ["group_norm", "groups = 2"], (6,), lambda x, w, b: F.group_norm(x, 2, w, b), (6,))
norm_case("layer_norm", ["layer_norm"], (4, 3, 2), lambda x, w, b: F.layer_norm(x, (4, 3, 2), w, b))
norm_case("layer_norm_keys", ["layer_norm", "eps = 0.03", "affine = false"], None,
          lambda x, w, b: F.layer_norm(x, (4, 3, 2), eps=0.03))
norm_case("layer_norm_features", ["layer_norm"], (6,), lambda x, w, b: F.layer_norm(x, (6,), w, b), (6,))
norm_case("layer_norm_channels", ["layer_norm", 'over = "channels"'], (4,),
          lambda x, w, b: F.layer_norm(x.movedim(1, -1), (4,), w, b).movedim(-1, 1))
norm_case("lrn", ["lrn", "size = 3"], None, lambda x, w, b: F.local_response_norm(x, 3))
norm_case("lrn_keys", ["lrn", "size = 4", "alpha = 0.6", "beta = 1.3", "k = 0.7"], None,
          lambda x, w, b: F.local_response_norm(x, 4, alpha=0.6, beta=1.3, k=0.7), (7, 2, 2))

unary("softmax", ["softmax"], lambda x: F.softmax(x, 1))
unary("log_softmax", ["log_softmax"], lambda x: F.log_softmax(x, 1))
unary("scale", ["scale", "factor = -0.6"], lambda x: -0.6 * x)
unary("shift", ["shift", "by = 1.5"], lambda x: x + 1.5)
unary("pow", ["pow", "exponent = 3"], lambda x: x**3)
unary("square", ["pow", "exponent = 2"], lambda x: x**2)
unary("exp", ["exp"], torch.exp)
unary("abs", ["abs"], torch.abs)
unary("neg", ["neg"], torch.neg)
unary("clamp", ["clamp", "min = -0.5", "max = 0.7"], lambda x: torch.clamp(x, -0.5, 0.7))
unary("clamp_below", ["clamp", "max = 0.3"], lambda x: torch.clamp(x, max=0.3))
unary("mean_of_images", ["mean", "dims = [2, 3]", "keepdim = true"], lambda x: x.mean((2, 3), keepdim=True))
unary("mean_of_channels", ["mean", "dims = [1]", "keepdim = true"], lambda x: x.mean(1, keepdim=True).clone())
unary("sum_of_images", ["sum", "dims = [2, 3]", "keepdim = true"], lambda x: x.sum((2, 3), keepdim=True))


@case("roots_and_logarithms", """  { op = "abs" },
  { op = "shift", name = "a", by = 0.5 },
  { op = "sqrt", name = "root" },
  { op = "log", name = "logarithm", input = "a" },
  { op = "pow", name = "power", input = "a", exponent = -1.5 },
  { op = "sub", name = "difference", inputs = ["root", "logarithm"] },
  { op = "div", name = "quotient", inputs = ["difference", "power"] },
  { op = "mean", dims = [2, 3] },""")
def _(run):
    a = run.x.abs() + 0.5
    run.values.update({"root": a.sqrt(), "logarithm": a.log(), "power": a**-1.5})
    run.values["difference"] = run.values["root"] - run.values["logarithm"]
    run.values["quotient"] = run.values["difference"] / run.values["power"]
    return run.values["quotient"].mean((2, 3))


@case("squeeze_and_excitation", """  { op = "mean", name = "squeeze", dims = [2, 3] },
  { op = "dense", name = "a", units = 2, activation = "relu" },
  { op = "dense", name = "b", units = 4, activation = "sigmoid" },
  { op = "mul", name = "y", inputs = ["input", "b"] },
  { op = "flatten" },""", sample=(4, 3, 2))
def _(run):
    squeezed = run.x.mean((2, 3))
    a = F.relu(F.linear(squeezed, run.parameter("a.weight", 2, 4), run.parameter("a.bias", 2)))
    gate = torch.sigmoid(F.linear(a, run.parameter("b.weight", 4, 2), run.parameter("b.bias", 4)))
    run.values["y"] = run.x * gate[:, :, None, None]
    return flat(run.values["y"])


for op, f in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div),
              ("maximum", torch.maximum), ("minimum", torch.minimum)):
    for kind, dims in (("channel", [2, 3]), ("position", [1]), ("sample", [1, 2, 3])):
        for order in ("", "_turned"):
            inputs = '["small", "input"]' if order else '["input", "small"]'

            @case(f"{op}_per_{kind}{order}", f"""  {{ op = "mean", name = "mean", dims = {dims}, keepdim = true }},
  {{ op = "exp", name = "small" }},
  {{ op = "{op}", name = "y", inputs = {inputs} }},
  {{ op = "flatten" }},""", sample=(3, 2, 2))
            def _(run, f=f, dims=dims, order=order):
                small = run.x.mean(dims, keepdim=True).exp()
                run.values["y"] = f(small, run.x) if order else f(run.x, small)
                return flat(run.values["y"])


@case("ties", """  { op = "relu", name = "a" },
  { op = "clamp", name = "b", min = 0 },
  { op = "maximum", name = "most", inputs = ["a", "b"] },
  { op = "minimum", name = "least", inputs = ["a", "b"] },
  { op = "sub", name = "c", inputs = ["input", "least"] },
  { op = "mul", name = "y", inputs = ["most", "c"] },
  { op = "flatten" },""", sample=(3, 2, 2))
def _(run):
    a = F.relu(run.x)
    b = torch.clamp(a, min=0)
    most, least = torch.maximum(a, b), torch.minimum(a, b)
    run.values["y"] = most * (run.x - least)
    return flat(run.values["y"])


# --- losses -----------------------------------------------------------------------------------------------------------


def head(run, layer, x, units):
    return F.linear(x, run.parameter(f"{layer}.weight", units, x.shape[1]), run.parameter(f"{layer}.bias", units))


def labels_of(run, classes):
    """Labels and the weights of a mean over the batch; rows that count are all of them."""
    run.inputs["labels"] = torch.randint(classes, (run.batch,), generator=run.generator)
    run.inputs["sample_weights"] = torch.full((run.batch,), 1 / run.batch)
    return run.inputs["labels"]


HEAD = '  { op = "dense", name = "y", units = %d },'


@case("label_smoothing", HEAD % 5, sample=(4,), batch=6,
      model='loss = { op = "softmax_cross_entropy", label_smoothing = 0.15 }\ntop_k = 3\n')
def _(run):
    y = head(run, "y", run.x, 5)
    labels = labels_of(run, 5)
    run.values["loss.correct"] = (y.argmax(1) == labels).sum()
    run.values["loss.top3"] = (y.topk(3, 1).indices == labels[:, None]).any(1).sum()
    return F.cross_entropy(y, labels, label_smoothing=0.15)


@case("many_classes", HEAD % 256, sample=(1,), batch=3,
      model='loss = { op = "softmax_cross_entropy", label_smoothing = 0.1 }\ntop_k = 60\n')
def _(run):
    y = head(run, "y", run.x, 256)
    labels = labels_of(run, 256)
    run.values["loss.correct"] = (y.argmax(1) == labels).sum()
    run.values["loss.top60"] = (y.topk(60, 1).indices == labels[:, None]).any(1).sum()
    return F.cross_entropy(y, labels, label_smoothing=0.1)


def mixed(run, y, classes, **options):
    """share·(cross-entropy of the label) + (1 − share)·(that of the partner's); shares of three digits."""
    labels = labels_of(run, classes)
    partners = run.inputs["partner_labels"] = torch.randint(classes, (run.batch,), generator=run.generator)
    partners[0] = labels[0]
    shares = run.source("shares", run.batch, low=0.0, high=1.0)
    shares[-1] = 1
    run.values["loss.correct"] = (y.argmax(1) == labels).sum()
    own, other = (F.cross_entropy(y, t, reduction="none", **options) for t in (labels, partners))
    return (shares * own + (1 - shares) * other).mean()


@case("mixed_samples", HEAD % 5, sample=(4,), batch=6, mixed=True,
      model='loss = { op = "softmax_cross_entropy", label_smoothing = 0.15 }\n')
def _(run):
    return mixed(run, head(run, "y", run.x, 5), 5, label_smoothing=0.15)


@case("mixed_samples_of_many_classes", HEAD % 256, sample=(1,), batch=3, mixed=True, model="top_k = 60\n")
def _(run):
    y = head(run, "y", run.x, 256)
    loss = mixed(run, y, 256)
    run.values["loss.top60"] = (y.topk(60, 1).indices == run.inputs["labels"][:, None]).any(1).sum()
    return loss


@case("mse_of_targets", HEAD % 3, sample=(4,), batch=5, model='loss = { op = "mse", target = "targets" }\n')
def _(run):
    run.inputs["sample_weights"] = torch.full((run.batch,), 1 / run.batch)
    return F.mse_loss(head(run, "y", run.x, 3), run.source("targets", run.batch, 3))


@case("mse_of_target_images", '  { op = "tanh" },', sample=(2, 3, 4), model='loss = { op = "mse", target = "targets" }\n')
def _(run):
    run.inputs["sample_weights"] = torch.full((run.batch,), 1 / run.batch)
    return F.mse_loss(torch.tanh(run.x), run.source("targets", run.batch, 2, 3, 4))


@case("binary_cross_entropy_of_targets", HEAD % 4, sample=(3,), batch=5,
      model='loss = { op = "binary_cross_entropy", target = "targets" }\n')
def _(run):
    run.inputs["sample_weights"] = torch.full((run.batch,), 1 / run.batch)
    y = head(run, "y", run.x, 4)
    targets = run.source("targets", run.batch, 4, low=0.0, high=1.0)
    run.values["loss.correct"] = ((y > 0) == (targets > 0.5)).sum() / 4
    return F.binary_cross_entropy_with_logits(y, targets)


@case("mse_of_one_value", HEAD % 1, sample=(4,), batch=5, model='loss = "mse"\n')
def _(run):
    return F.mse_loss(head(run, "y", run.x, 1), labels_of(run, 9)[:, None].double())


@case("mse_of_classes", HEAD % 3, sample=(4,), batch=5, model='loss = "mse"\n')
def _(run):
    y = head(run, "y", run.x, 3)
    return F.mse_loss(y, F.one_hot(labels_of(run, 3), 3).double())


@case("mse_of_samples", '  { op = "conv2d", name = "c", channels = 2, kernel = 3, padding = 1 },', sample=(2, 3, 4),
      model='loss = { op = "mse", target = "input" }\n')
def _(run):
    run.inputs["sample_weights"] = torch.full((run.batch,), 1 / run.batch)
    y = F.conv2d(run.x, run.parameter("c.weight", 2, 2, 3, 3), run.parameter("c.bias", 2), padding=1)
    return F.mse_loss(y, run.inputs["input"])


@case("binary_cross_entropy", HEAD % 1, sample=(4,), batch=6, model='loss = "binary_cross_entropy"\n')
def _(run):
    y, labels = head(run, "y", run.x, 1), labels_of(run, 2)
    run.values["loss.correct"] = ((y[:, 0] > 0) == (labels == 1)).sum()
    return F.binary_cross_entropy_with_logits(y, labels[:, None].double())


@case("binary_cross_entropy_of_classes", HEAD % 4, sample=(3,), batch=5,
      model='loss = { op = "binary_cross_entropy", target = "labels" }\n')
def _(run):
    y = head(run, "y", run.x, 4)
    return F.binary_cross_entropy_with_logits(y, F.one_hot(labels_of(run, 4), 4).double())


@case("several_losses", """  { op = "dense", name = "a", units = 4, activation = "tanh" },
  { op = "dense", name = "aux", units = 3, input = "a" },
  { op = "dense", name = "y", units = 3, input = "a" },""", sample=(5,), batch=4, model="""losses = [
  { op = "softmax_cross_entropy", name = "main" },
  { op = "softmax_cross_entropy", input = "aux", weight = 0.3, label_smoothing = 0.1 },
  { op = "binary_cross_entropy", name = "bits", input = "y", weight = 2 },
]
""")
def _(run):
    a = torch.tanh(head(run, "a", run.x, 4))
    aux, y, labels = head(run, "aux", a, 3), head(run, "y", a, 3), labels_of(run, 3)
    run.values["main"] = F.cross_entropy(y, labels)
    run.values["loss_2"] = F.cross_entropy(aux, labels, label_smoothing=0.1)
    run.values["bits"] = F.binary_cross_entropy_with_logits(y, F.one_hot(labels, 3).double())
    run.evaluated["main"] = run.values["main"]
    return run.values["main"] + 0.3 * run.values["loss_2"] + 2 * run.values["bits"]


# --- writing ----------------------------------------------------------------------------------------------------------


def numbers(tensor):
    """Integers as such, the rest with 16 digits."""
    return [v if isinstance(v, int) else float(f"{v:.16g}") for v in tensor.detach().flatten().tolist()]


def compute(name, text, sample, batch, f, mixed):
    run = Run(name, sample, batch)
    result = f(run)
    loss = result if result.dim() == 0 else run.classes(result)
    names = list(run.parameters)
    gradients = torch.autograd.grad(loss, [run.parameters[n] for n in names])
    run.values["loss"] = loss
    each = lambda tensors: {n: numbers(t) for n, t in tensors.items()}
    return {"model": text, "batch": batch, **({"mixed": True} if mixed else {}), "inputs": each(run.inputs), "values": each(run.values),
            "gradients": each(dict(zip(names, gradients))), "evaluated": each(run.evaluated)}


def main():
    names = [c[0] for c in CASES]
    assert len(set(names)) == len(names), "two cases of one name"
    lines = [f"{json.dumps(c[0])}: {json.dumps(compute(*c))}" for c in sorted(CASES, key=lambda c: c[0])]
    path = pathlib.Path(__file__).with_name("operator_values.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
