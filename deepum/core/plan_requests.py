"""What a plan is asked for with, as bytes that cross to another process: the recorded iteration,
the times of launches, and the device.
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
_TIME_BYTES = 24


@dataclass(frozen=True)
class PlanInput:
    """What a plan is to be made of. times: when launches had completed, of whole iterations, with
    whatever was followed last. memory_bytes: what the plan may have. duplicates: what is only read
    may be on the host as well.
    """

    recording: Recording
    times: Sequence[LaunchTime]
    memory_bytes: int
    duplicates: bool = False


@dataclass(frozen=True)
class Options:
    """memory_bytes: what the plan may have. in_gbps, out_gbps: of the link, GB/s (10^9). seconds:
    that planning may take. duplicates: as `RecordedIteration` has it.
    """

    memory_bytes: int
    in_gbps: float
    out_gbps: float
    duplicates: bool = False
    seconds: float = 10.0


@dataclass(frozen=True)
class Request:
    """times: when launches had completed, of whole iterations."""

    recording: Recording
    times: Sequence[LaunchTime]
    options: Options

    @classmethod
    def of(cls, asked: PlanInput, in_gbps: float, out_gbps: float) -> Request:
        """For a link of these rates, GB/s (10^9)."""
        options = Options(asked.memory_bytes, in_gbps, out_gbps, asked.duplicates)
        return cls(asked.recording, asked.times, options)

    def encode(self) -> bytes:
        """As `decode` reads it."""
        text = json.dumps(asdict(self.options)).encode()
        numbers = array("Q")
        for time in self.times:
            numbers.extend((time.launch, time.completed_at, time.waited or 0))
        head = _HEADER.pack(
            _MAGIC,
            len(text),
            self.recording.launch_count,
            len(self.recording.uses) // Recording.USE_BYTES,
            len(self.times),
        )
        return b"".join(
            (head, text, self.recording.launches, self.recording.uses, numbers.tobytes())
        )

    @classmethod
    def decode(cls, data: bytes) -> Request:
        """Raises ValueError where the bytes are no request."""
        if len(data) < _HEADER.size:
            raise ValueError("not a request for a plan")
        magic, text, launches, uses, times = _HEADER.unpack_from(data)
        sizes = (
            text,
            launches * Recording.LAUNCH_BYTES,
            uses * Recording.USE_BYTES,
            times * _TIME_BYTES,
        )
        if magic != _MAGIC or len(data) != _HEADER.size + sum(sizes):
            raise ValueError("not a request for a plan")
        at, parts = _HEADER.size, []
        for size in sizes:
            parts.append(data[at : at + size])
            at += size
        numbers = iter(array("Q", parts[3]))
        return cls(
            Recording(parts[1], parts[2]),
            tuple(LaunchTime(*each) for each in zip(numbers, numbers, numbers, strict=True)),
            Options(**json.loads(parts[0])),
        )
