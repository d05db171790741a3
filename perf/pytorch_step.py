#!/usr/bin/env python3
"""The peer: a training step of a model file in PyTorch, on a fixed batch, and its layers one by one.

    perf/pytorch_step.py inputs/alexnet.toml --batch 256 --precision tf32 --device cuda

prints one JSON object: {"step_seconds", "torch", "layout", "layers": [{"layer", "forward_seconds", "backward_seconds"}]}.
The best of PyTorch's two memory layouts is taken. Understands the layers of inputs/; needs Python 3.11 and PyTorch.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import pytorch_model  # noqa: E402


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


def step_seconds(network, x, labels, device):
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        network.loss(network(x), labels).backward()
        optimizer.step()

    return timed(device, step)


def layer_seconds(network, x, device):
    lines, results = [], {"input": x}
    for name, key, inputs in network.order:
        module = network.layers[key]
        operands = [results[i].detach().requires_grad_(True) for i in inputs]
        y = module(*operands)
        dy = torch.randn_like(y)
        forward = timed(device, lambda: module(*operands), 3, 0.01)
        both = timed(device, lambda: torch.autograd.backward(module(*operands), dy), 3, 0.01)
        lines.append({"layer": key.replace("/", "."), "forward_seconds": forward,
                      "backward_seconds": max(both - forward, 0.0)})
        results[name] = y
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
    torch.manual_seed(1)
    network = pytorch_model.load(arguments.model)
    batch = arguments.batch or network.document["data"]["batch"]
    result = {"model": network.document["model"]["name"], "batch": batch, "torch": torch.__version__}
    network = network.to(arguments.device)
    for layout in (torch.channels_last, torch.contiguous_format):
        network = network.to(memory_format=layout)
        x = torch.randn(batch, *network.sample, device=arguments.device)
        if x.dim() == 4:
            x = x.to(memory_format=layout)
        labels = torch.randint(network.classes(), (batch,), device=arguments.device)
        seconds = step_seconds(network, x, labels, arguments.device)
        if seconds < result.get("step_seconds", float("inf")):
            result["step_seconds"] = seconds
            result["layout"] = str(layout)
            if arguments.layers:
                result["layers"] = layer_seconds(network, x, arguments.device)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
