"""Recomputed or moved at run time: `deepum run --remat auto` beside unified memory alone.

    python benchmarks/remat_auto.py                       # measures all, keeps the results
    python benchmarks/remat_auto.py --programs gpt2-small
    python benchmarks/remat_auto.py --page                # the table of docs/rematerialise.md

PyTorch's CUDA build runs under deepum on the simulated GPU, in lock-step, with so much memory;
times are virtual, in which what deepum.remat takes of the host's time is not. A step's is the mean
of the last ones, behind those in which deepum learns, and `--remat auto` tries; `unlimited` is
moving alone on a card where all fits.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kept import Kept, circumstances, results_in, save
from remat_networks import NETWORKS
from simulated_gpu import measured_apart

from deepum.errors import DeepumError
from deepum.workloads.registry import Job

MACHINE = "rtx4090"
_STEPS_OF_TRIALS = 84  # trials take 64 at most, and the last 20 count
_ROOMY = "64GiB"
_OF_CARD = 15 / 16  # a fixed budget


@dataclass(frozen=True)
class Program:
    """text: of a named workload, or `NETWORK@BATCH` of benchmarks/remat_networks.py. card: MiB.
    steps: where nothing is tried. last: steps that count.
    """

    text: str
    card: int
    steps: int = 16
    last: int = 8

    def build(self) -> Job:
        """On the GPU."""
        from deepum.workloads import parse

        network, _, batch = self.text.partition("@")
        return NETWORKS[network].build(int(batch)) if batch else parse(self.text).build("cuda")


PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        "resnet50": Program("resnet50@32", 2048),
        "mobilenet": Program("mobilenet:batch=16,image=224", 768),
        "gpt2-small": Program("gpt2-small:batch=2", 3072),
        "random path": Program("random path@64", 2048, steps=_STEPS_OF_TRIALS, last=20),
        "dlrm-dense": Program("dlrm-dense:batch=1024,tables=8,rows=200000", 1536),
        "mobilenet, all fits": Program("mobilenet:batch=16,image=224", 2048),
    }
)
POLICIES = ("unlimited", "deepum", "auto", "fixed")


def measure(program: Program, steps: int) -> dict[str, Any]:
    """Here: ms of each step, the peak of what is allocated, and what was chosen if anything was."""
    import torch

    from deepum.rematerialise.pytorch.session import Remat

    job = program.build()
    marks = []
    for _ in range(steps + 1):
        mark = torch.cuda.Event(enable_timing=True)
        mark.record()
        marks.append(mark)
        job.step()
    torch.cuda.synchronize()
    found: dict[str, Any] = {
        "ms": [a.elapsed_time(b) for a, b in itertools.pairwise(marks)],
        "peak_bytes": torch.cuda.max_memory_allocated(),
    }
    if Remat._active is not None and (choice := Remat._active.statistics().choice) is not None:
        found |= {
            "outcome": choice.outcome,
            "price_of_link": choice.price_ns / choice.link_ns if choice.link_ns else 0.0,
            "budget_bytes": Remat._active.statistics().budget_bytes,
            "trials": len(choice.trials),
            "decided": choice.decided,
        }
    return found


def run(name: str, policy: str) -> dict[str, Any]:
    """One program under one policy, in a process of its own. Raises DeepumError."""
    program = PROGRAMS[name]
    options = ["--gpu-memory", _ROOMY if policy == "unlimited" else f"{program.card}MiB"]
    if policy == "auto":
        options += ["--remat", "auto"]
    elif policy == "fixed":
        options += ["--remat", str(int(program.card * _OF_CARD) << 20)]
    steps = _STEPS_OF_TRIALS if policy == "auto" else program.steps
    found: dict[str, Any] = measured_apart(
        __file__,
        ("--run", name, "--steps", str(steps)),
        MACHINE,
        f"{name}, {policy}",
        options=options,
        is_unified=True,
    )
    return found


def _step(found: Mapping[str, Any] | None, program: Program) -> float | None:
    """ms."""
    return statistics.mean(found["ms"][-program.last :]) if found else None


def _ms(step: float | None) -> str:
    return "too small" if step is None else f"{step:.1f}"


def _chosen(auto: Mapping[str, Any], card: int) -> str:
    if auto["outcome"] != "recompute":
        return "move" if auto["outcome"] == "move" else f"{auto['outcome']}"
    return f"{auto['price_of_link']:.2g} of the link, {auto['budget_bytes'] / (card << 20):.2f}"


def table(kept: dict[str, Any]) -> str:
    """Of all programs, in Markdown."""
    columns = (
        *("program", "card, MiB", "peak", "unlimited", "`deepum`", "`--remat auto`"),
        *("faster", "`--remat` of the card", "chosen", "decided in step", "time till then"),
    )
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for name, one in kept["programs"].items():
        program = PROGRAMS[name]
        card = program.card
        alone, auto = _step(one["deepum"], program), _step(one["auto"], program)
        assert alone is not None and auto is not None
        decided = one["auto"]["decided"]
        cells = [
            name,
            str(card),
            f"{one['deepum']['peak_bytes'] / (card << 20):.2f}",
            _ms(_step(one["unlimited"], program)),
            _ms(alone),
            _ms(auto),
            f"{alone / auto:.2f}",
            _ms(_step(one.get("fixed"), program)),
            _chosen(one["auto"], card),
            str(decided) if decided else "-",
            f"{sum(one['auto']['ms'][:decided]) / (alone * decided):.2f}" if decided else "-",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


KEPT = Kept("remat_auto", "docs/rematerialise.md", table, "remat_auto.json")


def main() -> int:
    parser = KEPT.parser(__doc__)
    parser.add_argument("--programs", help="some of the programs, with semicolons between them")
    parser.add_argument("--run", metavar="PROGRAM", help="here, on the GPU; for the benchmark")
    parser.add_argument("--steps", type=int, default=1, help="of the one that --run names")
    given = parser.parse_args()
    if given.page:
        KEPT.write_page(given.json)
        return 0
    if given.run:
        save(given.json, measure(PROGRAMS[given.run], given.steps))
        return 0
    kept = results_in(given.json, "programs")
    for name in given.programs.split(";") if given.programs else PROGRAMS:
        mine = kept["programs"].setdefault(name, {})
        for policy in POLICIES:
            try:
                found = run(name, policy)
            except DeepumError as error:
                print(error.line, file=sys.stderr)
                mine.pop(policy, None)
                continue
            mine[policy] = found
            kept |= circumstances(machine=MACHINE, mode="lock-step")
            save(given.json, kept)
            print(
                name, policy, json.dumps({**found, "ms": _step(found, PROGRAMS[name])}), flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
