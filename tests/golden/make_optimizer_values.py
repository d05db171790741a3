#!/usr/bin/env python3
"""Writes optimizer_values.json: the losses and weights of a small network trained for some dozens of steps in fp64.

usage: make_optimizer_values.py        (needs PyTorch; any version of 2.x gives the same values to 1e-14)

The network is dense (6 -> 5), tanh, dense (5 -> 4), softmax cross-entropy, on three batches in turn. PyTorch's own
optimizers, clip_grad_norm_ and AveragedModel make the steps; for LARS and LAMB, which it has not, the equations of
their papers do, written down here in plain arithmetic. tests/ops/optimizer_values_test.cpp trains the same network.
All arrays are flat, row-major.
"""
import json
import math
import pathlib

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.set_default_dtype(torch.float64)
STEPS, BATCH, BATCHES = 36, 4, 3
NAMES = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]


def norm(x):
    return math.sqrt(sum(value * value for value in x.flatten().tolist()))


def lars(w, g, state, o, t):
    """arXiv 1708.03888, equation 6 and algorithm 1."""
    decay, norm_w, norm_g = o["weight_decay"], norm(w), norm(g)
    local = o["trust"] * norm_w / (norm_g + decay * norm_w) if norm_w > 0 else 1.0
    state["v"] = o["momentum"] * state.get("v", 0 * w) + o["lr"] * local * (g + decay * w)
    return w - state["v"]


def lamb(w, g, state, o, t):
    """arXiv 1904.00962, algorithm 2, with the identity for phi."""
    beta1, beta2 = o["beta1"], o["beta2"]
    state["m"] = beta1 * state.get("m", 0 * w) + (1 - beta1) * g
    state["v"] = beta2 * state.get("v", 0 * w) + (1 - beta2) * g * g
    m, v = state["m"] / (1 - beta1**t), state["v"] / (1 - beta2**t)
    r = m / (v.sqrt() + o["eps"]) + o["weight_decay"] * w
    norm_w, norm_r = norm(w), norm(r)
    ratio = norm_w / norm_r if norm_w > 0 and norm_r > 0 else 1.0
    return w - o["lr"] * ratio * r


class ByFormula:
    def __init__(self, formula, parameters, options):
        self.formula, self.parameters, self.options, self.t = formula, parameters, options, 0
        self.states = [{} for _ in parameters]

    def step(self):
        self.t += 1
        for p, state in zip(self.parameters, self.states):
            p.data.copy_(self.formula(p.detach().clone(), p.grad, state, self.options, self.t))


def torch_optimizer(network, o):
    """Layer fc1 has its own rate and decay where the case says so; biases without decay where it says so."""
    groups = []
    for name, p in network.named_parameters():
        layer = o.get("layers", {}).get(name.split(".")[0], {})
        if layer.get("frozen"):
            continue
        decay = layer.get("weight_decay", o.get("weight_decay", 0.0))
        if p.dim() < 2 and not o.get("decay_biases", True):
            decay = 0.0
        groups.append({"params": [p], "lr": o["lr"] * layer.get("lr_scale", 1.0), "weight_decay": decay})
    betas = {"betas": (o.get("beta1", 0.9), o.get("beta2", 0.999)), "eps": o.get("eps", 1e-8)}
    if o["name"] == "sgd":
        return torch.optim.SGD(groups, momentum=o.get("momentum", 0), nesterov=o.get("nesterov", False))
    if o["name"] == "adam":
        return torch.optim.Adam(groups, amsgrad=o.get("amsgrad", False), **betas)
    if o["name"] == "adamw":
        return torch.optim.AdamW(groups, amsgrad=o.get("amsgrad", False), **betas)
    return torch.optim.RMSprop(groups, alpha=o.get("alpha", 0.99), eps=o.get("eps", 1e-8),
                               momentum=o.get("momentum", 0), centered=o.get("centered", False))


def train(o, initial, inputs, labels):
    network = torch.nn.Sequential()
    network.add_module("fc1", torch.nn.Linear(6, 5))
    network.add_module("tanh", torch.nn.Tanh())
    network.add_module("fc2", torch.nn.Linear(5, 4))
    for name, p in network.named_parameters():
        p.data.copy_(initial[name])
    parameters = list(network.parameters())
    by_formula = {"lars": lars, "lamb": lamb}.get(o["name"])
    optimizer = ByFormula(by_formula, parameters, o) if by_formula else torch_optimizer(network, o)
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(o["average"])) if "average" in o else None
    losses, norms = [], []
    for step in range(STEPS):
        network.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(inputs[step % BATCHES]), labels[step % BATCHES])
        loss.backward()
        trained = [p for n, p in network.named_parameters()
                   if not o.get("layers", {}).get(n.split(".")[0], {}).get("frozen")]
        if "clip_norm" in o:
            norms.append(torch.nn.utils.clip_grad_norm_(trained, o["clip_norm"]).item())
        optimizer.step()
        if average:
            average.update_parameters(network)
        losses.append(loss.item())
    result = {"name": o["case"], "options": {k: v for k, v in o.items() if k != "case"}, "losses": losses}
    result["weights"] = {n: p.detach().flatten().tolist() for n, p in network.named_parameters()}
    if norms:
        result["norms"] = norms
    if average:
        result["averages"] = {n: p.detach().flatten().tolist() for n, p in average.module.named_parameters()}
    return result


CASES = [
    {"case": "sgd_nesterov_clipped", "name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01,
     "nesterov": True, "clip_norm": 0.5, "average": 0.9},
    {"case": "sgd_by_layer", "name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.05,
     "layers": {"fc1": {"lr_scale": 0.25, "weight_decay": 0.2}}},
    {"case": "sgd_frozen", "name": "sgd", "lr": 0.1, "momentum": 0.5, "clip_norm": 0.3,
     "layers": {"fc1": {"frozen": True}}},
    {"case": "adam", "name": "adam", "lr": 0.02},
    {"case": "adam_decay", "name": "adam", "lr": 0.02, "weight_decay": 0.05, "beta1": 0.8, "beta2": 0.95,
     "eps": 1e-6, "decay_biases": False, "average": 0.99},
    {"case": "adam_amsgrad", "name": "adam", "lr": 0.05, "amsgrad": True},
    {"case": "adamw", "name": "adamw", "lr": 0.02, "weight_decay": 0.1,
     "layers": {"fc1": {"lr_scale": 0.5}}},
    {"case": "adamw_amsgrad_clipped", "name": "adamw", "lr": 0.05, "weight_decay": 0.01, "amsgrad": True,
     "clip_norm": 0.2},
    {"case": "rmsprop", "name": "rmsprop", "lr": 0.01},
    {"case": "rmsprop_momentum", "name": "rmsprop", "lr": 0.005, "alpha": 0.9, "momentum": 0.9,
     "weight_decay": 0.01},
    {"case": "rmsprop_centered", "name": "rmsprop", "lr": 0.01, "centered": True, "momentum": 0.5, "average": 0.9},
    {"case": "lars", "name": "lars", "lr": 1.0, "momentum": 0.9, "weight_decay": 0.01, "trust": 0.02},
    {"case": "lars_clipped", "name": "lars", "lr": 0.5, "momentum": 0.5, "weight_decay": 0.1, "trust": 0.02,
     "clip_norm": 0.1},
    {"case": "lamb", "name": "lamb", "lr": 0.02, "weight_decay": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-6},
    {"case": "lamb_clipped", "name": "lamb", "lr": 0.05, "weight_decay": 0.1, "beta1": 0.8, "beta2": 0.9,
     "eps": 1e-3, "clip_norm": 0.1},
]


def main():
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return torch.round((2 * torch.rand(*shape, generator=generator) - 1) * 1e3) / 1e3

    initial = {"fc1.weight": draw(5, 6), "fc1.bias": draw(5), "fc2.weight": draw(4, 5), "fc2.bias": draw(4)}
    inputs = [2 * draw(BATCH, 6) for _ in range(BATCHES)]
    labels = [torch.randint(4, (BATCH,), generator=generator) for _ in range(BATCHES)]
    cases = [train(o, initial, inputs, labels) for o in CASES]
    for c in cases:
        assert all(math.isfinite(x) for x in c["losses"]), c["name"]
    text = json.dumps({"initial": {n: t.flatten().tolist() for n, t in initial.items()},
                       "inputs": [t.flatten().tolist() for t in inputs], "labels": [t.tolist() for t in labels],
                       "cases": cases}, indent=None)
    path = pathlib.Path(__file__).with_name("optimizer_values.json")
    path.write_text(text.replace('{"name": ', '\n{"name": ') + "\n")
    print(f"{path}: {len(cases)} cases, {STEPS} steps each")


if __name__ == "__main__":
    main()
