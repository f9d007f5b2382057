"""Dynamic tensor rematerialisation over traces, beside the figures of the DTR paper's simulator:
how much longer a batch computes within a part of the memory that it takes.

    python benchmarks/dtr.py                                  # all networks and heuristics
    python benchmarks/dtr.py --networks resnet32 --heuristics dtr-eq,lru
    python benchmarks/dtr.py --page                           # the page of what is kept

As the paper's simulator does it: memory is the bytes of tensors, without gaps between them, and a
budget a part of the most that the network takes; a figure is the time of all launches of a batch,
forward and backward, over that with unlimited memory. Launches take what they take on a simulated
V100. `> 3`: given up, since more is computed again than twice all that the program computes, and a
second.
Results are kept in FILE (--json) as each network is done.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import dtr_networks
from kept import Kept, circumstances, names_of, results_in, save

from deepum.capture.record import capture_job
from deepum.recomputation.reading import items, others
from deepum.recomputation.within import OutOfMemoryError, Within
from deepum.rematerialise.heuristics import BY_NAME as BY_HEURISTIC
from deepum.rematerialise.heuristics import named
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import run
from deepum.simulate.workload import Workload
from deepum.trace import Trace
from deepum.workloads.registry import Job

MACHINE = "v100-16gb"
PARTS = (0.9, 0.7, 0.5, 0.4, 0.3, 0.2)
HEURISTICS = ("path", "dtr-eq", "megengine", "local", "lru")
_STEPS = 3  # the last counts
_MOST_TIMES = 2
_UNLIMITED = 1 << 60
NETWORKS: dict[str, tuple[str, Callable[[str], Job]]] = {
    "resnet32": ("ResNet-32, batch 56", dtr_networks.resnet(56)),
    "densenet121": ("DenseNet-121, batch 84", dtr_networks.densenet(84)),
    "inception-v4": ("Inception-v4, batch 64", dtr_networks.inception(64)),
    "unet": ("U-Net, batch 6", dtr_networks.unet(6)),
}
# The authors' simulator with h_DTR^eq, for logs of these networks: peak, MB, and the same parts.
PUBLISHED: dict[str, tuple[int, tuple[float | None, ...]]] = {
    "resnet32": (10061, (1.013, 1.046, 1.107, 1.140, 1.179, 1.332)),
    "densenet121": (11021, (1.026, 1.104, 1.176, 1.293, 1.426, 1.616)),
    "inception-v4": (11245, (1.008, 1.044, 1.092, 1.138, 1.244, None)),
    "unet": (8416, (1.033, 1.085, 1.159, None, None, None)),
}
SMALL = "too small"
MUCH = "> 3"


def launch_ns(trace: Trace) -> dict[int, int]:
    """ns of each launch with all memory on the card, by sequence."""
    workload = Workload(trace.name, trace, MACHINE)
    found = run(workload, MACHINE, BY_NAME["unlimited"], keep_launches=True)
    return {launch.sequence: round(launch.kernel_ns) for launch in found.launches}


def step_ns(trace: Trace, ns: dict[int, int], budget: int, heuristic: str) -> tuple[float, int]:
    """Time of the last step's launches, and the peak, bytes. Raises OutOfMemoryError."""
    within = Within(budget, named(heuristic), others(trace), _MOST_TIMES)
    ends = [within.computed_ns for _ in within.run(items(trace, ns))]
    return ends[_STEPS - 1] - ends[_STEPS - 2], within.counters.peak_bytes


def ratio(
    trace: Trace, ns: dict[int, int], budget: int, heuristic: str, unlimited: float
) -> float | str:
    """Of the time within a budget to that without; SMALL or MUCH where there is none."""
    try:
        found = step_ns(trace, ns, budget, heuristic)[0] / unlimited
    except OutOfMemoryError as error:
        return MUCH if "times" in str(error) else SMALL
    return found if found < 1 + _MOST_TIMES else MUCH


def measure(build: Callable[[str], Job], heuristics: list[str]) -> dict[str, Any]:
    """Of a network."""
    trace = capture_job("network", build, _STEPS).trace
    ns = launch_ns(trace)
    unlimited, peak = step_ns(trace, ns, _UNLIMITED, "lru")
    return {
        "peak_mb": peak / 1e6,
        "compute_ms": unlimited / 1e6,
        "ratios": {
            name: [ratio(trace, ns, int(peak * part), name, unlimited) for part in PARTS]
            for name in heuristics
        },
    }


def table(kept: dict[str, Any]) -> str:
    """Of all networks, in Markdown."""
    columns = ["network", "peak, MB", "compute, ms", "heuristic", *map(str, PARTS)]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for name, one in kept["networks"].items():
        peak, published = PUBLISHED[name]
        cells = [NETWORKS[name][0], str(peak), "", "published, `dtr-eq`"]
        cells += [SMALL if value is None else f"{value:.3f}" for value in published]
        lines.append("| " + " | ".join(cells) + " |")
        about = [f"{one['peak_mb']:.0f}", f"{one['compute_ms']:.0f}"]
        for heuristic, ratios in one["ratios"].items():
            figures = [value if isinstance(value, str) else f"{value:.3f}" for value in ratios]
            lines.append("| " + " | ".join(["", *about, f"`{heuristic}`", *figures]) + " |")
            about = ["", ""]
    return "\n".join(lines) + "\n"


KEPT = Kept("dtr", "docs/recomputation.md", table, "dtr.json")


def main() -> int:
    parser = KEPT.parser(__doc__)
    parser.add_argument("--networks", default=",".join(NETWORKS), help="(%(default)s)")
    parser.add_argument("--heuristics", default=",".join(HEURISTICS), help="(%(default)s)")
    given = parser.parse_args()
    if given.page:
        KEPT.write_page(given.json)
        return 0
    heuristics = names_of(parser, "heuristic", given.heuristics, BY_HEURISTIC)
    kept = results_in(given.json, "networks")
    for name in names_of(parser, "network", given.networks, NETWORKS):
        found = measure(NETWORKS[name][1], heuristics)
        kept["networks"][name] = found
        kept |= circumstances(machine=MACHINE)
        save(given.json, kept)
        print(table({"networks": {name: found}}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
