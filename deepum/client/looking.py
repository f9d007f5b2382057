"""Two looks at all sessions, a moment apart: figures and their rates."""

from __future__ import annotations

import time
from collections.abc import Mapping

from deepum.client.channel import Channel, NoDaemonError
from deepum.client.rates import Looks, Rates
from deepum.daemon.figures import SessionFigures

_MOMENT_SECONDS = 0.5


def look(
    environment: Mapping[str, str], moment_s: float = _MOMENT_SECONDS
) -> tuple[list[SessionFigures], dict[int, Rates]]:
    """None of either where no daemon runs. Raises DeepumError."""
    try:
        with Channel(environment) as channel:
            looks = Looks()
            if first := channel.sessions():
                looks.take(first)
                time.sleep(moment_s)
            sessions = channel.sessions() if first else []
            return sessions, looks.take(sessions)
    except NoDaemonError:
        return [], {}
