"""Options that tell of a simulated machine's host: memory of a size, a disk behind it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import click

from deepum.errors import UsageError
from deepum.simulate.host import Host
from deepum.simulate.preset import preset_of
from deepum.sizes import parse_size

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([MG])B/s", re.IGNORECASE)
_UNITS = {"M": 1e-3, "G": 1.0}
_LEAST_HOST, _MOST_HOST = 64 << 20, 1 << 46
_LEAST_RATE, _MOST_RATE = 1e-3, 1e3  # GB/s

_OPTIONS = (
    click.option(
        "--host-memory",
        metavar="SIZE",
        help=(
            "Host memory that managed memory may take; by default the machine's, else all there is."
        ),
    ),
    click.option(
        "--disk",
        metavar="RATE",
        help=(
            "A disk behind the host's memory, such as 3.2GB/s (10^9 bytes, each way); 'none': "
            "none. By default the machine's."
        ),
    ),
)


def host_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--host-memory and --disk."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def host_of(machines: Iterable[str], memory: str | None, disk: str | None) -> Host:
    """What the options say of the hosts of these machines. Raises UsageError, also if one of them
    has no use for a disk.
    """
    host = Host(None if memory is None else _memory(memory), None if disk is None else _rate(disk))
    if host.disk_gbps and not (
        host.memory_bytes or all(preset_of(on).host_memory_bytes for on in machines)
    ):
        raise UsageError(
            "--disk: nothing goes to a disk behind a host that holds all there is; give "
            "--host-memory, too"
        )
    return host


def _memory(text: str) -> int:
    try:
        memory = parse_size(text)
    except ValueError as error:
        raise UsageError(f"--host-memory: {error}") from None
    if not _LEAST_HOST <= memory <= _MOST_HOST:
        raise UsageError(f"--host-memory: '{text}' is out of range; give 64MiB to 64TiB")
    return memory


def _rate(text: str) -> float:
    if text.strip().lower() == "none":
        return 0.0
    match = _RATE.fullmatch(text.strip())
    rate = float(match[1]) * _UNITS[match[2].upper()] if match else math.nan
    if not _LEAST_RATE <= rate <= _MOST_RATE:
        raise UsageError(f"--disk: '{text}' is no rate of a disk; write one like 3.2GB/s, or none")
    return rate
