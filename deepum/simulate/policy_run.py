"""A workload, replayed under one policy on one machine."""

from __future__ import annotations

from deepum.errors import DeepumError, UsageError
from deepum.recomputation.within import OutOfMemoryError
from deepum.simulate import lms
from deepum.simulate.driver import Driver
from deepum.simulate.garbage import rare_collections
from deepum.simulate.given_plans import check
from deepum.simulate.host import Host
from deepum.simulate.mode import DEFAULT, Mode
from deepum.simulate.planned import planning
from deepum.simulate.policies import BY_NAME, Policy
from deepum.simulate.preset import preset_of
from deepum.simulate.recomputed import recomputing
from deepum.simulate.replay import Launch, Outcome, Program, machine, replay
from deepum.simulate.workload import Workload
from deepum.trace import Trace
from deepum.trace.declared import declared

_UNLIMITED_BYTES = 1 << 44
_MACHINES_OWN = Host()
_ITS_DRIVER = Driver()


class DoesNotFitError(DeepumError):
    """The program runs out of memory under a policy. `cause`: when, and what for."""

    def __init__(self, workload: str, policy: str, cause: str) -> None:
        super().__init__(
            f"workload {workload}: does not fit under {policy}: {cause}; take a smaller batch "
            f"or a larger card"
        )
        self.cause = cause


@rare_collections()
def run(
    workload: Workload,
    on: str,
    policy: Policy,
    memory_bytes: int | None = None,
    launch_queue: int | None = None,
    host: Host = _MACHINES_OWN,
    driver: Driver = _ITS_DRIVER,
    mode: Mode = DEFAULT,
    **keep: bool,
) -> Outcome:
    """Replays the workload under one policy; memory, launch queue, host and driver are the
    machine's unless given. `keep`: as for `replay`.

    Raises UsageError, and DoesNotFitError.
    """
    preset = preset_of(on)
    queue = policy.launch_queue or launch_queue or int(preset.launch_queue)
    memory = _UNLIMITED_BYTES if policy.unlimited else memory_bytes or int(preset.memory_bytes)
    if policy.plan is not None:
        check(policy.plan, workload.name, workload.trace, memory)
    try:
        figures = machine(on, launch_queue=queue, **host.figures(preset), **driver.figures(preset))
        trace: Trace | Program = workload.trace
        if policy.swaps:
            trace = _swapping(workload, policy, memory)
        elif policy.recomputes:
            link_ns = 1 / float(preset.h2d_gbps)
            card = memory_bytes or int(preset.memory_bytes)
            trace = recomputing(
                workload, _unlimited(workload, on), card, link_ns, policy.moves, policy.heuristic
            )
        if policy.declares_reads and isinstance(trace, Trace):
            trace = declared(trace)
        return replay(
            trace,
            figures,
            policy.settings(queue),
            memory,
            observe_faults=policy.observe_faults,
            observe_times=policy.plans or policy.declares_reads,
            watch=planning(policy, preset) if policy.plans else None,
            capacity_error=driver.capacity_error,
            without_free_memory=not driver.tells_free_memory,
            mode=mode,
            profile=b"",
            **keep,
        )
    except OutOfMemoryError as error:
        raise DoesNotFitError(workload.name, policy.name, str(error)) from None
    except ValueError as error:
        raise UsageError(f"workload {workload.name}: {error}; record it anew") from None


def _unlimited(workload: Workload, on: str) -> list[Launch]:
    """Its launches with all of its memory on the card."""
    return run(workload, on, BY_NAME["unlimited"], keep_launches=True).launches


def _swapping(workload: Workload, policy: Policy, memory: int) -> Trace:
    """The program under LMS. Raises UsageError, DoesNotFitError, and ValueError for a damaged
    trace.
    """
    if (reason := lms.refusal(workload.trace)) is not None:
        raise UsageError(
            f"policy '{policy.name}': cannot follow {workload.name}, which {reason}; leave "
            f"the policy out"
        )
    swapped = lms.rewrite(workload.trace, memory, policy.empty_cache_every)
    if swapped.trace is None:
        raise DoesNotFitError(workload.name, policy.name, swapped.cause)
    return swapped.trace
