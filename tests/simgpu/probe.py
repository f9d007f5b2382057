"""native/simgpu/kernels through ctypes, and device code made by hand for it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

ZSTD, LZ4 = 0x8000, 0x2000
Layout = tuple[list[tuple[int, int]], int]


class Probe:
    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))
        self.library.probe_open.restype = ctypes.c_void_p

    def open(self, image: bytes | int, major: int = 8, minor: int = 0) -> Image:
        """image: bytes, or an address."""
        why = ctypes.create_string_buffer(512)
        held = (
            image if isinstance(image, int) else ctypes.create_string_buffer(image, len(image) + 64)
        )
        handle = self.library.probe_open(
            ctypes.c_void_p(held) if isinstance(held, int) else held, major, minor, why
        )
        if not handle:
            raise ValueError(why.value.decode())
        return Image(self.library, handle, held)

    def truth(
        self,
        kernel: str,
        parameters: Sequence[bytes],
        allocations: Sequence[tuple[int, int]],
        *,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (128, 1, 1),
        ordinal: int = 0,
    ) -> tuple[list[tuple[int, int, str]], float]:
        """Accesses as (address, bytes, "r", "w" or "rw"), and FLOPs. Parameters are packed, each
        aligned to its size, at most 8.
        """
        buffer, layout = b"", []
        for value in parameters:
            align = min(8, 1 << (len(value) - 1).bit_length())
            buffer += bytes(-len(buffer) % align)
            layout += [len(buffer), len(value)]
            buffer += value
        most = 20000
        out = (ctypes.c_ulonglong * (3 * most))()
        flops = ctypes.c_double()
        flat = [number for allocation in allocations for number in allocation]
        count = self.library.probe_truth(
            kernel.encode(),
            (ctypes.c_uint * len(layout))(*layout),
            len(parameters),
            len(buffer),
            buffer,
            (ctypes.c_uint * 6)(*grid, *block),
            ctypes.c_ulonglong(ordinal),
            (ctypes.c_ulonglong * len(flat))(*flat),
            len(allocations),
            out,
            most,
            ctypes.byref(flops),
        )
        modes = {1: "r", 2: "w", 3: "rw"}
        return [
            (out[3 * i], out[3 * i + 1], modes[out[3 * i + 2]]) for i in range(min(count, most))
        ], flops.value


class Image:
    def __init__(self, library: ctypes.CDLL, handle: int, held: object) -> None:
        self.library, self.handle, self.held = library, ctypes.c_void_p(handle), held

    def layout(self, kernel: str) -> Layout:
        """[(offset, size)] by ordinal, and the buffer's bytes. KeyError with the reason if there is
        none.
        """
        out, total = (ctypes.c_uint * 512)(), ctypes.c_uint()
        why = ctypes.create_string_buffer(512)
        count = self.library.probe_layout(
            self.handle, kernel.encode(), out, 256, ctypes.byref(total), why
        )
        if count < 0:
            raise KeyError(why.value.decode())
        return [(out[2 * i], out[2 * i + 1]) for i in range(count)], total.value

    def compiled_for(self, kernel: str) -> tuple[int, int] | None:
        """Architectures of its machine code and of the PTX behind that."""
        both = self.library.probe_compiled_for(self.handle, kernel.encode())
        return None if both < 0 else divmod(both, 1000)

    def kernels(self) -> int:
        return int(self.library.probe_kernels(self.handle))


def nv_info(
    parameters: Sequence[tuple[int, int]], total: int, *, second_form: bool = False
) -> bytes:
    out = b""
    for ordinal, (offset, size) in reversed(list(enumerate(parameters))):
        word = size if second_form else size << 18 | 0x1F000
        out += struct.pack(
            "<BBHIHHI", 4, 0x45 if second_form else 0x17, 12, 0, ordinal, offset, word
        )
    return out + struct.pack("<BBH", 3, 0x19, total)


def cubin(kernels: Mapping[str, bytes]) -> bytes:
    """An ELF file of device code with the sections .text.NAME and .nv.info.NAME."""
    sections = [("", b"")]
    for name, info in kernels.items():
        sections += [(f".text.{name}", bytes(16)), (f".nv.info.{name}", info)]
    strings = b"\0".join([*(name.encode() for name, _ in sections), b".shstrtab", b""])
    sections.append((".shstrtab", strings))
    body, headers, name_at = b"", [], 0
    for name, data in sections:
        headers.append(
            struct.pack(
                "<IIQQQQIIQQ",
                name_at,
                1 if name else 0,
                0,
                0,
                64 + len(body),
                len(data),
                0,
                0,
                1,
                0,
            )
        )
        body += data
        name_at += len(name) + 1
    body += bytes(-len(body) % 8)
    start = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHI", 2, 190, 1)
        + bytes(8)
        + struct.pack("<QQ", 0, 64 + len(body))
    )
    return (
        start
        + struct.pack("<IHHHHHH", 0, 64, 0, 0, 64, len(sections), len(sections) - 1)
        + body
        + b"".join(headers)
    )


def compress_zstd(data: bytes) -> bytes:
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(len(data) + 1024)
    size = library.ZSTD_compress(
        out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)), 3
    )
    return out.raw[:size]


def compress_lz4(data: bytes) -> bytes:
    """A block that matches only runs of one repeated byte: enough to have literals, matches that
    overlap themselves, long lengths.
    """

    def length(n: int) -> bytes:
        return b"" if n < 15 else b"\xff" * ((n - 15) // 255) + bytes([(n - 15) % 255])

    out, literals, at = b"", 0, 0
    while at < len(data):
        run = 1
        while at + run < len(data) - 5 and data[at + run] == data[at]:
            run += 1
        if run < 6 or at + run > len(data) - 12:
            at += 1
            continue
        head, match = data[literals : at + 1], run - 1 - 4
        out += (
            bytes([min(len(head), 15) << 4 | min(match, 15)])
            + length(len(head))
            + head
            + b"\x01\x00"
            + length(match)
        )
        at += run
        literals = at
    rest = data[literals:]
    return out + bytes([min(len(rest), 15) << 4]) + length(len(rest)) + rest


def entry(
    payload: bytes, architecture: int, *, kind: int = 2, flags: int = 0, size: int = 0
) -> bytes:
    """One piece of a fatbin. flags ZSTD or LZ4: payload is compressed, size its original size."""
    padded = payload + bytes(-len(payload) % 8)
    compressed = len(payload) if flags & (ZSTD | LZ4) else 0
    header = struct.pack(
        "<HHIQIIHHIIIQQQ",
        kind,
        0x101,
        64,
        len(padded),
        compressed,
        0,
        0,
        1,
        architecture,
        0,
        0,
        flags,
        0,
        size,
    )
    assert len(header) == 64
    return header + padded


def container(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
