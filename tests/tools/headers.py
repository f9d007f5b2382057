"""NVIDIA's headers, as its Python packages bring them."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def folder_of(header: str, package: str) -> Path | None:
    """The folder of this header in the package of this name below `nvidia`; None: not installed."""
    found = importlib.util.find_spec("nvidia")
    folders = [
        Path(place) / package / "include"
        for place in (found.submodule_search_locations if found else None) or ()
    ]
    return next((folder for folder in folders if (folder / header).is_file()), None)
