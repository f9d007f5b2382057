"""Trains a small model data-parallel, with gradients averaged over gloo: one process a rank, which
may share a GPU or have one each.

    deepum run -- torchrun --standalone --nproc-per-node 2 train_ddp.py --width 4096

Each rank is a program of its own for deepum, with its own session; ranks on one GPU share what
memory it has.
"""

import argparse
import os

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()

    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.manual_seed(0)
    layers = [
        layer
        for _ in range(arguments.layers)
        for layer in (torch.nn.Linear(arguments.width, arguments.width), torch.nn.ReLU())
    ]
    model = DistributedDataParallel(torch.nn.Sequential(*layers).to(device))
    optimizer = torch.optim.AdamW(model.parameters())
    torch.manual_seed(rank)
    for step in range(1, arguments.steps + 1):
        inputs = torch.randn(arguments.batch, arguments.width, device=device)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        end.synchronize()
        line = (
            f"rank {rank} on {device}, step {step}: {begin.elapsed_time(end):.2f} ms, loss "
            f"{loss.item():.4f}\n"
        )
        # In one piece, also where Python does not buffer: the ranks share their output.
        print(line, end="", flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
