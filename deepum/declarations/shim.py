"""What the shim can be told, and asked, by a program's own Python: kernel_hooks/declare_reads.h."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from deepum.shim import is_disabled, is_loaded

_VERSION = 12000  # of CUDA: the shim answers for any
_DECLARE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)
_WANTED = ctypes.PYFUNCTYPE(ctypes.c_int)


class Shim(NamedTuple):
    """In this process. declare(address, count): what the calling thread launches from now on only
    reads so many ranges, that lie there until others are declared: pairs of the addresses of a
    first byte and of the one behind the last; (None, 0): nothing is declared any more. wanted():
    not 0 while it is of use. Neither waits, nor leaves the interpreter's lock; no signal's handler
    runs before they have done it.
    """

    declare: Any
    wanted: Any


def find() -> Shim | None:
    """The shim of this process; None without one that takes declarations."""
    if is_disabled() or not is_loaded():
        return None
    declare, wanted = _answer("deepumDeclareReads"), _answer("deepumReadsWanted")
    return Shim(_DECLARE(declare), _WANTED(wanted)) if declare and wanted else None


def _answer(name: str) -> int | None:
    """What cuGetProcAddress says; it is the shim's, which needs no driver for this."""
    found = ctypes.c_void_p()
    result = ctypes.CDLL(None).cuGetProcAddress(
        name.encode(), ctypes.byref(found), ctypes.c_int(_VERSION), ctypes.c_uint64(0)
    )
    return found.value if result == 0 else None
