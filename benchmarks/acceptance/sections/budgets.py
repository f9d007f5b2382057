"""Training with a budget of 25, 50 and 75 % of what it needs: deepum, the same evictions without
prefetching, plain memory, and what a user would take instead. Beside each the ratio to the bound:
the larger of the plain step and the transfer of what exceeds the budget, in and out at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acceptance import traces
from acceptance.place import Place
from acceptance.sections import overhead
from acceptance.trainings import DEEPUM, EMULATED, PLAIN, SYNC, Deadline, train
from acceptance.watch import Watch

_LEAST_BUDGET = 64 << 20  # that deepum takes
_SPARSE = ("dlrm",)  # a step uses little of the memory: what exceeds the budget need not move


def run(place: Place, keep: Callable[[dict[str, Any]], None], deadline: Deadline) -> None:
    """`rows` of runs; those with a budget have `bound_ms`, `to_bound` and `same_bits`. `left_out`:
    what there was no time for. `traces`: of which models one was kept.
    """
    findings: dict[str, Any] = {"rows": [], "left_out": [], "link": _link(place), "traces": {}}
    watch = Watch(place)
    plain: dict[str, dict[str, Any]] = {}
    known = _sections(place, "overhead").get("rows", [])
    for model in place.models:
        rows = [
            row for row in known if row["model"] == model and row["what"] in overhead.instead(place)
        ]
        if not any(row["what"] == PLAIN and "error" not in row for row in rows):
            rows = train(place, watch, model, PLAIN, None, deadline.left, overhead.instead(place))
        findings["rows"] += rows
        for row in rows:
            if row["what"] == PLAIN and "error" not in row:
                plain[model] = row
        keep(findings)
    # The simulated GPU is always in lock-step.
    kinds = {50: (DEEPUM, EMULATED, *([] if place.simulated else [SYNC]))}
    cases = [
        (share, model, what)
        for share in place.shares
        for what in kinds.get(share, (DEEPUM, EMULATED))
        for model in place.models
    ]
    for share, model, what in cases:
        if model not in plain or deadline.left < 5:
            findings["left_out"].append(f"{model} {share} % {what}")
            continue
        budget = max(_LEAST_BUDGET, plain[model]["peak_allocated_bytes"] * share // 100)
        row = train(place, watch, model, what, budget, deadline.left)[0]
        findings["rows"].append(
            row | {"share": share, **_against(plain[model], row, budget, findings["link"])}
        )
        if "error" not in row and model not in findings["traces"]:
            findings["traces"][model] = traces.keep(place, model, budget)
        keep(findings)
    keep(findings)


def _against(
    plain: dict[str, Any], row: dict[str, Any], budget: int, link: dict[str, Any]
) -> dict[str, Any]:
    """The bound of a step, and how far from it this one is."""
    if "error" in row:
        return {}
    excess = 0 if row["model"] in _SPARSE else max(0, plain["peak_allocated_bytes"] - budget)
    rates = [rate for way in ("to_gpu", "to_host") if (rate := link.get(f"{way}_prefetch"))]
    transfer = excess / min(rates) / 1e6 if rates else 0.0
    bound = max(plain["step_ms"], transfer)
    return {
        "bytes_must_move": excess,
        "bound_ms": round(bound, 4),
        "to_bound": round(row["step_ms"] / bound, 3),
        "same_bits": row["losses"] == plain["losses"] and row["digest"] == plain["digest"],
    }


def _sections(place: Place, name: str) -> dict[str, Any]:
    """What an earlier section kept."""
    try:
        content = json.loads((Path(place.folder) / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _link(place: Place) -> dict[str, Any]:
    """As measured by the questions, or by the doctor."""
    measured = _sections(place, "questions").get("links", {}).get("one_way")
    if measured:
        return dict(measured)
    for check in _sections(place, "doctor").get("checks", []):
        if check["name"] == "link":
            return dict(check["data"])
    return {}
