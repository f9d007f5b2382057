"""deepum: run CUDA programs that need more memory than the GPU has, without changing them.

The words of the package's rooms: `settings` defines every setting once; `cli` is the command line,
`launch` starts programs under the shim; `daemon` serves their sessions; `core` is the face of the
decision core; `statistics` sums what sessions report; `remat` recomputes tensors of PyTorch instead
of keeping them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepum.rematerialise.pytorch.session import Remat as remat  # noqa: N813 - used as a verb

__version__ = "0.1.0"
__all__ = ["remat"]


def __getattr__(name: str) -> Any:
    # PyTorch is loaded by those who ask for it only.
    if name == "remat":
        from deepum.rematerialise.pytorch.session import Remat

        return Remat
    raise AttributeError(f"module 'deepum' has no attribute '{name}'")
