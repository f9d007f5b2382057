"""Rules for memory that stays plain device memory (`--plain-memory`). In the shim
native/runtime/plain_rules.cpp reads them.
"""

from __future__ import annotations

import re

from deepum.sizes import format_size, parse_size

# What these allocate is their own: buffers and heaps that they open in other processes or register
# with network and storage devices. NCCL; NVSHMEM; UCX (three libraries); MPI, whose Open MPI
# allocates in libopen-pal; libfabric; GPUDirect Storage.
SHARING_LIBRARIES = (
    "libnccl",
    "libnvshmem",
    "libucp",
    "libuct",
    "libucs",
    "libmpi",
    "libopen-pal",
    "libfabric",
    "libcufile",
)
MOST_RULES = 32  # those of SHARING_LIBRARIES included
_LIBRARY = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]{0,62}")


def _sizes(text: str) -> str:
    low, dash, high = (part.strip() for part in text.partition("-"))
    if not dash:
        return format_size(parse_size(low))
    if not low and not high:
        raise ValueError("'-' has no size; write one like 2MiB-20MiB")
    if low and high and parse_size(low) > parse_size(high):
        raise ValueError(f"'{text}' is empty; write the smaller size first")
    return "-".join(format_size(parse_size(size)) if size else "" for size in (low, high))


def _rule(text: str) -> str:
    if text.lower() == "none":
        return "none"
    if not re.match(r"[A-Za-z_]", text):
        return _sizes(text)
    name, colon, sizes = (part.strip() for part in text.partition(":"))
    if not _LIBRARY.fullmatch(name) or name.lower() == "none":
        raise ValueError(
            f"'{name[:80]}' is no library; write the beginning of a file name, like libnccl"
        )
    return f"{name}:{_sizes(sizes)}" if colon else name


def parse_rules(text: str) -> str:
    """The rules in their shortest form: sizes (2MiB), ranges (2MiB-20MiB, 64MiB-, -4MiB),
    libraries, LIBRARY:SIZES, none.

    Raises ValueError with the cause.
    """
    if not text.strip():
        raise ValueError("is empty; give a value or leave it out")
    rules = [_rule(piece.strip()) for piece in text.split(",")]
    count = len([rule for rule in rules if rule != "none"]) + (
        0 if "none" in rules else len(SHARING_LIBRARIES)
    )
    if count > MOST_RULES:
        raise ValueError(
            f"has {count} rules with those of the default; give at most {MOST_RULES}, `none` "
            f"leaves the default out"
        )
    return ",".join(rules)
