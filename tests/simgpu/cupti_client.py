"""A client of CUPTI by ctypes, as a profiler is one: for scripts on the simulated GPU."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar, NamedTuple

MULTIPLE_SUBSCRIBERS = 39
UNIFIED_MEMORY_COUNTER = 25
GPU_PAGE_FAULT = 4
BLOCK = 2 << 20


class Config(ctypes.Structure):
    _fields_: ClassVar = [(name, ctypes.c_uint32) for name in ("scope", "kind", "device", "enable")]


class Counter(ctypes.Structure):
    """CUpti_ActivityUnifiedMemoryCounter3."""

    _fields_: ClassVar = [
        *((name, ctypes.c_uint32) for name in ("kind", "counter_kind")),
        *((name, ctypes.c_uint64) for name in ("value", "start", "end", "address")),
        *(
            (name, ctypes.c_uint32)
            for name in ("source", "destination", "stream", "process", "flags", "padding")
        ),
        ("processors", ctypes.c_uint64 * 5),
    ]


class Fault(NamedTuple):
    block: int  # address / 2 MiB
    faults: int
    kind: str  # r, w, a: as the driver tells the access
    device: int
    start: int
    end: int


Requested = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
)
Completed = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)
Callback = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p
)


class Cupti:
    """room: records that fit into one of its buffers, 0 for a client that gives none."""

    def __init__(self, room: int = 64, library: str = "libcupti.so.13") -> None:
        self.lib: Any = ctypes.CDLL(library)
        self.faults: list[Fault] = []
        self.buffers = 0  # completed
        self._given: dict[int, Any] = {}
        self._room = room
        self._requested, self._completed = Requested(self._request), Completed(self._complete)
        self._callback = Callback(lambda *_: None)

    def register(self) -> int:
        return int(self.lib.cuptiActivityRegisterCallbacks(self._requested, self._completed))

    def configure(self, kind: int = GPU_PAGE_FAULT, enable: int = 1) -> int:
        return int(
            self.lib.cuptiActivityConfigureUnifiedMemoryCounter(
                ctypes.byref(Config(1, kind, 0, enable)), 1
            )
        )

    def enable(self, kind: int = UNIFIED_MEMORY_COUNTER) -> int:
        return int(self.lib.cuptiActivityEnable(kind))

    def disable(self, kind: int = UNIFIED_MEMORY_COUNTER) -> int:
        return int(self.lib.cuptiActivityDisable(kind))

    def start(self) -> None:
        assert (self.register(), self.configure(), self.enable()) == (0, 0, 0)

    def flush(self) -> list[Fault]:
        """What was recorded since the last flush."""
        assert self.lib.cuptiActivityFlushAll(0) == 0
        taken, self.faults = self.faults, []
        return taken

    def dropped(self) -> int:
        count = ctypes.c_size_t()
        assert self.lib.cuptiActivityGetNumDroppedRecords(None, 0, ctypes.byref(count)) == 0
        return count.value

    def subscribe(self) -> tuple[int, Any]:
        handle = ctypes.c_void_p()
        return int(self.lib.cuptiSubscribe(ctypes.byref(handle), self._callback, None)), handle

    def unsubscribe(self, handle: Any) -> int:
        return int(self.lib.cuptiUnsubscribe(handle))

    def _request(self, buffer: Any, size: Any, most: Any) -> None:
        if self._room:
            memory = ctypes.create_string_buffer(self._room * ctypes.sizeof(Counter) + 8)
            self._given[ctypes.addressof(memory)] = memory
            buffer[0], size[0], most[0] = ctypes.addressof(memory), len(memory), 0

    def _complete(self, _context: Any, _stream: int, buffer: int, _size: int, valid: int) -> None:
        self.buffers += 1
        record = ctypes.POINTER(Counter)()
        while (
            self.lib.cuptiActivityGetNextRecord(
                ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)
            )
            == 0
        ):
            r = record.contents
            assert (r.kind, r.counter_kind) == (UNIFIED_MEMORY_COUNTER, GPU_PAGE_FAULT)
            self.faults.append(
                Fault(r.address // BLOCK, r.value, "?rwa"[r.flags], r.source, r.start, r.end)
            )
        del self._given[buffer]
