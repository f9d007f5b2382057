"""Checks of PyTorch: its version, and an allocator that goes through cudaMalloc. PyTorch itself is not imported."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path

from deepum.doctor.check import Check
from deepum.launch import allocator_remarks

_OLDEST = (2, 4)


def _told(name: str, text: str) -> str | None:
    found = re.search(rf"^{name}\b[^=]*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return found[1] if found else None


def version(folder: Path | None = None) -> Check:
    """Of the PyTorch beside us; `folder`: that of its package, else looked for."""
    if folder is None:
        found = importlib.util.find_spec("torch")
        folder = Path(found.origin).parent if found is not None and found.origin else None
    try:
        text = (folder / "version.py").read_text(encoding="utf-8") if folder is not None else ""
    except OSError:
        text = ""
    there, cuda = _told("__version__", text), _told("cuda", text)
    data = {"version": there, "cuda": cuda}
    if there is None:
        return Check("PyTorch", "ok", "none in this Python's environment (programs may have their own)", data=data)
    number = re.match(r"(\d+)\.(\d+)", there)
    if cuda is None:
        return Check("PyTorch", "warn", f"{there}: is built without CUDA", "install a CUDA build (pytorch.org)", data)
    if number is None or (int(number[1]), int(number[2])) < _OLDEST:
        return Check("PyTorch", "warn", f"{there}: is older than what is tested", "install 2.4 or later", data)
    return Check("PyTorch", "ok", f"{there}, CUDA {cuda}", data=data)


def allocator(environment: Mapping[str, str]) -> Check:
    """What PyTorch's allocator is asked to do."""
    remarks = allocator_remarks(dict(environment))
    data = {name: environment[name] for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF") if environment.get(name)}
    if remarks:
        remedy = "`deepum run` turns it off; without the launcher, unset it"
        return Check("allocator", "warn", f"{', '.join(data)} asks for an allocator that bypasses cudaMalloc", remedy, data)
    return Check("allocator", "ok", "PyTorch's own", data=data)
