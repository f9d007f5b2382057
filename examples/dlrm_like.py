"""Trains a model like DLRM: large embedding tables of which a step touches few rows, then dense
layers.

Which rows are touched is random, so what a step needs cannot be foretold well: python dlrm_like.py
--tables 16
"""

import argparse

import torch


class Recommender(torch.nn.Module):
    """Embeddings summed per sample, beside a bottom network; a top network on both."""

    def __init__(self, tables: int, rows: int, width: int, dense: int) -> None:
        super().__init__()
        self.embeddings = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(rows, width, mode="sum", sparse=True) for _ in range(tables)
        )
        self.bottom = torch.nn.Sequential(
            torch.nn.Linear(dense, 512),
            torch.nn.ReLU(),
            torch.nn.Linear(512, width),
            torch.nn.ReLU(),
        )
        self.top = torch.nn.Sequential(
            torch.nn.Linear((tables + 1) * width, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)
        )

    def forward(self, numbers: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        vectors = [embedding(indices[i]) for i, embedding in enumerate(self.embeddings)]
        return self.top(torch.cat([self.bottom(numbers), *vectors], dim=1)).squeeze(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=8)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument(
        "--lookups", type=int, default=4, help="rows of each table that a sample sums"
    )
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    with device:  # tables larger than the host's memory are made where they stay
        model = Recommender(arguments.tables, arguments.rows, arguments.width, 13)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, arguments.steps + 1):
        numbers = torch.randn(arguments.batch, 13, device=device)
        indices = torch.randint(
            arguments.rows, (arguments.tables, arguments.batch, arguments.lookups)
        ).to(device)
        labels = torch.rand(arguments.batch, device=device)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(numbers, indices), labels)
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
