"""One workload under several policies on one machine: the steady steps of each, beside the
bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any

from deepum.errors import UsageError
from deepum.simulate import bound
from deepum.simulate.driver import Driver
from deepum.simulate.footprint import Footprint, footprint
from deepum.simulate.host import Host
from deepum.simulate.mode import DEFAULT, Mode
from deepum.simulate.policies import BY_NAME, Policy
from deepum.simulate.policy_run import DoesNotFitError, run
from deepum.simulate.preset import preset_of
from deepum.simulate.replay import Outcome
from deepum.simulate.steps import COUNTED, WARM_UP, Step, repetitions, steady, steps
from deepum.simulate.workload import Workload
from deepum.simulate.workload_bounds import lower_bounds, recomputing_bound
from deepum.sizes import size

_MACHINES_OWN = Host()
_ITS_DRIVER = Driver()


@dataclass(frozen=True)
class Row:
    """A policy's steps; times in ns of virtual time. `table_bytes`: of the core's tables at the
    end, on the host. No steps where the program runs out of memory: `does_not_fit` says when, and
    what for. The first `warm_up` steps do not count.
    """

    policy: Policy
    all_steps: list[Step]
    table_bytes: int = 0
    does_not_fit: str | None = None
    warm_up: int = WARM_UP

    @property
    def ns(self) -> float:
        """A steady step's mean; infinite where there is none."""
        kept = steady(self.all_steps, self.warm_up)
        return sum(step.ns for step in kept) / len(kept) if kept else math.inf

    def count(self, name: str) -> float:
        """A counter's mean over the steady steps. Only for what fits."""
        kept = steady(self.all_steps, self.warm_up)
        return sum(step.counts[name] for step in kept) / len(kept)


@dataclass(frozen=True)
class Comparison:
    """The bounds are None for workloads whose iteration is not known kernel by kernel;
    `moving_bound_ns`: without duplicates. `kept_...`: the same where content is kept until the
    program gives it up, as unified memory has to. `footprint`: of all the steps. `repetitions`: how
    often most launches come in a step (deepum.simulate.steps). `host_memory_bytes`, `disk_gbps`
    (read, write): 0 where the host holds all there is, and where it has no disk.
    `linear_bound_ns`: by linear programming over the plans of an iteration, None unless asked for.
    `recomputed_bound_ns`: of those that may compute content again, None unless a policy does.
    `driver_bound_ns`: `kept_bound_ns` with what the driver's prefetches cost, None where that is
    nothing.
    """

    workload: str
    machine: str
    memory_bytes: int
    rows: dict[str, Row]  # those asked for, on-demand and unlimited always among them
    bound_ns: float | None
    moving_bound_ns: float | None
    footprint: Footprint
    host_memory_bytes: int = 0
    disk_gbps: tuple[float, float] = (0.0, 0.0)
    kept_bound_ns: float | None = None
    kept_moving_bound_ns: float | None = None
    repetitions: int = 1
    driver: Driver = _ITS_DRIVER
    mode: Mode = DEFAULT
    linear_bound_ns: float | None = None
    recomputed_bound_ns: float | None = None
    driver_bound_ns: float | None = None

    def of_kept_bound(self, name: str) -> float | None:
        """Of a policy's step: its time / the bound where content is kept; None without one,
        infinite for what does not fit.
        """
        return self.rows[name].ns / self.kept_bound_ns if self.kept_bound_ns else None

    def of_linear_bound(self, name: str) -> float | None:
        """The same of that bound."""
        return self.rows[name].ns / self.linear_bound_ns if self.linear_bound_ns else None

    def ratios(self, name: str) -> tuple[float, float, float | None]:
        """Of a policy's step: unlimited's time / its, on-demand's / its, its / the bound.

        0, 0 and infinite for what does not fit; infinite over what does not.
        """
        ns = self.rows[name].ns
        of_bound = ns / self.bound_ns if self.bound_ns else None
        if math.isinf(ns):
            return 0.0, 0.0, of_bound
        return self.rows["unlimited"].ns / ns, self.rows["on-demand"].ns / ns, of_bound

    def as_json(self) -> dict[str, Any]:
        """Times in ms, counters a step. What does not fit has the cause instead."""
        policies: dict[str, dict[str, Any]] = {}
        for name, row in self.rows.items():
            if row.does_not_fit is not None:
                policies[name] = {"does_not_fit": row.does_not_fit}
                continue
            unlimited, on_demand, of_bound = self.ratios(name)
            policies[name] = {
                "step_ms": row.ns / 1e6,
                "steps_ms": [step.ns / 1e6 for step in row.all_steps],
                "steps_faults": [step.counts["faults"] for step in row.all_steps],
                "of_unlimited": _number(unlimited),
                "speed_up_over_on_demand": _number(on_demand),
                "of_bound": of_bound,
                "of_kept_bound": self.of_kept_bound(name),
                **({"of_linear_bound": self.of_linear_bound(name)} if self.linear_bound_ns else {}),
                "a_step": {counter: row.count(counter) for counter in COUNTED},
                "table_bytes": row.table_bytes,
            }
        return {
            "version": 1,
            "workload": self.workload,
            "machine": self.machine,
            "memory_bytes": self.memory_bytes,
            "warm_up": self.rows["unlimited"].warm_up,
            "repetitions": self.repetitions,
            "host_memory_bytes": self.host_memory_bytes,
            "disk_gbps": list(self.disk_gbps),
            "driver": self.driver.as_json(),
            "mode": self.mode.name,
            "bound_ms": _ms(self.bound_ns),
            "moving_bound_ms": _ms(self.moving_bound_ns),
            "kept_bound_ms": _ms(self.kept_bound_ns),
            "kept_moving_bound_ms": _ms(self.kept_moving_bound_ns),
            **({"linear_bound_ms": _ms(self.linear_bound_ns)} if self.linear_bound_ns else {}),
            **({"driver_bound_ms": _ms(self.driver_bound_ns)} if self.driver_bound_ns else {}),
            **(
                {"recomputed_bound_ms": _ms(self.recomputed_bound_ns)}
                if self.recomputed_bound_ns
                else {}
            ),
            "allocated_bytes": self.footprint.allocated,
            "managed_bytes": self.footprint.managed,
            "policies": policies,
        }


@dataclass(frozen=True)
class Means:
    """Geometric means of a policy's speed-up over on-demand, and of its time over the bounds where
    all have one; `count`: of so many workloads, those that fit under it and on demand.
    """

    over_on_demand: float
    of_bound: float | None
    count: int
    of_kept_bound: float | None = None


def means(found: Sequence[Comparison], name: str) -> Means | None:
    """None where nothing fits under that policy and on demand."""
    fitting = [
        one for one in found if all(math.isfinite(one.rows[row].ns) for row in (name, "on-demand"))
    ]
    if not fitting:
        return None

    def mean(ratios: Sequence[float | None]) -> float | None:
        known = [ratio for ratio in ratios if ratio is not None]
        return geometric_mean(known) if len(known) == len(ratios) else None

    return Means(
        geometric_mean(one.ratios(name)[1] for one in fitting),
        mean([one.ratios(name)[2] for one in fitting]),
        len(fitting),
        mean([one.of_kept_bound(name) for one in fitting]),
    )


def compare(
    workload: Workload,
    on: str,
    policies: Sequence[Policy],
    memory_bytes: int | None = None,
    launch_queue: int | None = None,
    host: Host = _MACHINES_OWN,
    warm_up: int = WARM_UP,
    driver: Driver = _ITS_DRIVER,
    mode: Mode = DEFAULT,
) -> Comparison:
    """Replays the workload under each policy, and on demand and with unlimited memory in any case.
    Raises UsageError, also where no step is left behind a warm-up that was asked for.
    """
    preset = preset_of(on)
    for figure, value in host.figures(preset).items():
        setattr(preset, figure, value)
    host_memory = int(preset.host_memory_bytes)
    memory = memory_bytes or int(preset.memory_bytes)
    rows = {}
    unlimited: Outcome | None = None
    repeated = 1
    always = (BY_NAME["on-demand"], BY_NAME["unlimited"])
    for policy in {one.name: one for one in (*policies, *always)}.values():
        keeps = policy.name == "unlimited"
        try:
            outcome = run(
                *(workload, on, policy, memory, launch_queue, host, driver, mode),
                keep_launches=keeps,
            )
        except DoesNotFitError as error:
            rows[policy.name] = Row(policy, [], does_not_fit=error.cause)
            continue
        rows[policy.name] = _row(workload, policy, outcome, warm_up, host_memory)
        if rows[policy.name].does_not_fit is not None:
            continue
        if policy.name == "on-demand":
            repeated = repetitions(outcome, workload.trace)
        unlimited = outcome if keeps else unlimited
    disk = _disk(preset)
    links = _links(preset, memory, disk)
    handling = driver.handling(preset)
    costs = handling != bound.Handling()
    bound_links = [*links, replace(links[0], handling=handling)] if costs else links
    (least, moving, *_), (kept, kept_moving, *paid) = lower_bounds(
        workload, unlimited, bound_links, warm_up
    )
    recomputes = any(policy.recomputes for policy in policies)
    return Comparison(
        workload=workload.name,
        machine=on,
        memory_bytes=memory,
        rows=rows,
        bound_ns=least,
        moving_bound_ns=moving,
        footprint=footprint(workload.trace),
        host_memory_bytes=host_memory,
        disk_gbps=disk,
        kept_bound_ns=kept,
        kept_moving_bound_ns=kept_moving,
        repetitions=repeated,
        driver=driver,
        mode=mode,
        recomputed_bound_ns=recomputing_bound(workload, unlimited, links[0], warm_up)
        if recomputes
        else None,
        driver_bound_ns=paid[0] if paid else None,
    )


def _row(
    workload: Workload, policy: Policy, outcome: Outcome, warm_up: int, host_memory: int
) -> Row:
    """Of one policy's replay. Raises UsageError where the warm-up leaves no step."""
    if host_memory and outcome.counters["peak_host_bytes"] > host_memory:
        return Row(policy, [], does_not_fit=f"{size(host_memory)} of host memory are too little")
    made = steps(outcome, workload.trace)
    if warm_up != WARM_UP and len(made) < warm_up + 2:
        short = f"{len(made)} steps leave none behind a warm-up of {warm_up}"
        raise UsageError(
            f"workload {workload.name}: {short}; make at least {warm_up + 2}, the last "
            f"does not count"
        )
    return Row(policy, made, outcome.core.table_bytes, warm_up=warm_up)


def _disk(preset: Any) -> tuple[float, float]:
    """Rates of its disk, read and write; 0 where the host holds all there is."""
    if not preset.host_memory_bytes:
        return 0.0, 0.0
    return float(preset.disk_read_gbps), float(preset.disk_write_gbps)


def _links(preset: Any, memory: int, disk: tuple[float, float]) -> list[bound.Link]:
    """The link of a machine for its bounds, with duplicates and without."""
    held = int(preset.host_memory_bytes) + 2 * int(preset.disk_buffer_bytes)
    behind = bound.Disk(held, *disk) if disk[0] else None
    return [
        bound.Link(memory, float(preset.h2d_gbps), float(preset.d2h_gbps), duplicates, behind)
        for duplicates in (True, False)
    ]


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
