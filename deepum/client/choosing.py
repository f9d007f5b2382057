"""Which sessions somebody means."""

from __future__ import annotations

from collections.abc import Sequence

from deepum.daemon.figures import SessionFigures
from deepum.errors import EXIT_FINDINGS, DeepumError


def choose(sessions: Sequence[SessionFigures], pids: Sequence[int] | None) -> list[SessionFigures]:
    """Those of these processes, of all where `pids` is None. Raises DeepumError before anything is
    done to any, where one of them has none.
    """
    if pids is None:
        return list(sessions)
    for pid in pids:
        if all(session.pid != pid for session in sessions):
            raise DeepumError(
                f"{pid}: no such process is served; `deepum ps` lists those that are",
                EXIT_FINDINGS,
            )
    return [session for session in sessions if session.pid in pids]
