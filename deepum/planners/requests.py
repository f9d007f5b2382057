"""What a plan is asked for with, as bytes that cross to another process: the recorded iteration, the
times of launches, and the device.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from deepum.core import LaunchTime, Recording

_HEADER = struct.Struct("<8sIIII")  # magic, bytes of options, launches, uses, times
_MAGIC = b"DEEPUMRQ"


@dataclass(frozen=True)
class Options:
    """memory_bytes: what the plan may have. in_gbps, out_gbps: of the link, GB/s (10^9). seconds:
    that planning may take. duplicates: as `RecordedIteration` has it.
    """

    memory_bytes: int
    in_gbps: float
    out_gbps: float
    seconds: float
    duplicates: bool = False


@dataclass(frozen=True)
class Request:
    """times: as `planners.times.launch_ns` takes them."""

    recording: Recording
    times: Sequence[LaunchTime]
    options: Options

    def encode(self) -> bytes:
        """As `decode` reads it."""
        text = json.dumps(asdict(self.options)).encode()
        times = array("Q")
        for time in self.times:
            times.extend((time.launch, time.completed_at))
        head = _HEADER.pack(
            _MAGIC,
            len(text),
            self.recording.launch_count,
            len(self.recording.uses) // Recording.USE_BYTES,
            len(self.times),
        )
        return b"".join(
            (head, text, self.recording.launches, self.recording.uses, times.tobytes())
        )

    @classmethod
    def decode(cls, data: bytes) -> Request:
        """Raises ValueError where the bytes are no request."""
        if len(data) < _HEADER.size:
            raise ValueError("not a request for a plan")
        magic, text, launches, uses, times = _HEADER.unpack_from(data)
        sizes = (text, launches * Recording.LAUNCH_BYTES, uses * Recording.USE_BYTES, times * 16)
        if magic != _MAGIC or len(data) != _HEADER.size + sum(sizes):
            raise ValueError("not a request for a plan")
        at, parts = _HEADER.size, []
        for size in sizes:
            parts.append(data[at : at + size])
            at += size
        numbers = array("Q", parts[3])
        return cls(
            Recording(parts[1], parts[2]),
            tuple(LaunchTime(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)),
            Options(**json.loads(parts[0])),
        )
