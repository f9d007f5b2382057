"""Trains a multi-layer perceptron on random data and prints each step's time: python train_mlp.py
--width 8192
"""

import argparse

import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    layers = [
        layer
        for _ in range(arguments.layers)
        for layer in (torch.nn.Linear(arguments.width, arguments.width), torch.nn.ReLU())
    ]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(arguments.width, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in range(1, arguments.steps + 1):
        inputs = torch.randn(arguments.batch, arguments.width, device=device)
        labels = torch.randint(10, (arguments.batch,), device=device)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        end.synchronize()
        print(f"step {step}: {begin.elapsed_time(end):.2f} ms, loss {loss.item():.4f}", flush=True)
    allocated, reserved = (
        torch.cuda.max_memory_allocated() / 2**30,
        torch.cuda.max_memory_reserved() / 2**30,
    )
    print(f"peak memory: {allocated:.2f} GiB allocated, {reserved:.2f} GiB reserved", flush=True)


if __name__ == "__main__":
    main()
