#!/usr/bin/env python3
"""The peer on several ranks: training steps of a model file in PyTorch, data parallel (DistributedDataParallel over gloo).

    mpirun -n 2 perf/pytorch_ddp.py inputs/alexnet.toml --batch 128 --master 10.0.0.1 --interface eth0

--batch is of all ranks together. Rank 0 prints one JSON object: {"model", "batch", "ranks", "torch", "layout", "threads", "step_seconds",
"steps", "peak_resident_bytes"}: the median step of the slowest rank after the first fifth, on a fixed synthetic batch, with SGD
and momentum; the memory of all ranks together. Ranks and their number come from mpirun or srun (or RANK and WORLD_SIZE).
Needs Python 3.11 and PyTorch.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import pytorch_model  # noqa: E402


def from_environment(*names):
    for name in names:
        if name in os.environ:
            return os.environ[name]
    sys.exit(f"pytorch_ddp: got none of {', '.join(names)} expected to be started by mpirun or srun")


def main():
    parser = argparse.ArgumentParser(description="Training steps of a model file in PyTorch DDP over gloo.")
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, required=True, help="of all ranks together")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--layout", choices=["channels_last", "contiguous_format"], default="channels_last")
    parser.add_argument("--master", default="127.0.0.1", help="address of rank 0's host")
    parser.add_argument("--port", type=int, default=29541)
    parser.add_argument("--interface", help="network interface of gloo")
    options = parser.parse_args()
    rank = int(from_environment("OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "RANK"))
    ranks = int(from_environment("OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "WORLD_SIZE"))
    if options.batch % ranks:
        sys.exit(f"pytorch_ddp: --batch, got {options.batch} expected a multiple of the {ranks} ranks")
    if options.interface:
        os.environ["GLOO_SOCKET_IFNAME"] = options.interface
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"tcp://{options.master}:{options.port}", rank=rank, world_size=ranks)
    network = pytorch_model.load(options.model)
    layout = getattr(torch, options.layout)
    network = network.to(memory_format=layout)
    x = torch.randn(options.batch // ranks, *network.sample)
    if x.dim() == 4:
        x = x.to(memory_format=layout)
    labels = torch.randint(network.classes(), (options.batch // ranks,))
    parallel = torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4)
    seconds = []
    for _ in range(options.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        network.loss(parallel(x), labels).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    slowest = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    memory = torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024], dtype=torch.int64)
    dist.all_reduce(memory)
    if rank == 0:
        print(json.dumps({"model": network.document["model"]["name"], "batch": options.batch, "ranks": ranks,
                          "torch": torch.__version__, "layout": options.layout, "threads": options.threads,
                          "step_seconds": statistics.median(slowest.tolist()[options.steps // 5:]),
                          "steps": options.steps, "peak_resident_bytes": int(memory.item())}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
