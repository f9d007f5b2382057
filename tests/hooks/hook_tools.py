"""What the tests of the hooks share besides fixtures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


def cuda_include() -> Path:
    import nvidia  # type: ignore[import-untyped]

    for folder in nvidia.__path__:
        if (Path(folder) / "cu13" / "include" / "cuda.h").exists():
            return Path(folder) / "cu13" / "include"
    pytest.skip("no CUDA headers: pip install nvidia-cuda-runtime")


@dataclass
class Ran:
    code: int
    out: str
    err: str

    def facts(self) -> dict[str, Any]:
        """What the program told, all lines together."""
        assert self.code == 0, self.err
        told: dict[str, Any] = {}
        for line in self.out.splitlines():
            told.update(json.loads(line))
        return told
