"""What LMS has the machine do, as work records: memory that comes and goes, copies on two streams
of their own, waits of the host.
"""

from __future__ import annotations

from deepum._core import lib
from deepum.core import UM_BLOCK_BYTES
from deepum.trace import work
from deepum.trace.work import BY_ADDRESS, READ, WRITE, Access, Work

_OWN: int = lib.DEEPUM_WORK_OF_HELPER
# Numbers that no program's streams and events have: those of recorded runs count from 0, those that
# only events name from 2^31.
_OUT_STREAM, _IN_STREAM, _EVENTS = 0x4000_0000, 0x4000_0001, 0x4000_0000
_FIRST_ADDRESS = 1 << 50  # beyond those of a driver


class Copies:
    """Collects records. `sequence`: of the event that they follow; `compute`: the stream of the
    program's launches.
    """

    def __init__(self, compute: int) -> None:
        self.records: list[bytes] = []
        self.sequence = 0
        self._compute = compute
        self._address = _FIRST_ADDRESS
        self._free_events: list[int] = []
        self._events = _EVENTS

    def put(self, one: Work) -> None:
        """Work of the program, which stands behind what was done for it."""
        self.records.append(one.encode())

    def map(self, size: int) -> int:
        """Device memory comes; its address."""
        address, self._address = (
            self._address,
            self._address + -(-size // UM_BLOCK_BYTES) * UM_BLOCK_BYTES,
        )
        self._own(Work(lib.DEEPUM_WORK_MAP, accesses=(Access(BY_ADDRESS, 0, address, size),)))
        return address

    def unmap(self, address: int) -> None:
        """And goes."""
        self._own(Work(lib.DEEPUM_WORK_UNMAP, accesses=(Access(BY_ADDRESS, 0, address, 0),)))

    def drain(self) -> None:
        """The host waits for all that was launched, as cudaFree does."""
        self._own(Work(lib.DEEPUM_WORK_SYNCHRONISE_STREAM, stream=self._compute))

    def out(self, address: int, size: int) -> int:
        """To the host, behind all that was launched; the event that tells its end."""
        return self._copy(_OUT_STREAM, 0, Access(BY_ADDRESS, READ, address, size))

    def back(self, address: int, size: int) -> int:
        """And back."""
        return self._copy(_IN_STREAM, work.TO_DEVICE, Access(BY_ADDRESS, WRITE, address, size))

    def wait(self, event: int) -> None:
        """The host waits for the event, which may be used again then."""
        self._own(Work(lib.DEEPUM_WORK_SYNCHRONISE_EVENT, event=event))
        self._free_events.append(event)

    # One event for both ends, as in CudaLmsStorageImpl::swap: a wait is for what was recorded last
    # before it.
    def _copy(self, stream: int, flags: int, access: Access) -> int:
        event = self._free_events.pop() if self._free_events else self._events
        self._events += event == self._events
        self._own(Work(lib.DEEPUM_WORK_RECORD, stream=self._compute, event=event))
        self._own(Work(lib.DEEPUM_WORK_WAIT, stream=stream, event=event))
        self._own(
            Work(
                work.COPY, flags=flags, stream=stream, device_bytes=access.bytes, accesses=(access,)
            )
        )
        self._own(Work(lib.DEEPUM_WORK_RECORD, stream=stream, event=event))
        return event

    def _own(self, one: Work) -> None:
        flags = (
            one.flags
            if one.kind in (lib.DEEPUM_WORK_MAP, lib.DEEPUM_WORK_UNMAP)
            else one.flags | _OWN
        )
        self.put(
            Work(
                one.kind,
                self.sequence,
                flags,
                one.stream,
                one.event,
                device_bytes=one.device_bytes,
                accesses=one.accesses,
            )
        )
