"""What CUPTI's unified memory counters add up to: bytes moved, faults. The second witness of what a
question claims.

Numbers and offsets are those of cupti_activity.h as native/cupti_abi/cupti_abi.h has them.
"""

from __future__ import annotations

import ctypes
from typing import Any

from deepum.doctor.cupti import COMPLETED, REQUESTED, Counter, load

_KIND = 25  # CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER
_SCOPE_SINGLE_DEVICE = 1
_COUNTERS = {
    1: "bytes_h2d",
    2: "bytes_d2h",
    3: "cpu_faults",
    4: "gpu_fault_groups",
    7: "remote_maps",
}
_BUFFER = 4 << 20
# Of these each record is one, whatever its value.
_COUNTS = {3: True, 4: True, 5: True, 6: True, 7: True}


class Counters:
    """Counting from its making on. `refused`: why there is none. `take()` adds up what happened
    since the last.
    """

    def __init__(self, device: int) -> None:
        self.totals: dict[str, int] = {}
        self.records = 0
        self.refused: str | None = None
        self._buffers: dict[int, Any] = {}
        found = load()
        if found is None:
            self.refused = "no CUPTI"
            return
        self._library = found[1]
        self._callbacks = REQUESTED(self._requested), COMPLETED(self._completed)
        self.counted: list[str] = []
        if code := int(self._library.cuptiActivityRegisterCallbacks(*self._callbacks)):
            self.refused = f"CUPTI error {code}"
            return
        for kind, name in _COUNTERS.items():  # one by one: the simulated GPU has faults alone
            config = Counter(_SCOPE_SINGLE_DEVICE, kind, device, 1)
            if (
                int(
                    self._library.cuptiActivityConfigureUnifiedMemoryCounter(
                        ctypes.byref(config), 1
                    )
                )
                == 0
            ):
                self.counted.append(name)
        if code := int(self._library.cuptiActivityEnable(_KIND)):
            self.refused = f"CUPTI error {code}"

    def _requested(self, buffer: Any, size: Any, records: Any) -> None:
        made = ctypes.create_string_buffer(_BUFFER)
        self._buffers[ctypes.addressof(made)] = made
        buffer[0], size[0], records[0] = ctypes.addressof(made), _BUFFER, 0

    def _completed(self, _context: Any, _stream: int, buffer: int, _size: int, valid: int) -> None:
        record = ctypes.c_void_p()
        while (
            valid
            and int(
                self._library.cuptiActivityGetNextRecord(
                    ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)
                )
            )
            == 0
        ):
            kind, counter = (ctypes.c_int32 * 2).from_address(int(record.value or 0))
            if kind != _KIND:
                continue
            value = ctypes.c_uint64.from_address(int(record.value or 0) + 8).value
            name = _COUNTERS.get(counter, f"counter_{counter}")
            self.totals[name] = self.totals.get(name, 0) + (1 if counter in _COUNTS else value)
            self.records += 1
        self._buffers.pop(buffer, None)

    def take(self) -> dict[str, int] | None:
        """Sums since the last time, 0 for what is counted and did not happen; None without CUPTI.
        Work has to be waited for before.
        """
        if self.refused is not None:
            return None
        self._library.cuptiActivityFlushAll(1)
        taken = {name: self.totals.pop(name, 0) for name in self.counted} | self.totals
        self.totals.clear()
        return taken

    def stop(self) -> None:
        """No more."""
        if self.refused is None:
            self._library.cuptiActivityFlushAll(1)
            self._library.cuptiActivityDisable(_KIND)
