"""What a session reports to the launcher, in the folder that the launcher named
(docs/architecture.md, Statistics).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from deepum.configuration.setting import Value
from deepum.core import Core


class Report:
    """The marks of one session: `session-PID.open` from its start, `session-PID.json` from its end.
    Without a folder, nothing.
    """

    def __init__(self, folder: Path | None, pid: int) -> None:
        self._pid = pid
        self._open: Path | None = None
        self.warnings: list[str] = []
        if folder is None or not folder.is_dir():
            return
        # A process that replaced itself by exec comes a second time with the same id.
        for attempt in range(1, 1000):
            name = f"session-{pid}" + (f"-{attempt}" if attempt > 1 else "")
            if not (folder / f"{name}.json").exists() and not (folder / f"{name}.open").exists():
                self._open = folder / f"{name}.open"
                break
        if self._open is not None:
            with contextlib.suppress(OSError):
                self._open.write_text(
                    json.dumps({"pid": pid, "daemon": os.getpid()}), encoding="utf-8"
                )

    def finish(self, core: Core, values: Mapping[str, Value], **more: object) -> None:
        """Writes the statistics and takes the mark away. A folder that is gone is no error: nobody
        waits for it.
        """
        if self._open is None:
            return
        document = {
            "version": 1,
            "pid": self._pid,
            "settings": {"policy": values["policy"], "prefetch_degree": values["prefetch_degree"]},
            "core": asdict(core.statistics()),
            "warnings": self.warnings,
            **more,
        }
        with contextlib.suppress(OSError):
            unfinished = self._open.with_suffix(".part")
            unfinished.write_text(json.dumps(document), encoding="utf-8")
            unfinished.rename(self._open.with_suffix(".json"))
        self.abandon()

    def abandon(self) -> None:
        """Takes the mark away without statistics."""
        if self._open is not None:
            self._open.unlink(missing_ok=True)
            self._open = None
