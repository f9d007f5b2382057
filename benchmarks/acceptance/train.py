"""Trains one of the models and prints, as JSON, each step's time, its loss to the bit, peaks, and a
digest of the parameters.

`--variant`s, one after the other in this process: plain; offload, which keeps what the backward
pass needs in pinned host memory (torch.autograd.graph.save_on_cpu); checkpoint, which computes it
again. An ordinary program: it knows nothing of deepum.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import json
import os

# For the same bits each time; read when cuBLAS starts.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch.utils.checkpoint import checkpoint

from acceptance.models import MAKERS, Job


def _outcome(job: Job, given: object, variant: str) -> torch.Tensor:
    x = given
    for stage in job.stages:
        x = (
            checkpoint(stage, x, use_reentrant=False)
            if variant == "checkpoint" and job.checkpointed
            else stage(x)
        )
    assert isinstance(x, torch.Tensor)
    return x


def _digest(job: Job) -> str:
    digest = hashlib.sha256()
    for parameter in job.stages.parameters():
        flat = parameter.detach().flatten()
        # Of large tables every 97th row's worth: what a digest is for is noticed there too.
        digest.update(flat[:: 97 if flat.numel() > 1 << 23 else 1].cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def train(name: str, variant: str, steps: int, short: bool) -> dict[str, object]:
    """One variant from its first step on."""
    torch.manual_seed(0)
    torch.cuda.reset_peak_memory_stats()
    with torch.device("cuda"):
        job = MAKERS[name][int(short)]()
    # Steps go from wait to wait: reading the loss, which may stand behind what is evicted, is part
    # of the next one, and an event log, which knows of launches and waits alone, has the same
    # steps.
    milliseconds, losses = [], []
    before = torch.cuda.Event(enable_timing=True)
    before.record()
    for _ in range(steps):
        with torch.device("cuda"):
            inputs, labels = job.batch()
        kept = (
            torch.autograd.graph.save_on_cpu(pin_memory=True)
            if variant == "offload"
            else contextlib.nullcontext()
        )
        with kept:
            loss = job.loss(_outcome(job, inputs, variant), labels)
        loss.backward()
        job.optimizer.step()
        job.optimizer.zero_grad(set_to_none=True)
        end = torch.cuda.Event(enable_timing=True)
        end.record()
        end.synchronize()
        milliseconds.append(round(before.elapsed_time(end), 4))
        before = end
        losses.append(float(loss.item()).hex())
    record = {
        "variant": variant,
        "steps_ms": milliseconds,
        "losses": losses,
        "digest": _digest(job),
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
    }
    del job, loss, inputs, labels
    gc.collect()
    torch.cuda.empty_cache()
    return record


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=MAKERS)
    parser.add_argument("--variant", action="append", choices=("plain", "offload", "checkpoint"))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--without-cudnn", action="store_true", help="the simulated GPU has none")
    given = parser.parse_args()
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.enabled = not given.without_cudnn
    torch.backends.cudnn.benchmark = False
    torch.zeros(1, device="cuda")  # the allocator is there from here on, and what it counts
    for variant in given.variant or ["plain"]:
        try:
            record = train(given.model, variant, given.steps, given.short)
        except RuntimeError as error:  # out of memory, for one
            record = {"variant": variant, "error": " ".join(str(error).split())[:300]}
            gc.collect()
            torch.cuda.empty_cache()
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
