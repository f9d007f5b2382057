"""What `--remat` did, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deepum.sizes import size

_MOST_PROCESSES = 8  # that are told of one by one


def lines(processes: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each process."""
    found = []
    for one in processes[:_MOST_PROCESSES]:
        name = f"remat, process {one['pid']}" if len(processes) > 1 else "remat"
        choice = one.get("choice")
        found.append(f"{name}: {_within(one) if choice is None else _chosen(one, choice)}")
    return found


def _within(one: Mapping[str, Any]) -> str:
    """A process with a fixed budget."""
    kept = f"{size(one['peak_bytes'])} of {size(one['budget_bytes'])} at most"
    if not one["evictions"]:
        return f"{kept}; all fitted, nothing was computed again"
    return f"{kept}; {_again(one)}"


def _again(one: Mapping[str, Any]) -> str:
    more = 100 * one["recomputed_seconds"] / max(one["computed_seconds"], 1e-9)
    return (
        f"{one['evictions']} tensors evicted, {size(one['evicted_bytes'])}; "
        f"{one['recomputed']} operators ran again, {more:.0f} % of the program's computing"
    )


def _chosen(one: Mapping[str, Any], choice: Mapping[str, Any]) -> str:
    """A process whose budget was `auto`."""
    took = f"{size(choice['used_bytes'])} of {size(choice['card_bytes'])}"
    if choice["outcome"] == "fits" and not choice["steps"]:
        return f"{took}; no step of a training was seen: all was left to moving"
    if choice["outcome"] == "fits":
        return f"{took}; it fits, nothing was tried"
    trials = choice["trials"]
    if choice["outcome"] == "undecided":
        count = len(trials)
        settings = f"{count} settings were" if count > 1 else f"{count or 'no'} setting was"
        return f"{took}; {settings} tried in {choice['steps']} steps, too few to choose"
    alone, again = trials[0]["ms"], min((trial["ms"] for trial in trials[1:]), default=0.0)
    if choice["outcome"] == "move":
        took = f"took {again:.3g} ms or more" if again >= alone else "were not faster twice"
        return (
            f"moving alone was chosen: {alone:.3g} ms a step, and {len(trials) - 1} settings that "
            f"compute again {took}"
        )
    return (
        f"computing again was chosen for up to {choice['price_ns']:.3g} ns a byte, within "
        f"{size(one['budget_bytes'])}: {again:.3g} ms a step, {alone:.3g} ms with moving alone; "
        f"{_again(one)}"
    )
