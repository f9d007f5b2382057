"""A whole program under `deepum.remat`, in all its threads (`deepum run --remat`)."""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from deepum.errors import DeepumError
from deepum.rematerialise.pytorch.session import Remat

_FOLDER = "DEEPUM_STATS_DIR"  # the launcher's


def begin() -> None:
    """From now on, with the budget and the device of the environment. Ends the program where they
    cannot be used.
    """
    try:
        session = Remat(
            os.environ["DEEPUM_REMAT"], device=os.environ.get("DEEPUM_REMAT_DEVICE") or None
        )
        session.__enter__()
    except DeepumError as error:
        print(error.line, file=sys.stderr, flush=True)
        sys.exit(error.exit_code)
    _in_all_threads(session)
    atexit.register(_report, session, os.getpid())


def _in_all_threads(session: Remat) -> None:
    begin_thread = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def bootstrap(self: Any) -> None:
        session.enter_thread()
        try:
            begin_thread(self)
        finally:
            session.leave_thread()

    threading.Thread._bootstrap_inner = bootstrap  # type: ignore[attr-defined]


def _report(session: Remat, process: int) -> None:
    folder = os.environ.get(_FOLDER)
    statistics = session.statistics()
    is_used = statistics.operators or (statistics.choice and statistics.choice.used_bytes)
    if folder is None or os.getpid() != process or not is_used:
        return
    report = {"pid": process, **dataclasses.asdict(statistics)}
    try:
        Path(folder, f"remat-{process}.json").write_text(json.dumps(report), encoding="utf-8")
    except OSError as error:
        print(f"deepum: warning: {folder}: {error.strerror}", file=sys.stderr, flush=True)
