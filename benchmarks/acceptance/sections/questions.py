"""The open questions to the driver, each in a process of its own: one that hangs is cut off, and
the rest are asked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from acceptance import processes
from acceptance.ask import QUESTIONS
from acceptance.place import Place
from acceptance.trainings import Deadline

_MOST_SECONDS = 25.0


def run(place: Place, keep: Callable[[dict[str, Any]], None], deadline: Deadline) -> None:
    """By name, what was seen; `error` where nothing was."""
    answers: dict[str, Any] = {}
    for name in QUESTIONS:
        seconds = min(_MOST_SECONDS, deadline.left)
        if seconds < 1:
            answers[name] = {"error": "no time left"}
            continue
        kinds = ["simulated" if place.simulated else "real", "short" if place.short else "whole"]
        command = [sys.executable, "-P", "-m", "acceptance.ask", name, str(place.ordinal), *kinds]
        ran = processes.run(command, place.driver_environment(), seconds)
        answers[name] = _answer(ran)
        keep(answers)
    keep(answers)


def _answer(ran: processes.Ran) -> dict[str, Any]:
    if ran.trouble is not None:
        return {"error": ran.trouble}
    try:
        answer = json.loads(ran.out.splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": "told nothing"}
    return {**answer, "seconds": round(ran.seconds, 1)}
