"""Trains a language model and a CNN on each machine named: a process each, forked from one that has
loaded PyTorch.

With a `+` behind the name in all precisions, else in FP32 alone.
"""

from __future__ import annotations

import os
import sys
import traceback

import torch
from torch import nn
from torch.nn import functional


class Language(nn.Module):
    """One layer with what a language model is made of: embedding, norm, attention."""

    def __init__(self, words: int = 100, width: int = 64) -> None:
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.norm = nn.LayerNorm(width)
        self.inputs = nn.Linear(width, 3 * width)
        self.outputs = nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.table(x)
        heads = self.inputs(self.norm(hidden)).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(
            heads[0], heads[1], heads[2], is_causal=True
        )
        return self.outputs(hidden + attended.transpose(1, 2).flatten(2))


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        functional.cross_entropy(model(x).flatten(0, -2), y.flatten()).backward()
        optimizer.step()
    assert all(parameter.grad is not None for parameter in model.parameters())


def main(kinds: tuple[torch.dtype, ...]) -> None:
    for kind in kinds:
        # So many that the table's gradient is made with CUB's sort.
        words = torch.randint(0, 100, (2, 2048), device="cuda")
        train(Language().cuda().to(kind), words, words)
        images = torch.randn(4, 3, 16, 16, device="cuda", dtype=kind)
        train(
            convolutional().cuda().to(kind), images, torch.zeros(4, dtype=torch.long, device="cuda")
        )
    assert not torch.backends.cudnn.enabled
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    torch.cuda.synchronize()


for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.environ["DEEPUM_SIM_MACHINE"] = name.rstrip("+")
            main(
                (torch.float32, torch.bfloat16, torch.float16)
                if name.endswith("+")
                else (torch.float32,)
            )
            code = 0
        except Exception:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)
    print(name, "ok" if os.waitpid(child, 0)[1] == 0 else "failed")
