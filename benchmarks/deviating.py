"""What planning costs a program whose steps are not all alike: T5 1.1 Large, under the default
policy and under the one that plans.

    python benchmarks/deviating.py                       # all programs, expected costs
    python benchmarks/deviating.py --programs evaluation
    python benchmarks/deviating.py --page                # docs/planned.md of what is kept

evaluation: every tenth step is followed by three batches without gradients. last-batch: every tenth
batch is longer by half. new-size: from the 25th step on batches are smaller by a quarter. Each
program takes 40 steps; what is compared is the time of the whole run from its fourth step on, plans
that are tried included, in the default mode (gated).
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from kept import Kept, add_costs, circumstances, names_of, results_in, save

from deepum.capture.record import capture_job
from deepum.core.planned import PlannedPolicy
from deepum.simulate.driver import BAND
from deepum.simulate.mode import mode_of
from deepum.simulate.planned import planning
from deepum.simulate.policies import BY_NAME
from deepum.simulate.preset import preset_of
from deepum.simulate.replay import machine, replay
from deepum.trace import Trace

PROGRAMS = ("evaluation", "last-batch", "new-size")
MACHINE, STEPS, WARM_UP = "v100-16gb", 40, 3
_PERIOD, _CHANGE = 10, 25  # steps


class Deviating:
    """A training whose steps differ as one of PROGRAMS says."""

    def __init__(self, program: str, device: str) -> None:
        from deepum.workloads import t5

        self._program, self._step, self._batch = program, 0, 8
        self._training = t5.training(device, lambda: self._batch, 512, 128, 24, 1024, 16, 2816)

    def step(self) -> None:
        """Once, with what follows it."""
        self._step += 1
        last = self._step % _PERIOD == 0
        self._batch = 8
        if self._program == "last-batch" and last:
            self._batch = 12
        if self._program == "new-size" and self._step >= _CHANGE:
            self._batch = 6
        self._training.step()
        if self._program == "evaluation" and last:
            for _ in range(3):
                self._training.evaluate()


def captured(program: str) -> Trace:
    """One step more than is counted: the last of a run is not like the others."""
    return capture_job(
        program, lambda device: Deviating(program, device), STEPS + 1, differs=True
    ).trace


def measure(program: str, costs: str) -> dict[str, Any]:
    """ms of the run behind its warm-up, by policy, and what became of plans."""
    trace = captured(program)
    found: dict[str, Any] = {}
    for name in ("deepum", "planned"):
        policy, preset, driver = BY_NAME[name], preset_of(MACHINE), BAND[costs]
        drivers: list[PlannedPolicy] = []
        outcome = replay(
            trace,
            machine(MACHINE, **driver.figures(preset)),
            policy.settings(int(preset.launch_queue)),
            observe_times=policy.plans,
            watch=planning(policy, preset, drivers.append) if policy.plans else None,
            mode=mode_of("gated", costs),
        )
        waits = [mark.ns for mark in outcome.marks]
        found[name] = {"ms": (outcome.ns - waits[WARM_UP - 1]) / 1e6}
        for one in drivers:
            found["outcomes"] = [asdict(each) for each in one.outcomes]
    return found


def table(kept: dict[str, Any]) -> str:
    """Of all programs, in Markdown."""
    lines = ["| program | `deepum`, ms | `planned`, ms | of it |", "|---|---|---|---|"]
    for program, one in kept["programs"].items():
        ms = [one[policy]["ms"] for policy in ("deepum", "planned")]
        lines.append(f"| {program} | {ms[0]:.0f} | {ms[1]:.0f} | {ms[1] / ms[0]:.3f} |")
    return "\n".join(lines) + "\n"


KEPT = Kept("deviating", "docs/planned.md", table, "deviating.json")


def main() -> int:
    parser = KEPT.parser(__doc__)
    parser.add_argument("--programs", help="some of the programs, with commas between them")
    add_costs(parser)
    given = parser.parse_args()
    if given.page:
        KEPT.write_page(given.json)
        return 0
    chosen = names_of(parser, "program", given.programs or ",".join(PROGRAMS), PROGRAMS)
    kept = results_in(given.json, "programs")
    for program in chosen:
        found = measure(program, given.costs)
        kept |= circumstances(costs=given.costs, machine=MACHINE, steps=STEPS)
        kept["programs"][program] = found
        save(given.json, kept)
        ratio = found["planned"]["ms"] / found["deepum"]["ms"]
        kept_plans = sum(one["kept"] for one in found["outcomes"])
        print(
            f"{program}: {ratio:.3f} of the time without plans, {kept_plans} plans kept", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
