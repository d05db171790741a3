#!/usr/bin/env python3
"""The peer: a training step of a model file in PyTorch, on a fixed batch, and its layers one by one.

    perf/pytorch_step.py inputs/alexnet.toml --batch 256 --precision tf32 --device cuda

prints one JSON object: {"step_seconds", "torch", "layout", "layers": [{"layer", "forward_seconds", "backward_seconds"}]}.
The best of PyTorch's two memory layouts is taken. Understands the layers of inputs/; needs Python 3.11 and PyTorch.
"""
import argparse
import json
import statistics
import sys
import time
import tomllib

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return x + self.body(x)


def layers_of(tables, shape):
    """Modules of a list of layers, with names, and the shape after them."""
    made = []

    def add(name, module):
        nonlocal shape
        made.append((name, module))
        with torch.no_grad():
            shape = list(module(torch.zeros(1, *shape)).shape[1:])

    for number, table in enumerate(tables):
        table = dict(table)
        for _ in range(table.pop("repeat", 1)):
            op = table.get("op")
            name = table.get("name", f"{op}_{number}")
            if op is None:
                inner, shape = layers_of(table["layers"], shape)
                made += inner
                continue
            if op == "conv2d":
                add(name, nn.Conv2d(shape[0], table["channels"], table["kernel"], table.get("stride", 1),
                                    table.get("padding", 0), table.get("dilation", 1), table.get("groups", 1),
                                    table.get("bias", True)))
            elif op == "dense":
                add(name, nn.Linear(shape[0], table["units"], table.get("bias", True)))
            elif op in ("max_pool", "avg_pool"):
                pool = nn.MaxPool2d if op == "max_pool" else nn.AvgPool2d
                add(name, pool(table["kernel"], table.get("stride"), table.get("padding", 0)))
            elif op == "global_avg_pool":
                add(name, nn.AdaptiveAvgPool2d(1))
            elif op == "flatten":
                add(name, nn.Flatten())
            elif op == "dropout":
                add(name, nn.Dropout(table["rate"]))
            elif op == "residual":
                body, _ = layers_of(table["body"], shape)
                add(name, Residual(nn.Sequential(*(module for _, module in body))))
            elif op in ("relu", "tanh", "sigmoid"):
                table["activation"] = op
            else:
                sys.exit(f"pytorch_step: layer {name}: no operator {op}")
            activation = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}.get(table.get("activation"))
            if activation is not None:
                made.append((name + ".activation", activation()))
    return made, shape


def timed(device, work, repeats=5, least=0.05):
    """Seconds of one call: the median of `repeats` samples of at least `least` seconds."""
    def sample(calls):
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    for _ in range(3):
        sample(1)
    calls = 1
    while sample(calls) < least:
        calls *= 2
    return statistics.median(sample(calls) / calls for _ in range(repeats))


def step_seconds(net, x, labels, device):
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4)
    loss = nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(net(x), labels).backward()
        optimizer.step()

    return timed(device, step)


def layer_seconds(made, x, device):
    lines = []
    for name, module in made:
        x = x.detach().requires_grad_(True)
        y = module(x)
        dy = torch.randn_like(y)
        forward = timed(device, lambda: module(x), 3, 0.01)
        both = timed(device, lambda: torch.autograd.backward(module(x), dy), 3, 0.01)
        lines.append({"layer": name, "forward_seconds": forward, "backward_seconds": max(both - forward, 0.0)})
        x = y
    return lines


def main():
    parser = argparse.ArgumentParser(description="A training step of a model file in PyTorch.")
    parser.add_argument("model")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--precision", choices=["fp32", "tf32"], default="fp32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--layers", action="store_true", help="time the layers one by one, too")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = arguments.precision == "tf32"
    torch.backends.cudnn.benchmark = True
    with open(arguments.model, "rb") as file:
        document = tomllib.load(file)
    batch = arguments.batch or document["data"]["batch"]
    shape = document["model"]["input"]
    torch.manual_seed(1)
    made, out = layers_of(document["model"]["layers"], shape)
    result = {"model": document["model"]["name"], "batch": batch, "torch": torch.__version__}
    for layout in (torch.channels_last, torch.contiguous_format):
        net = nn.Sequential(*(module for _, module in made)).to(arguments.device).to(memory_format=layout)
        x = torch.randn(batch, *shape, device=arguments.device)
        if x.dim() == 4:
            x = x.to(memory_format=layout)
        labels = torch.randint(out[0], (batch,), device=arguments.device)
        seconds = step_seconds(net, x, labels, arguments.device)
        if seconds < result.get("step_seconds", float("inf")):
            result["step_seconds"] = seconds
            result["layout"] = str(layout)
            if arguments.layers:
                result["layers"] = layer_seconds(made, x, arguments.device)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
