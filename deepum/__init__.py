"""deepum: run CUDA programs that need more memory than the GPU has, without changing them.

The words of the package's rooms: `settings` defines every setting once; `cli` is the command line,
`launch` starts programs under the shim; `daemon` serves their sessions; `core` is the face of the
decision core; `statistics` sums what sessions report; `remat` recomputes tensors of PyTorch instead
of keeping them; `inside` is what a program asks of deepum while it runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepum.inside.api import budget, hint, stats, step
    from deepum.rematerialise.pytorch.session import Remat as remat  # noqa: N813 - used as a verb

__version__ = "0.1.0"
__all__ = ["budget", "hint", "remat", "stats", "step"]

# PyTorch, and the core's library, are loaded by those who ask for them only.
_HOMES = {
    "budget": ("deepum.inside.api", "budget"),
    "hint": ("deepum.inside.api", "hint"),
    "remat": ("deepum.rematerialise.pytorch.session", "Remat"),
    "stats": ("deepum.inside.api", "stats"),
    "step": ("deepum.inside.api", "step"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'deepum' has no attribute '{name}'")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
