"""The largest batch of a workload that runs under a policy, on a card and a host of a size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from deepum.capture.record import capture
from deepum.errors import UsageError
from deepum.simulate import lms
from deepum.simulate.host import fits_host
from deepum.simulate.policies import Policy
from deepum.trace import Trace
from deepum.workloads import parse

_STEPS = 6  # fragments add up over steps
_MOST = 1 << 20


def fits(trace: Trace, policy: Policy, memory_bytes: int, host_bytes: int | None = None) -> bool:
    """Whether the program runs. `memory_bytes`: of the card; `host_bytes`: of the host, None:
    without end.

    Unified memory is limited by the host alone, which has to hold all that is managed; swapping by
    what is in use at once, by fragments, and by the host for what is swapped out. Raises UsageError
    where the policy cannot follow the program, ValueError for a damaged trace.
    """
    if policy.unlimited:
        return True
    if not policy.swaps:
        return host_bytes is None or fits_host(trace, host_bytes)
    if (reason := lms.refusal(trace)) is not None:
        raise UsageError(
            f"policy '{policy.name}': cannot follow {trace.name}, which {reason}; choose another"
        )
    swapped = lms.rewrite(trace, memory_bytes, policy.empty_cache_every)
    return swapped.trace is not None and (
        host_bytes is None or swapped.statistics.peak_host_bytes <= host_bytes
    )


def largest(runs: Callable[[int], bool], least: int = 1, most: int = _MOST) -> int | None:
    """The largest number for which `runs` holds, None if it does not for `least`; `most` if it
    holds for that. By doubling and halving: of sizes where larger ones run and smaller ones do not
    (fragments can do that) one is found beyond which the next does not.
    """
    if not runs(least):
        return None
    low, high = least, min(2 * least, most)
    while high > low and runs(high):
        if high == most:
            return most
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if runs(middle) else (low, middle)
    return low


def largest_batch(
    name: str,
    policy: Policy,
    memory_bytes: int,
    host_bytes: int | None = None,
    least: int = 1,
    most: int = _MOST,
    steps: int = _STEPS,
) -> int | None:
    """Of a named workload (docs/workloads.md), its other numbers as `name` has them. One capture
    for each batch that is tried.

    Raises UsageError for a workload without a batch, DeepumError without PyTorch.
    """
    base = parse(name)
    if "batch" not in base.numbers:
        raise UsageError(f"workload {name}: has no batch; name one that has")

    def runs(batch: int) -> bool:
        request = replace(base, numbers={**base.numbers, "batch": batch})
        return fits(capture(request, steps).trace, policy, memory_bytes, host_bytes)

    return largest(runs, least, most)
