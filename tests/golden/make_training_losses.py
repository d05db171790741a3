#!/usr/bin/env python3
"""Trains the networks of training_cases.py in PyTorch, in fp64, from the weights that SoyBean begins with and on the same
batches, and writes the losses of 100 steps to training_losses.json.

    SOYBEAN_BIN=build/bin python3 tests/golden/make_training_losses.py      (needs PyTorch, NumPy, h5py)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import h5py
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "perf")]
import pytorch_model  # noqa: E402
import training_cases  # noqa: E402


def first_weights(model, folder):
    """Parameters before the first step: those after a step too short to change any."""
    still = ["train.steps=1", "train.optimizer.lr=1e-300", "train.precision=fp64", "train.validate_every=0", "run.dir=first"]
    settings = [word for setting in still for word in ("--set", setting)]
    program = pathlib.Path(os.environ["SOYBEAN_BIN"]).resolve() / "soybean_train"
    subprocess.run([str(program), model.name, *settings], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    weights = {}
    with h5py.File(folder / "first" / "checkpoints" / "step-00000001.h5") as file:
        file["parameters"].visititems(lambda name, item: weights.update({name: item[()]})
                                      if isinstance(item, h5py.Dataset) else None)
    return weights


def train(case, folder):
    model = folder / f"{case}.toml"
    model.write_text(training_cases.CASES[case])
    if case == "resnet_cifar":
        training_cases.write_cifar(folder)
    network = pytorch_model.load(model).double()
    weights = first_weights(model, folder)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            _, layer, what = name.split(".", 2)
            parameter.copy_(torch.from_numpy(weights.pop(f"{layer.replace('/', '.')}.{what}")))
    assert not weights, f"weights that PyTorch's network has not: {list(weights)}"
    x, labels = map(torch.from_numpy, training_cases.samples(case, folder))
    settings = network.document["train"]["optimizer"]
    optimizer = torch.optim.SGD(network.parameters(), lr=settings["lr"], momentum=settings["momentum"],
                                weight_decay=settings["weight_decay"])
    batch, losses = network.document["data"]["batch"], []
    for step in range(training_cases.STEPS):
        rows = [(step * batch + row) % len(x) for row in range(batch)]  # what is left of an epoch begins the next batch
        optimizer.zero_grad()
        loss = network.loss(network(x[rows]), labels[rows].long())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    losses = {}
    for case in training_cases.CASES:
        with tempfile.TemporaryDirectory() as folder:
            losses[case] = train(case, pathlib.Path(folder))
            print(f"{case}: {losses[case][0]:.6f} … {losses[case][-1]:.6f}")
    (HERE / "training_losses.json").write_text(json.dumps(losses, indent=1) + "\n")


if __name__ == "__main__":
    main()
