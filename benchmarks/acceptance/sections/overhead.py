"""What deepum costs when everything fits: a step under it against plain PyTorch, three models. The
losses have to be the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acceptance.place import Place
from acceptance.trainings import DEEPUM, PLAIN, Deadline, train
from acceptance.watch import Watch

MODELS = ("gpt2", "bert", "resnet")


def instead(place: Place) -> tuple[str, ...]:
    """Plain training, and what a user would take instead of deepum, in one process: they have all
    of the card. On the simulated GPU copies to host memory are carried out, so that offloading a
    model of full size takes minutes.
    """
    return (
        (PLAIN, "checkpoint", "offload")
        if place.short or not place.simulated
        else (PLAIN, "checkpoint")
    )


def run(place: Place, keep: Callable[[dict[str, Any]], None], deadline: Deadline) -> None:
    """`rows` of runs, and `compared` for each model."""
    findings: dict[str, Any] = {"rows": [], "compared": []}
    watch = Watch(place)
    for model in [model for model in MODELS if model in place.models]:
        if deadline.left < 10:
            findings["cut"] = f"no time left before {model}"
            break
        rows = train(place, watch, model, PLAIN, None, deadline.left, instead(place))
        findings["rows"] += rows
        keep(findings)
        rows += (under := train(place, watch, model, DEEPUM, None, deadline.left))
        findings["rows"] += under
        findings["compared"].append(compare(model, rows[0], under[0]))
        keep(findings)
    keep(findings)


def compare(model: str, plain: dict[str, Any], under: dict[str, Any]) -> dict[str, Any]:
    """Overhead as a share of the plain step, and whether the bits agree."""
    if "error" in plain or "error" in under:
        return {"model": model, "error": plain.get("error") or under.get("error")}
    return {
        "model": model,
        "plain_ms": plain["step_ms"],
        "deepum_ms": under["step_ms"],
        "overhead": round(under["step_ms"] / plain["step_ms"] - 1, 4),
        "same_bits": under["losses"] == plain["losses"] and under["digest"] == plain["digest"],
    }
