"""Read by Python when it starts (`deepum run` puts this folder on PYTHONPATH where something of
deepum's is to be inside the program): from its import of PyTorch on the program runs under
`deepum.remat` (`--remat`), or its operators declare what they only read (`--tune
writes=operators`). Nothing else changes: another sitecustomize is read as ever, and deepum comes
from the folder that this file is in, whatever is installed.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(_HERE)
# By variable of the environment, and the value that asks for it (None: any).
_BEGINNINGS = (
    ("DEEPUM_REMAT", None, "deepum.rematerialise.pytorch.whole_program"),
    ("DEEPUM_WRITES", "operators", "deepum.declarations.whole_program"),
)


class _AndThen(importlib.abc.Loader):
    """Loads a module by its own loader, and then ours is called."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _begin()


class _Watch(importlib.abc.MetaPathFinder):
    """Finds PyTorch, once."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _AndThen(spec.loader)
        return spec


def _begin() -> None:
    if "deepum" not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            "deepum",
            os.path.join(_PACKAGE, "__init__.py"),
            submodule_search_locations=[_PACKAGE],
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["deepum"] = module
        spec.loader.exec_module(module)
    for name in _wanted():
        importlib.import_module(name).begin()


def _wanted() -> list[str]:
    given = os.environ.get
    return [
        module
        for variable, value, module in _BEGINNINGS
        if (given(variable) if value is None else given(variable) == value)
    ]


def _go_on() -> None:
    """The sitecustomize that would have been read without this one."""
    while _HERE in sys.path:
        sys.path.remove(_HERE)
    ours = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


_go_on()
if _wanted():
    sys.meta_path.insert(0, _Watch())
