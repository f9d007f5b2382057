"""A small GPT in plain PyTorch, any version from 2.4 on, trained for some steps: each step's time
in virtual milliseconds and its loss. At the end, as JSON: whether frozen weights are as they were,
and trained ones as the optimizer leaves them, the peak of allocated memory, the CUDA libraries in
the process.

Values are the same whatever the memory: the simulated GPU does no arithmetic, so what a kernel
wrote reads as zeros, losses and trained weights among it, and what was only copied there stays
(docs/simulated-gpu.md, Results).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "math": SDPBackend.MATH,
}


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.project.requires_grad_(False)  # as beside adapters: read in each step, written in none
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            self.attention(self.before(x))
            .view(batch, length, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.after(x))


class Gpt(nn.Module):
    def __init__(self, layers: int, width: int, words: int, length: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, width // 64) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.register_buffer("order", torch.arange(length))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.words(tokens) + self.places(self.order))))


def digest(model: nn.Module) -> str:
    """Of all frozen weights' bytes, read back from the GPU."""
    made = hashlib.sha256()
    for parameter in model.parameters():
        if not parameter.requires_grad:
            made.update(parameter.float().cpu().numpy().tobytes())
    return made.hexdigest()


def all_zero(model: nn.Module) -> bool:
    """Every trained weight, read back from the GPU."""
    return not any(
        parameter.detach().cpu().any()
        for parameter in model.parameters()
        if parameter.requires_grad
    )


def libraries() -> list[str]:
    """Paths of the CUDA libraries that are loaded and that the simulated GPU stands in for."""
    paths = set(re.findall(r"/\S+", Path("/proc/self/maps").read_text()))
    return sorted(
        path for path in paths if re.search(r"/lib(cuda|cudart|cublas|cublasLt|cupti)\.so", path)
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--attention", choices=BACKENDS, default="efficient")
    parser.add_argument("--fused", action="store_true")
    options = parser.parse_args()
    words = 8192
    torch.manual_seed(0)
    model = Gpt(options.layers, options.width, words, options.length)
    if options.attention == "flash":
        model = model.bfloat16()
    before = digest(model)
    model = model.cuda()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=options.fused or None)
    for step in range(options.steps):
        tokens = torch.randint(words, (options.batch, options.length)).cuda()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        with sdpa_kernel(BACKENDS[options.attention]):
            loss = functional.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        end.record()
        end.synchronize()
        print(
            f"step {step + 1}: {begin.elapsed_time(end):.3f} ms, loss {loss.item():.6f}", flush=True
        )
    facts = {
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "frozen_unchanged": digest(model) == before,
        "trained_zero": all_zero(model),
        "peak_bytes": torch.cuda.max_memory_allocated(),
        "cudnn": torch.backends.cudnn.is_available() and torch.backends.cudnn.enabled,
        "libraries": libraries(),
    }
    print(json.dumps(facts))
    time.sleep(0.3)  # autograd's threads end (docs/simulated-gpu.md, The runtime library)


if __name__ == "__main__":
    main()
