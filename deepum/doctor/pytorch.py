"""Checks of PyTorch: its version, and an allocator that goes through cudaMalloc. PyTorch itself is
not imported.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path

from deepum.doctor.check import Check
from deepum.launcher.environment import allocator_remarks

# What tests/pytorch_versions was run with.
_OLDEST, _NEWEST = (2, 4), (2, 15)
_CUDA = ("12", "13")


def _constant(name: str, text: str) -> str | None:
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
    there, cuda = _constant("__version__", text), _constant("cuda", text)
    data = {"version": there, "cuda": cuda}
    if there is None:
        return Check(
            "PyTorch",
            "ok",
            "none in this Python's environment (programs may have their own)",
            data=data,
        )
    parts = re.match(r"(\d+)\.(\d+)", there)
    number = (int(parts[1]), int(parts[2])) if parts is not None else None
    if cuda is None:
        return Check(
            "PyTorch",
            "warn",
            f"{there}: is built without CUDA",
            "install a CUDA build (pytorch.org)",
            data,
        )
    if number is None or number < _OLDEST:
        return Check(
            "PyTorch",
            "warn",
            f"{there}: is older than what is tested",
            "install 2.4 or later",
            data,
        )
    if cuda.split(".")[0] not in _CUDA:
        return Check(
            "PyTorch",
            "warn",
            f"{there}: CUDA {cuda} is not tested",
            "install a build with CUDA 12 or 13",
            data,
        )
    newer = (
        f"; newer than what is tested, 2.4 to {_NEWEST[0]}.{_NEWEST[1]}" if number > _NEWEST else ""
    )
    return Check("PyTorch", "ok", f"{there}, CUDA {cuda}{newer}", data=data)


def allocator(environment: Mapping[str, str]) -> Check:
    """What PyTorch's allocator is asked to do."""
    remarks = allocator_remarks(dict(environment))
    data = {
        name: environment[name]
        for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
        if environment.get(name)
    }
    if remarks:
        remedy = "`deepum run` turns it off; without the launcher, unset it"
        return Check(
            "allocator",
            "warn",
            f"{', '.join(data)} asks for an allocator that bypasses cudaMalloc",
            remedy,
            data,
        )
    return Check("allocator", "ok", "PyTorch's own", data=data)
