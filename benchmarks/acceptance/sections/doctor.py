"""`deepum doctor --json`, as a person would run it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from acceptance import processes
from acceptance.place import Place
from acceptance.trainings import Deadline


def run(place: Place, keep: Callable[[dict[str, Any]], None], deadline: Deadline) -> None:
    """Its answer."""
    command = [sys.executable, "-P", "-m", "deepum", "doctor", "--device", place.device, "--json"]
    ran = processes.run(command, place.environment(), deadline.left)
    try:
        keep(json.loads(ran.out))
    except ValueError:
        keep({"error": ran.trouble or "told nothing"})
