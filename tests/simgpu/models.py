"""Training steps of small models, by name, on the GPU: prints what each step took, by CUDA events,
in milliseconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Dlrm(nn.Module):
    def __init__(self, tables: int = 4, rows: int = 20000, width: int = 32) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            [nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables)]
        )
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        self.top = nn.Sequential(
            nn.Linear(width + (tables + 1) * tables // 2, 64), nn.ReLU(), nn.Linear(64, 1)
        )
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(
        self, dense: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor
    ) -> torch.Tensor:
        bottom = self.bottom(dense)
        features = torch.stack(
            [bottom] + [table(indices[i], offsets) for i, table in enumerate(self.tables)], 1
        )
        products = torch.bmm(features, features.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([bottom, products], 1)).squeeze(1)


def mlp() -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    model = nn.Sequential(
        nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.1), nn.LayerNorm(512), nn.Linear(512, 10)
    )
    x, y = torch.randn(64, 256).cuda(), torch.randint(0, 10, (64,)).cuda()
    return model, lambda m: functional.cross_entropy(m(x), y)


def dlrm() -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    batch = 256
    dense, y = torch.randn(batch, 13).cuda(), torch.rand(batch).cuda()
    indices, offsets = (
        torch.randint(0, 20000, (4, batch * 4)).cuda(),
        torch.arange(0, batch * 4, 4).cuda(),
    )
    return Dlrm(), lambda m: functional.binary_cross_entropy_with_logits(
        m(dense, indices, offsets), y
    )


def language(
    kind: str, batch: int, length: int
) -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    import transformers

    model: Any
    small: dict[str, Any] = {"vocab_size": 1000, "bos_token_id": 0, "eos_token_id": 0}
    if kind == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    elif kind == "gpt2-tiny":
        model = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(n_layer=2, n_embd=128, n_head=4, **small)
        )
    else:
        model = transformers.BertForMaskedLM(
            transformers.BertConfig(
                num_hidden_layers=2,
                hidden_size=128,
                num_attention_heads=4,
                intermediate_size=512,
                vocab_size=1000,
            )
        )
    x = torch.randint(0, model.config.vocab_size, (batch, length)).cuda()
    return model, lambda m: m(input_ids=x, labels=x).loss


def main(kind: str, steps: int) -> None:
    data = torch.randn(1 << 18)
    assert torch.equal(data.cuda().cpu(), data), "copies to the GPU and back"
    assert torch.equal(data.pin_memory().cuda(non_blocking=True).cpu(), data)
    sizes = {"gpt2": (8, 1024), "gpt2-tiny": (2, 64), "bert-tiny": (2, 64)}
    model, loss = (
        {"mlp": mlp, "dlrm": dlrm}[kind]() if kind not in sizes else language(kind, *sizes[kind])
    )
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        loss(model).backward()
        optimizer.step()
        optimizer.zero_grad()
        end.record()
        torch.cuda.synchronize()
        print("step", begin.elapsed_time(end))
    # PyTorch's own: a worker thread of autograd drops its last Python object (~SafePyObject in
    # Engine::thread_main) after backward() has returned. If the interpreter is ending by then,
    # PyEval_AcquireThread ends the thread by pthread_exit, whose unwinding meets a noexcept frame:
    # "terminate called without an active exception" (github.com/pytorch/pytorch/issues/38228). Seen
    # on one busy core in 7 of 30 scripts that end with a backward(), the stack always that one,
    # with no frame of ours in it.
    time.sleep(0.3)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
