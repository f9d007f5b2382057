"""Whether /dev/nvidia-uvm-tools would tell of page faults: tried as the shim would use it
(docs/observed-accesses.md).

Numbers and layouts are those of native/uvm_tools_abi/uvm_tools_abi.h. To be asked in a process
whose libcuda is initialised.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import stat
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepum import host

_NODE, _UVM_NODE = Path("/dev/nvidia-uvm-tools"), Path("/dev/nvidia-uvm")
_ENABLE, _DISABLE, _GPU_FAULT = 58, 59, 3
# The process's other descriptor of /dev/nvidia-uvm, which has no address space.
_ILLEGAL_ACTION = 0x16
_DROPPED = 16 + 8 * _GPU_FAULT  # in the control page, behind get and put
# A driver that took one layout for another would still write into the ring alone.
_RECORDS, _MOST_RECORD_BYTES = 1 << 14, 128
_BLOCK = 2 << 20
_ACCESSES = {1: "read", 2: "write", 3: "atomic", 4: "prefetch"}


@dataclass(frozen=True)
class Layout:
    """By which request a queue is made, and what a record is: its size in bytes and how its fields
    are packed.
    """

    version: int
    request: int
    record_bytes: int
    fields: str
    names: tuple[str, ...]


_FIRST = Layout(
    1,
    56,
    64,
    "<BBBBHHQQQIB",
    ("type", "_", "access", "gpu", "_", "_", "address", "_", "_", "batch", "client"),
)
_SECOND = Layout(
    2,
    76,
    72,
    "<BBHHHQQQIBB",
    ("type", "_", "gpu", "_", "_", "address", "_", "_", "batch", "client", "access"),
)
LAYOUTS = {550: _FIRST, 555: _FIRST, 565: _SECOND, 570: _SECOND, 575: _SECOND, 580: _SECOND}


class Tracker(ctypes.Structure):
    """deepum_uvm_tracker."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("records", "count", "control")),
        ("processor", ctypes.c_uint8 * 16),
        *(
            (name, ctypes.c_uint32)
            for name in ("all_processors", "uvm_descriptor", "status", "requested", "granted")
        ),
        ("reserved", ctypes.c_uint32 * 9),
    )


class Events(ctypes.Structure):
    """deepum_uvm_events."""

    _fields_ = (
        ("events", ctypes.c_uint64),
        ("status", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 5),
    )


class Table(ctypes.Structure):
    """deepum_uvm_tools_table."""

    _fields_ = (
        ("release", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)),
        ("open", ctypes.CFUNCTYPE(ctypes.c_int)),
        (
            "uvm_descriptors",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.c_int),
        ),
        ("control", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)),
        ("deliver", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)),
    )


class UnusableError(Exception):
    """It cannot be used; the text says why in a few words."""


class Module:
    """The kernel module's device."""

    def release(self) -> str | None:
        """The driver's, None without one."""
        version = host.read("sys/module/nvidia/version").strip()
        known = host.kernel_driver()
        return version or (known.text if known else None)

    def open(self) -> int:
        """A descriptor. Raises OSError."""
        return os.open(_NODE, os.O_RDWR | os.O_CLOEXEC)

    def uvm_descriptors(self) -> list[int]:
        """This process's, as libcuda opened them."""
        found = []
        try:
            device = _UVM_NODE.stat().st_rdev
        except OSError:
            return []
        for place in Path("/proc/self/fd").iterdir():
            try:
                one = os.fstat(int(place.name))
            except OSError:
                continue
            if stat.S_ISCHR(one.st_mode) and one.st_rdev == device:
                found.append(int(place.name))
        return sorted(found)

    def control(self, descriptor: int, request: int, argument: ctypes.Structure) -> None:
        """Raises OSError."""
        fcntl.ioctl(descriptor, request, argument, True)

    def deliver(self, descriptor: int) -> None:
        """Records come by themselves."""


class StandIn(Module):
    """What a libcuda without a kernel module has in the device's place: the simulated GPU's."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def release(self) -> str | None:
        text = ctypes.create_string_buffer(32)
        return text.value.decode() if self._table.release(text, len(text)) >= 0 else None

    def open(self) -> int:
        return _checked(self._table.open())

    def uvm_descriptors(self) -> list[int]:
        found = (ctypes.c_int * 16)()
        return list(found[: max(0, self._table.uvm_descriptors(found, len(found)))])

    def control(self, descriptor: int, request: int, argument: ctypes.Structure) -> None:
        _checked(self._table.control(descriptor, request, ctypes.addressof(argument)))

    def deliver(self, descriptor: int) -> None:
        self._table.deliver(descriptor)


def _checked(answer: int) -> int:
    if answer < 0:
        raise OSError(-answer, os.strerror(-answer))
    return answer


def _device() -> Module:
    try:
        return StandIn(Table.in_dll(ctypes.CDLL("libcuda.so.1"), "deepum_uvm_tools_device"))
    except (OSError, ValueError):
        return Module()


@dataclass
class Seen:
    """Faults that a queue told of: how many by access, in how many UM blocks and batches, and how
    many it had no room for.
    """

    faults: dict[str, int] = field(default_factory=dict)
    blocks: set[int] = field(default_factory=set)
    batches: set[int] = field(default_factory=set)
    dropped: int = 0
    strange: int = 0  # records that are no fault's


class Queue:
    """The faults of this process from enable() on. Raises UnusableError."""

    def __init__(self) -> None:
        self._device = _device()
        release = self._device.release()
        if release is None:
            raise UnusableError("no kernel module of NVIDIA's is loaded")
        branch = release.partition(".")[0]
        layout = LAYOUTS.get(int(branch)) if branch.isdigit() else None
        if layout is None:
            raise UnusableError(f"the events' layout is not known for driver {release}")
        self.release, self.layout = release, layout
        descriptors = self._device.uvm_descriptors()
        if not descriptors:
            raise UnusableError("this process has not opened /dev/nvidia-uvm")
        try:
            self._descriptor = self._device.open()
        except OSError as error:
            raise UnusableError(f"{_NODE}: {error.strerror}") from None
        ring = _RECORDS * _MOST_RECORD_BYTES  # whole pages of any size
        # Shared: a fork leaves it where the driver writes.
        self._memory = mmap.mmap(-1, ring + mmap.ALLOCATIONGRANULARITY)
        self._control = ring
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        tracker = Tracker(
            address, _RECORDS, address + ring, all_processors=1, requested=layout.version
        )
        for descriptor in descriptors:
            tracker.uvm_descriptor, tracker.status = descriptor, _ILLEGAL_ACTION
            self._ask(layout.request, tracker, "its queue was refused")
            if tracker.status != _ILLEGAL_ACTION:
                break
        if tracker.status != 0 or tracker.granted not in (0, layout.version):
            self.close()
            raise UnusableError(f"its queue was refused with NV_STATUS {tracker.status:#x}")

    def _ask(self, request: int, argument: Any, refused: str) -> None:
        try:
            self._device.control(self._descriptor, request, argument)
        except OSError as error:
            self.close()
            raise UnusableError(
                f"{refused}: {errno.errorcode.get(error.errno or 0, error.errno)}"
            ) from None

    def _change(self, request: int) -> None:
        events = Events(1 << _GPU_FAULT)
        self._ask(request, events, "its events were refused")
        if events.status != 0:
            self.close()
            raise UnusableError(f"its events were refused with NV_STATUS {events.status:#x}")

    def enable(self) -> None:
        """Faults are told from here on."""
        self._change(_ENABLE)

    def disable(self) -> None:
        """And no more."""
        self._change(_DISABLE)

    def take(self) -> Seen:
        """What came since the last time; what faulted has to be waited for before."""
        self._device.deliver(self._descriptor)
        seen = Seen()
        _, get, _, put = struct.unpack_from("<4I", self._memory, self._control)
        while get != put % _RECORDS:
            values = struct.unpack_from(
                self.layout.fields, self._memory, get * self.layout.record_bytes
            )
            record = dict(zip(self.layout.names, values, strict=True))
            access = _ACCESSES.get(record["access"])
            if (
                record["type"] == _GPU_FAULT
                and access
                and record["address"]
                and record["gpu"]
                and record["client"] in (1, 2)
            ):
                seen.faults[access] = seen.faults.get(access, 0) + 1
                seen.blocks.add(record["address"] // _BLOCK)
                seen.batches.add(record["batch"])
            else:
                seen.strange += 1
            get = (get + 1) % _RECORDS
        struct.pack_into("<2I", self._memory, self._control, get, get)
        (seen.dropped,) = struct.unpack_from("<Q", self._memory, self._control + _DROPPED)
        return seen

    def close(self) -> None:
        """The driver lets go of the memory."""
        os.close(self._descriptor)


def examine() -> dict[str, Any]:
    """`release` and `layout` (None where unknown), and `error`: None if a queue can be had and
    faults be asked for.
    """
    report: dict[str, Any] = {"release": _device().release(), "layout": None, "error": None}
    try:
        queue = Queue()
        report["layout"] = queue.layout.version
        queue.enable()
        queue.disable()
        queue.close()
    except UnusableError as error:
        report["error"] = str(error)
    return report
