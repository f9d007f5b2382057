"""In which step the core finds the iteration of each named workload (native/core/iteration), and
how many launches it has.

    python benchmarks/iterations.py                   # all named workloads, kept
    python benchmarks/iterations.py --only gpt2-xl,lstm
    python benchmarks/iterations.py --page            # docs/decisions/017 of what is kept
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from kept import Kept, save

from deepum.core import Core, CoreSettings, Execute, events
from deepum.simulate.workload import load
from deepum.trace import Trace, work
from deepum.workloads import WORKLOADS


def ends_of_steps(trace: Trace) -> list[int]:
    """Counts of launches at the ends of its steps."""
    sequences = {event.sequence for event in events(trace.events) if isinstance(event, Execute)}
    kinds = (work.LAUNCH, work.COPY)
    done = [
        one for one in work.decode(trace.work) if one.kind in kinds and one.sequence in sequences
    ]
    return [number for number, one in enumerate(done, 1) if one.flags & work.ENDS_STEP]


def changes_of_period(trace: Trace) -> tuple[list[tuple[int, int]], int]:
    """Counts of launches after which the core knew another period, with that, 0: none; and how many
    iterations it counted in all.
    """
    core = Core(CoreSettings.default(policy=0))
    at, launches, before, changes = 0, 0, 0, []
    for event in events(trace.events):
        size = int.from_bytes(trace.events[at : at + 2], "little") * 8
        core.process(trace.events[at : at + size])
        at += size
        if isinstance(event, Execute):
            launches += 1
            period = core.statistics().iteration_launches
            if period != before:
                changes.append((launches, period))
            before = period
    return changes, core.statistics().iterations


def measure(name: str) -> dict[str, Any]:
    """Of a named workload, six steps and the one behind them."""
    trace = load(name, None, False).trace
    ends, (changes, iterations) = ends_of_steps(trace), changes_of_period(trace)
    return {
        "step": ends[-1] - ends[-2],
        "steps": len(ends),
        "changes": [[bisect_left(ends, launches) + 1, period] for launches, period in changes],
        "iterations": iterations,
    }


def table(kept: dict[str, Any]) -> str:
    """A row a workload."""
    lines = [
        "| workload | launches of the last step | found in step | period | counted |",
        "|---|---|---|---|---|",
    ]
    for name, found in kept.items():
        first = found["changes"][0] if found["changes"] else ("-", "-")
        counted = f"{found['iterations']} of {found['steps']}"
        lines.append(f"| `{name}` | {found['step']} | {first[0]} | {first[1]} | {counted} |")
    return "\n".join(lines) + "\n"


KEPT = Kept("iterations", "docs/decisions/017-iteration-detector.md", table, "iterations.json")


def main() -> None:
    """The command."""
    parser = KEPT.parser(__doc__)
    parser.add_argument("--only", default="", help="workloads, with commas between them; not kept")
    given = parser.parse_args()
    if given.page:
        KEPT.write_page(given.json)
        return
    found = {name: measure(name) for name in given.only.split(",") if name} or {
        name: measure(name) for name in WORKLOADS
    }
    print(table(found), end="")
    if not given.only:
        save(given.json, found)


if __name__ == "__main__":
    main()
