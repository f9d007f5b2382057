"""What the host offers: memory that is left to this process, the driver's kernel module, WSL2."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")  # tests read another tree


@dataclass(frozen=True)
class _Groups:
    """How a version of control groups tells (kernel: admin-guide/cgroup-v2.rst,
    cgroup-v1/memory.rst); as kernel_hooks/host_budget.cpp.
    """

    entry: str  # of /proc/self/cgroup, behind the number
    root: str
    most: str
    used: str
    reclaimable: str  # of memory.stat: file pages that the kernel drops before it kills


_VERSIONS = (
    _Groups("::/", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    _Groups(
        ":memory:/",
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


def read(path: str, root: Path = ROOT) -> str:
    """A small file's text, empty where there is none."""
    try:
        return (root / path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _value(text: str, key: str) -> int | None:
    found = re.search(rf"^{re.escape(key)}:?\s+(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None


def _number(path: str, root: Path) -> int | None:
    text = read(path, root).strip()
    return int(text) if text.isdigit() else None


def _limits(root: Path) -> Iterator[tuple[int, int]]:
    """Of each control group of this process that has a limit: the limit, and what is left of it;
    bytes.
    """
    for version in _VERSIONS:
        entry = re.search(
            rf"^\d*{re.escape(version.entry[:-1])}(/.*)$",
            read("proc/self/cgroup", root),
            re.MULTILINE,
        )
        group = Path(entry[1].strip("/")) if entry else Path()
        for folder in (group, *group.parents):
            place = f"{version.root}/{folder}"
            most, used = (
                _number(f"{place}/{version.most}", root),
                _number(f"{place}/{version.used}", root),
            )
            if most is not None and used is not None:
                kept = used - min(
                    used, _value(read(f"{place}/memory.stat", root), version.reclaimable) or 0
                )
                yield most, max(0, most - kept)


def group_limit(root: Path = ROOT) -> int | None:
    """Bytes that the control groups of this process still leave it; None without a limit. Beyond it
    the kernel kills.
    """
    return min((left for _, left in _limits(root)), default=None)


def share_bytes(root: Path = ROOT) -> int | None:
    """What control groups give this process of a machine that has more: a container's share, a
    batch system's. None: all of it.
    """
    total = total_bytes(root)
    most = min((limit for limit, _ in _limits(root)), default=None)
    return most if total is not None and most is not None and most < total else None


def available_bytes(root: Path = ROOT) -> int | None:
    """Host memory that this process may still take: the machine's and its control groups'. None
    where nobody tells.
    """
    free = _value(read("proc/meminfo", root), "MemAvailable")
    limit = group_limit(root)
    if free is None:
        return limit
    return min(free * 1024, limit) if limit is not None else free * 1024


def total_bytes(root: Path = ROOT) -> int | None:
    """The machine's memory."""
    total = _value(read("proc/meminfo", root), "MemTotal")
    return total * 1024 if total is not None else None


@dataclass(frozen=True)
class KernelDriver:
    """NVIDIA's kernel module: `version` such as (580, 95, 5), and whether it is the open one."""

    version: tuple[int, ...]
    open: bool

    @property
    def text(self) -> str:
        """As NVIDIA writes it."""
        return ".".join([str(self.version[0]), *(f"{part:02}" for part in self.version[1:])])


def kernel_driver(root: Path = ROOT) -> KernelDriver | None:
    """The one that is loaded, None where none tells."""
    banner = re.search(r"^NVRM version:.*", read("proc/driver/nvidia/version", root), re.MULTILINE)
    number = re.search(r"\b(\d{3}(?:\.\d+)+)\b", banner[0]) if banner else None
    if banner is None or number is None:
        return None
    return KernelDriver(
        tuple(int(part) for part in number[1].split(".")), "Open Kernel Module" in banner[0]
    )


def wsl(root: Path = ROOT) -> bool:
    """Windows' Subsystem for Linux."""
    return "microsoft" in read("proc/version", root).lower()


def resident_bytes(root: Path = ROOT) -> int:
    """Of this process; 0 where nobody tells."""
    fields = read("proc/self/statm", root).split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else 0
