"""Digests of every command that the core gives over a set of workloads and policies: equal digests
mean equal decisions.

    scripts/golden                      # compares with benchmarks/results/golden.json
    scripts/golden --only dlrm,deepum   # the cases whose name has all of these
    scripts/golden --write              # keeps the digests of now: another decision is meant

A case is a workload, a policy or settings of the core, and a mode. For each: how many commands were
given, the SHA-256 of their records (`deepum_command`), the operations that the core counted, and
the end of the run in whole microseconds of virtual time. A refactoring leaves the first two and the
last equal, and operations too unless it says why. All cores are used (`--jobs`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deepum._core import lib

from deepum.core.records import COMMAND_BYTES
from deepum.simulate.mode import GATED, LOCK_STEP, MODES
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import machine, replay
from deepum.simulate.workload import load
from deepum.trace.declared import declared

DIGESTS = Path(__file__).resolve().parent / "results" / "golden.json"


@dataclass(frozen=True)
class Case:
    """`changes`: of the core's settings under that policy; `variant` names them."""

    workload: str
    policy: str
    machine: str = "v100-16gb"
    mode: str = GATED.name
    variant: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    steps: int | None = None

    def __str__(self) -> str:
        return " ".join(
            filter(None, (self.workload, self.machine, self.policy, self.variant, self.mode))
        )


_ORDERS = {
    "migrated": {"eviction_order": lib.DEEPUM_EVICT_LEAST_RECENTLY_MIGRATED},
    "no-pre-eviction": {"pre_eviction": 0},
    "tables": {"prediction": lib.DEEPUM_PREDICT_TABLES},
    "tables-last-use": {
        "prediction": lib.DEEPUM_PREDICT_TABLES,
        "eviction_order": lib.DEEPUM_EVICT_OLDEST_LAST_USE,
    },
    "short-queue": {"launch_queue": 16},
    "small-tables": {"table_mebibytes": 1},
}
_POLICIES = tuple(
    name
    for name, policy in BY_NAME.items()
    if not policy.swaps and not policy.unlimited and not policy.plans and not policy.recomputes
)

CASES: tuple[Case, ...] = (
    *(
        Case(workload, policy)
        for workload in ("gpt2-small", "dlrm", "mobilenet")
        for policy in _POLICIES
    ),
    *(
        Case(workload, policy)
        for workload in ("llama-decode", "experts", "lstm", "dlrm-dense")
        for policy in ("deepum", "deepum-clean")
    ),
    *(
        Case(workload, "deepum", mode=LOCK_STEP.name)
        for workload in ("gpt2-small", "dlrm", "mobilenet", "unet")
    ),
    *(
        Case("gpt2-small", "deepum", variant=name, changes=changes)
        for name, changes in _ORDERS.items()
    ),
    *(Case("lstm", "deepum", variant=name, changes=changes) for name, changes in _ORDERS.items()),
    Case("llama-decode", "deepum-clean", "rtx4090"),
    Case("t5-large", "deepum-clean", steps=8),
)


def outcome(case: Case) -> dict[str, Any]:
    """Of one case. Raises DeepumError when it cannot be simulated."""
    policy = BY_NAME[case.policy]
    figures = {"launch_queue": policy.launch_queue} if policy.launch_queue else {}
    on = machine(case.machine, **figures)
    trace = load(case.workload, case.steps, False, case.machine).trace
    ran = replay(
        declared(trace) if policy.declares_reads else trace,
        on,
        replace(policy.settings(on.launch_queue), **case.changes),
        keep_commands=True,
        observe_faults=policy.observe_faults,
        observe_times=policy.declares_reads,
        mode=MODES[case.mode],
    )
    return {
        "commands": len(ran.commands) // COMMAND_BYTES,
        "sha256": hashlib.sha256(ran.commands).hexdigest(),
        "operations": ran.core.operations,
        "end_us": int(ran.ns / 1e3),
    }


def _selected(words: str) -> list[Case]:
    wanted = [word for word in words.split(",") if word]
    return [case for case in CASES if all(word in str(case) for word in wanted)]


def compare(
    found: Iterable[tuple[Case, dict[str, Any]]], kept: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Prints a line for each case as it comes, and hands it on by its name."""
    for case, now in found:
        before = kept.get(str(case))
        what = (
            "is new"
            if before is None
            else ", ".join(
                f"{key} {before[key]} -> {now[key]}" for key in now if now[key] != before[key]
            )
        )
        print(f"{case}: {now['commands']} commands: {what or 'equal'}", flush=True)
        yield str(case), now


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", help="words with commas between them, all of which a case's name has"
    )
    parser.add_argument("--write", action="store_true", help="keep what is found")
    parser.add_argument("--jobs", type=int, help="processes at a time (default: one for each core)")
    options = parser.parse_args()
    cases = _selected(options.only)
    if not cases:
        print(
            f"golden: error: --only {options.only}: no case has all of these; cases are\n"
            + "\n".join(map(str, CASES)),
            file=sys.stderr,
        )
        return 2
    kept: dict[str, Any] = json.loads(DIGESTS.read_text()) if DIGESTS.is_file() else {}
    with ProcessPoolExecutor(options.jobs) as pool:
        found = dict(compare(zip(cases, pool.map(outcome, cases), strict=True), kept))
    differ = sum(each != kept.get(name) for name, each in found.items())
    if options.write:
        names = {str(case) for case in CASES}
        merged = {**kept, **found}
        DIGESTS.write_text(
            json.dumps({name: merged[name] for name in sorted(merged) if name in names}, indent=1)
            + "\n"
        )
    print(f"{len(cases)} cases, {differ} differ" + (", kept" if options.write else ""))
    return 1 if differ and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
