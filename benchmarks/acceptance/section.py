"""A section in a process of its own: `python -m acceptance.section NAME PLACE OUT SECONDS`. What it
keeps is in OUT at any time.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
from pathlib import Path
from typing import Any

from acceptance.place import Place
from acceptance.trainings import Deadline


def main() -> None:
    name, place, out, seconds = (
        sys.argv[1],
        Place.read(Path(sys.argv[2])),
        Path(sys.argv[3]),
        float(sys.argv[4]),
    )

    def keep(content: dict[str, Any]) -> None:
        unfinished = out.with_suffix(".part")
        unfinished.write_text(json.dumps(content), encoding="utf-8")
        unfinished.replace(out)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with what was started
    importlib.import_module(f"acceptance.sections.{name}").run(place, keep, Deadline(seconds))


if __name__ == "__main__":
    main()
