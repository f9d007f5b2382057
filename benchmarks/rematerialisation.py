"""What deepum.remat costs, and how much larger batches get: trainings by the CUDA build of PyTorch
on the simulated GPU (docs/rematerialise.md, Figures).

    python benchmarks/rematerialisation.py                        # all networks
    python benchmarks/rematerialisation.py --networks resnet50
    python benchmarks/rematerialisation.py --page                 # the page of what is kept

Slowdown: steps under budgets that are fractions of the peak without, in virtual time. Peaks are
those of PyTorch's caching allocator (max_memory_allocated), steps the mean of two behind two that
do not count. `checkpoint` is torch.utils.checkpoint around each block. The largest batch is that of
a card of 11 GiB (the U-Net's of 24), found by halving; under a budget of 98 % of it as long as no
error comes, PyTorch's peak is below the card, and an image takes no more than twice its time.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kept import Kept, circumstances, names_of, results_in, save
from remat_networks import NETWORKS, Network
from simulated_gpu import measured_apart

from deepum.errors import DeepumError

MACHINE = "h100-80gb"
FRACTIONS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_WARM, _STEPS = 2, 2
_MOST_SLOWDOWN = 2.0
_OF_CARD = 0.98  # the budget; the rest is for what is not foreseen
_OVERHEAD_STEPS = 4


def _free() -> None:
    import torch

    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def _measure(network: Network, batch: int, steps: int = _STEPS) -> dict[str, float]:
    """ms of a step, and bytes at most in all of them."""
    import torch

    _free()
    job = network.build(batch)
    for _ in range(_WARM):
        job.step()
    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    began.record()
    for _ in range(steps):
        job.step()
    ended.record()
    torch.cuda.synchronize()
    return {
        "ms": began.elapsed_time(ended) / steps,
        "peak_bytes": torch.cuda.max_memory_allocated(),
    }


def _within(network: Network, batch: int, budget: int) -> dict[str, float] | None:
    """The same under a budget, with what was computed again; None where it is too small."""
    import torch

    import deepum

    try:
        with deepum.remat(budget, device="cuda") as remat:
            found = _measure(network, batch)
            statistics = remat.statistics()
    except torch.OutOfMemoryError:
        return None
    return {
        **found,
        "evictions": statistics.evictions,
        "recomputed": statistics.recomputed,
        "operators": statistics.operators,
    }


@contextmanager
def _checkpoints(names: tuple[str, ...]) -> Iterator[None]:
    """Modules of these classes keep their inputs only (torch.utils.checkpoint)."""
    import torch
    from torch.utils.checkpoint import checkpoint

    original = torch.nn.Module.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self).__name__ in names and torch.is_grad_enabled():
            return checkpoint(original, self, *args, use_reentrant=False, **kwargs)
        return original(self, *args, **kwargs)

    torch.nn.Module.__call__ = call
    try:
        yield
    finally:
        torch.nn.Module.__call__ = original


def _largest(fits: Callable[[int], bool], least: int) -> int:
    """The largest batch that fits, within 5 %, from one that does."""
    low, high = least, least * 2
    while fits(high):
        low, high = high, high * 2
    while high - low > max(1, low // 20):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def slowdown(network: Network) -> dict[str, Any]:
    """Of a network at its batch: without, with checkpoints, and under budgets."""
    plain = _measure(network, network.batch)
    with _checkpoints(network.blocks):
        checkpointed = _measure(network, network.batch)
    peak = plain["peak_bytes"]
    found: dict[str, Any] = {
        "batch": network.batch,
        "plain": plain,
        "checkpoint": checkpointed,
        "at_checkpoint": _within(network, network.batch, int(checkpointed["peak_bytes"])),
        "fits": _within(network, network.batch, int(2 * peak)),
        "budgets": {},
    }
    for fraction in FRACTIONS:
        within = _within(network, network.batch, int(peak * fraction))
        found["budgets"][str(fraction)] = within
        if within is None:
            break
    return found


def largest(network: Network) -> dict[str, Any]:
    """The largest batch on the card, without and with a budget of the card."""
    rate = _measure(network, network.batch)["ms"] / network.batch

    def plain(batch: int) -> bool:
        return _measure(network, batch, steps=1)["peak_bytes"] <= network.card

    def within(batch: int) -> bool:
        found = _within(network, batch, int(network.card * _OF_CARD))
        if (
            found is None
            or found["peak_bytes"] > network.card
            or found["ms"] / batch > _MOST_SLOWDOWN * rate
        ):
            return False
        fitting[batch] = found
        return True

    fitting: dict[int, dict[str, float]] = {}
    without = _largest(plain, network.batch if plain(network.batch) else 1)
    with_budget = _largest(within, without)
    if with_budget not in fitting:
        raise DeepumError(f"batch {without}: fits without a budget of the card, and not with it")
    found = fitting[with_budget]
    return {
        "card_bytes": network.card,
        "without": without,
        "with": with_budget,
        "slowdown": found["ms"] / with_budget / rate,
        "peak_bytes": found["peak_bytes"],
    }


def overhead(_network: Network) -> dict[str, Any]:
    """Of a ResNet-50 with four images on the CPU, where all fits: the processor's ms of a step
    without and with, the least of several, and operators.
    """
    import torch

    import deepum
    from deepum.workloads.images import resnet

    torch.set_num_threads(1)
    torch.manual_seed(0)
    job = resnet("cpu", 4, 224, 3, 4, 6, 3)

    def least() -> float:
        times = []
        for _ in range(_OVERHEAD_STEPS):
            began = time.process_time()
            job.step()
            times.append(time.process_time() - began)
        return 1000 * min(times)

    job.step()
    without = [least()]
    with deepum.remat("1TiB", device="cpu") as remat:
        job.step()
        before = remat.statistics().operators
        within = least()
        operators = (remat.statistics().operators - before) / _OVERHEAD_STEPS
    without.append(least())
    return {"without_ms": min(without), "with_ms": within, "operators": operators}


def run(name: str, what: str) -> dict[str, Any]:
    """One measurement in a process of its own, on the simulated GPU. Raises DeepumError."""
    arguments = ("--run", name, "--what", what)
    found: dict[str, Any] = measured_apart(__file__, arguments, MACHINE, f"{name}, {what}")
    return found


def _ratio(one: dict[str, float] | None, plain: dict[str, float]) -> str:
    return "too small" if one is None else f"{one['ms'] / plain['ms']:.3f}"


def _slowdowns(networks: dict[str, Any]) -> list[str]:
    columns = ["network", "batch", "peak, GiB", *(str(one) for one in FRACTIONS)]
    columns += ["checkpoint: of the peak", "its time", "ours at that peak", "if it fits"]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for name, one in networks.items():
        if (found := one.get("slowdown")) is None:
            continue
        plain, checkpointed, budgets = found["plain"], found["checkpoint"], found["budgets"]
        cells = [name, str(found["batch"]), f"{plain['peak_bytes'] / (1 << 30):.1f}"]
        cells += [_ratio(budgets.get(str(fraction)), plain) for fraction in FRACTIONS]
        cells.append(f"{checkpointed['peak_bytes'] / plain['peak_bytes']:.2f}")
        others = (checkpointed, found["at_checkpoint"], found["fits"])
        cells += [_ratio(other, plain) for other in others]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _largest_batches(networks: dict[str, Any]) -> list[str]:
    columns = ["network", "card", "largest batch", "under a budget", "times", "slowdown"]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for name, one in networks.items():
        if (found := one.get("largest")) is not None:
            without, within = found["without"], found["with"]
            cells = [name, f"{found['card_bytes'] >> 30} GiB", str(without), str(within)]
            cells += [f"{within / without:.1f}", f"{found['slowdown']:.2f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cost(found: dict[str, float]) -> list[str]:
    more = found["with_ms"] - found["without_ms"]
    return [
        "| ResNet-50, 4 images, one core, all fits | |",
        "|---|---|",
        f"| ms of a step without | {found['without_ms']:.0f} |",
        f"| more with | {100 * more / found['without_ms']:.1f} % |",
        f"| operators of a step | {found['operators']:.0f} |",
        f"| us an operator | {1000 * more / found['operators']:.0f} |",
    ]


def table(kept: dict[str, Any]) -> str:
    """Of all networks, in Markdown."""
    networks = kept["networks"]
    lines = [*_slowdowns(networks), "", *_largest_batches(networks)]
    if (found := networks.get("resnet50", {}).get("overhead")) is not None:
        lines += ["", *_cost(found)]
    return "\n".join(lines) + "\n"


KEPT = Kept("rematerialisation", "docs/rematerialise.md", table, "rematerialisation.json")
_WHAT = {"slowdown": slowdown, "largest": largest, "overhead": overhead}


def main() -> int:
    parser = KEPT.parser(__doc__)
    parser.add_argument("--networks", help="some of the networks, with commas between them")
    parser.add_argument("--run", metavar="NETWORK", help="here, on the GPU; for the benchmark")
    parser.add_argument("--what", choices=tuple(_WHAT), help="one of all")
    given = parser.parse_args()
    if given.page:
        KEPT.write_page(given.json)
        return 0
    if given.run:
        save(given.json, _WHAT[given.what](NETWORKS[given.run]))
        return 0
    kept = results_in(given.json, "networks")
    for name in names_of(parser, "network", given.networks or ",".join(NETWORKS), NETWORKS):
        for what in [given.what] if given.what else _WHAT:
            if what == "overhead" and name != "resnet50":
                continue
            try:
                found = run(name, what)
            except DeepumError as error:
                print(error.line, file=sys.stderr)
                continue
            kept |= circumstances(machine=MACHINE)
            kept["networks"].setdefault(name, {})[what] = found
            save(given.json, kept)
            print(name, what, json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
