"""Work records: what a program has a machine do; the definition is
native/um_model/work_records.h.
"""

from __future__ import annotations

import dataclasses
import functools
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from deepum._core import ffi, lib

_BODY = struct.Struct("<IHHQIIiIdddQQ")
_ACCESS = struct.Struct("<IIQQ")
_HEADER = struct.Struct("<8sII")
_MAGIC = b"DEEPUMWK"
assert _BODY.size == ffi.sizeof("deepum_work")
assert _ACCESS.size == ffi.sizeof("deepum_work_access")

LAUNCH: int = lib.DEEPUM_WORK_LAUNCH
COPY: int = lib.DEEPUM_WORK_COPY
DISCARD: int = lib.DEEPUM_WORK_DISCARD
BY_ADDRESS: int = lib.DEEPUM_WORK_BY_ADDRESS
READ: int = lib.DEEPUM_WORK_READ
WRITE: int = lib.DEEPUM_WORK_WRITE
WRITTEN_FIRST: int = lib.DEEPUM_WORK_WRITTEN_FIRST
PERHAPS: int = lib.DEEPUM_WORK_PERHAPS
MATRIX_UNITS: int = lib.DEEPUM_WORK_MATRIX_UNITS
UNCOUNTED: int = lib.DEEPUM_WORK_UNCOUNTED
TO_DEVICE: int = lib.DEEPUM_WORK_TO_DEVICE
ENDS_STEP: int = lib.DEEPUM_WORK_ENDS_STEP
# Content moves in regions of 64 KiB (docs/um-model.md): finer places tell nothing.
REGION_BYTES = 1 << 16


class Access(NamedTuple):
    """Memory that is touched: `offset` bytes into the allocation in `slot`, or an address where
    `slot` is BY_ADDRESS. A tuple, since a gather has thousands of them.
    """

    slot: int
    flags: int
    offset: int
    bytes: int


# Without the function in Python that a class of named tuples is called by.
access_of: Callable[[tuple[int, ...]], Access] = functools.partial(tuple.__new__, Access)


@dataclass(frozen=True, slots=True)
class Work:
    """One record; fields as in `deepum_work`."""

    kind: int
    sequence: int = 0
    flags: int = 0
    stream: int = 0
    event: int = 0
    location: int = 0
    ns: float = 0.0
    flops: float = 0.0
    peak_fraction: float = 0.0
    tiles: int = 0
    device_bytes: int = 0
    accesses: tuple[Access, ...] = ()

    def encode(self) -> bytes:
        """As bytes."""
        words = (_BODY.size + len(self.accesses) * _ACCESS.size) // 8
        body = _BODY.pack(
            words,
            self.kind,
            self.flags,
            self.sequence,
            self.stream,
            self.event,
            self.location,
            len(self.accesses),
            self.ns,
            self.flops,
            self.peak_fraction,
            self.tiles,
            self.device_bytes,
        )
        return body + b"".join([_ACCESS.pack(*access) for access in self.accesses])

    def after(self, sequence: int, accesses: Sequence[Access]) -> Work:
        """The same, behind that event and on that memory."""
        return replace(self, sequence=sequence, accesses=tuple(accesses))


@dataclass(frozen=True, slots=True)
class Cost:
    """What a kernel's time follows from, beside the bytes that it touches (docs/um-model.md,
    Kernels); or `ns`, if that is known.

    `tiles`: thread blocks, for kernels that run in waves of them. `peak_fraction`: what such
    kernels reach of the peak rate; 0: the card's.
    """

    flops: float = 0.0
    tiles: int = 0
    matrix_units: bool = False
    peak_fraction: float = 0.0
    ns: float = 0.0

    def work(self, sequence: int, flags: int, stream: int, accesses: tuple[Access, ...]) -> Work:
        """The launch that costs it."""
        flags |= MATRIX_UNITS if self.matrix_units else 0
        return Work(
            LAUNCH,
            sequence,
            flags,
            stream,
            ns=self.ns,
            flops=self.flops,
            peak_fraction=self.peak_fraction,
            tiles=self.tiles,
            accesses=accesses,
        )


def is_counted_launch(record: bytes) -> bool:
    """Whether an encoded record is of a kernel."""
    _, kind, flags = struct.unpack_from("<IHH", record)
    return kind == LAUNCH and not flags & UNCOUNTED


def with_accesses(record: bytes, accesses: Sequence[Access]) -> bytes:
    """An encoded record with other accesses."""
    (work,) = decode(record)
    return work.after(work.sequence, accesses).encode()


def with_flags(record: bytes, flags: int) -> bytes:
    """An encoded record with more flags."""
    words, kind, known = struct.unpack_from("<IHH", record)
    return struct.pack("<IHH", words, kind, known | flags) + record[8:]


def decode(records: bytes) -> Iterator[Work]:
    """The records of a buffer, in order. Raises ValueError where a length is impossible."""
    for fields, accesses in _parts(records):
        made = tuple(map(access_of, _ACCESS.iter_unpack(accesses)))
        yield Work(accesses=made, **fields)


def decode_without_accesses(records: bytes) -> Iterator[Work]:
    """The same, all with no accesses: that is faster where nobody asks for those."""
    for fields, _ in _parts(records):
        yield Work(**fields)


_FIELDS = [one.name for one in dataclasses.fields(Work) if one.name != "accesses"]


def _parts(records: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Of each record the fields of a Work but for the last, and the bytes of its accesses."""
    at = 0
    while at < len(records):
        if len(records) - at < _BODY.size:
            raise ValueError(f"work record at byte {at}: cut off")
        (
            words,
            kind,
            flags,
            sequence,
            stream,
            event,
            location,
            count,
            *costs,
        ) = _BODY.unpack_from(records, at)
        start = at + _BODY.size
        end = start + count * _ACCESS.size
        if at + words * 8 < end or at + words * 8 > len(records):
            raise ValueError(f"work record at byte {at}: impossible length")
        fields = (kind, sequence, flags, stream, event, location, *costs)
        yield dict(zip(_FIELDS, fields, strict=True)), records[start:end]
        at += words * 8


def header() -> bytes:
    """The first bytes of a file of work."""
    return _HEADER.pack(_MAGIC, lib.DEEPUM_WORK_VERSION, 0)


def of_file(data: bytes) -> bytes:
    """The records of a file's bytes; a last record that was cut off is left out. Raises ValueError
    when it is not a file of work.
    """
    if len(data) < _HEADER.size or data[:8] != _MAGIC:
        raise ValueError("not a file of work records")
    _, version, _ = _HEADER.unpack_from(data)
    if version != lib.DEEPUM_WORK_VERSION:
        raise ValueError(
            f"work records of version {version}, this is version {lib.DEEPUM_WORK_VERSION}"
        )
    at = _HEADER.size
    while at + 4 <= len(data):
        length = int.from_bytes(data[at : at + 4], "little") * 8
        if length < _BODY.size or at + length > len(data):
            break
        at += length
    return data[_HEADER.size : at]
