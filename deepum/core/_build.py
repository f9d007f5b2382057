"""Writes the C source of the extension `deepum._core` from the headers it exposes (cffi, API mode).

Run by CMake: `python _build.py OUTPUT HEADER...`; the headers come in the order of their inclusion.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cffi import FFI


def declarations(header: str) -> str:
    """What cffi's parser reads of a header: its declarations, without preprocessor lines, comments
    and C++ parts.
    """
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", header, flags=re.DOTALL)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", "", text)
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def main(output: str, headers: list[str]) -> None:
    """Emits `output`; raises cffi's errors when a header is not plain C."""
    ffi = FFI()
    for header in headers:
        ffi.cdef(declarations(Path(header).read_text(encoding="utf-8")))
    ffi.set_source(
        "deepum._core", "\n".join(f'#include "{Path(header).name}"' for header in headers)
    )
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
