"""Device code: formats, compression, the choice of an architecture, layouts; against bytes made by
hand and against PyTorch's own.
"""

from __future__ import annotations

import ctypes
import importlib.util
import mmap
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import probe as p
import pytest

TWO = [(0, 8), (8, 4)]
THREE = [(0, 4), (8, 16), (24, 24)]
PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(
    .param .u64 .ptr .global .align 16 scale_param_0,  // a pointer to aligned data
    .param .u32 scale_param_1,
    .param .align 16 .b8 scale_param_2[24],
    .param .f64 scale_param_3
)
.maxntid 128, 1, 1
{ ret; }
.visible .entry nothing() { ret; }
.entry bare { ret; }
.func (.param .b32 r) helper(.param .b32 x) { ret; }
"""


@pytest.fixture(scope="session")
def probe(kernels_probe: Path) -> p.Probe:
    return p.Probe(kernels_probe)


def test_cubin_by_itself(probe: p.Probe) -> None:
    image = probe.open(p.cubin({"add": p.nv_info(TWO, 12), "mul": p.nv_info(THREE, 48)}))
    assert image.layout("add") == (TWO, 12)
    assert image.layout("mul") == (THREE, 48)
    assert image.kernels() == 2


def test_second_form_of_parameter_records(probe: p.Probe) -> None:
    large = [(0, 25768), (25768, 1), (25772, 4)]
    assert probe.open(p.cubin({"foreach": p.nv_info(large, 25776, second_form=True)})).layout(
        "foreach"
    ) == (large, 25776)


@pytest.mark.parametrize("flags", [0, p.ZSTD, p.LZ4])
def test_compressions(probe: p.Probe, flags: int) -> None:
    elf = (
        p.cubin({f"kernel{i}": p.nv_info(THREE, 48) for i in range(40)})
        + bytes(5000)
        + bytes(range(256)) * 2
    )
    payload = {0: lambda data: data, p.ZSTD: p.compress_zstd, p.LZ4: p.compress_lz4}[flags](elf)
    assert flags == 0 or len(payload) < len(elf)
    image = probe.open(
        p.container(p.entry(payload, 80, flags=flags, size=len(elf) if flags else 0))
    )
    assert image.layout("kernel39") == (THREE, 48)


def test_wrapper(probe: p.Probe) -> None:
    held = ctypes.create_string_buffer(
        p.container(p.entry(p.cubin({"add": p.nv_info(TWO, 12)}), 80))
    )
    image = probe.open(struct.pack("<IIQQ", 0x466243B1, 1, ctypes.addressof(held), 0))
    assert image.layout("add") == (TWO, 12)


def test_empty_container(probe: p.Probe) -> None:
    image = probe.open(p.container())
    assert image.kernels() == 0
    with pytest.raises(KeyError, match="no kernel add"):
        image.layout("add")


@pytest.mark.parametrize(
    ("device", "chosen"),
    [
        ((7, 5), 75),
        ((8, 0), 80),
        ((8, 6), 86),
        ((8, 9), 86),
        ((9, 0), 90),
        ((10, 3), 100),
        ((12, 0), 120),
    ],
)
def test_architecture(probe: p.Probe, device: tuple[int, int], chosen: int) -> None:
    entries = [
        p.entry(p.cubin({"k": p.nv_info([(0, sm)], sm)}), sm) for sm in (120, 75, 86, 80, 100, 90)
    ]
    image = probe.open(p.container(*entries), *device)
    assert image.layout("k") == ([(0, chosen)], chosen)
    assert image.compiled_for("k") == (chosen, chosen)
    assert image.compiled_for("other") is None


def test_code_for_one_exact_architecture_runs_only_there(probe: p.Probe) -> None:
    exact = p.entry(p.cubin({"k": p.nv_info([(0, 1)], 1)}), 100, flags=0x100000)
    common = p.entry(p.cubin({"k": p.nv_info([(0, 2)], 2)}), 80)
    assert probe.open(p.container(exact, common), 10, 0).layout("k")[1] == 1
    assert probe.open(p.container(exact, common), 10, 3).layout("k")[1] == 2


def test_kernels_in_several_entries(probe: p.Probe) -> None:
    entries = [p.entry(p.cubin({name: p.nv_info(TWO, 12)}), 80) for name in ("one", "two", "three")]
    image = probe.open(p.container(*entries))
    assert image.layout("three") == image.layout("one") == (TWO, 12)
    with pytest.raises(KeyError, match="no kernel four for sm_80"):
        image.layout("four")


def test_no_code_for_the_device(probe: p.Probe) -> None:
    with pytest.raises(KeyError, match="it has sm_90"):
        probe.open(p.container(p.entry(p.cubin({"k": p.nv_info(TWO, 12)}), 90)), 7, 5).layout("k")


def test_ptx(probe: p.Probe) -> None:
    for image in (
        probe.open(PTX.encode() + b"\0"),
        probe.open(p.container(p.entry(PTX.encode() + b"\0", 80, kind=1)), 9, 0),
    ):
        assert image.layout("scale") == ([(0, 8), (8, 4), (16, 24), (40, 8)], 48)
        assert image.layout("nothing") == image.layout("bare") == ([], 0)
        assert image.compiled_for("bare") in ((80, 80), (90, 80))  # PTX is compiled for the device
        assert image.kernels() == 3


@pytest.mark.parametrize(
    "image",
    [b"no code at all" * 4, b"\x7fELF" + bytes(60), struct.pack("<IIQQ", 0x466243B1, 1, 0, 0)],
)
def test_what_is_no_code(probe: p.Probe, image: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        probe.open(image)


def test_corrupt_code_is_refused_not_guessed(probe: p.Probe) -> None:
    elf = p.cubin({f"kernel{i}": p.nv_info(THREE, 48) for i in range(8)})
    packed = p.compress_zstd(elf)
    with pytest.raises(KeyError, match="not readable"):
        probe.open(p.container(p.entry(packed[:-9], 80, flags=p.ZSTD, size=len(elf)))).layout(
            "kernel0"
        )
    with pytest.raises(KeyError, match="not readable"):
        probe.open(
            p.container(p.entry(p.compress_lz4(elf)[:-9], 80, flags=p.LZ4, size=len(elf)))
        ).layout("kernel0")
    chance = random.Random(1)
    for _ in range(300):
        broken = bytearray(elf)
        for _ in range(chance.randint(1, 8)):
            broken[chance.randrange(64 if chance.random() < 0.5 else 0, len(broken))] = (
                chance.randrange(256)
            )
        image = probe.open(p.container(p.entry(bytes(broken), 80)))
        try:
            image.layout("kernel0")
        except KeyError:
            continue


def _elf_sections(data: mmap.mmap | bytes) -> Iterator[tuple[str, int, int]]:
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    for header in headers:
        start = headers[names][4] + header[0]
        yield data[start : data.find(b"\0", start)].decode(), header[4], header[5]


def _layouts(elf: bytes) -> dict[str, p.Layout]:
    """Independent of the code under test: .nv.info records as cuobjdump shows them."""
    found = {}
    for name, offset, size in _elf_sections(elf):
        if not name.startswith(".nv.info."):
            continue
        at, total, parameters = offset, 0, {}
        while at < offset + size:
            form, attribute, value = struct.unpack_from("<BBH", elf, at)
            at += 4
            if form == 4:
                if attribute in (0x17, 0x45):
                    _, ordinal, place, word = struct.unpack_from("<IHHI", elf, at)
                    parameters[ordinal] = (
                        place,
                        word >> 18 if attribute == 0x17 else word & 0xFFFFFF,
                    )
                at += value
            elif attribute == 0x19:
                total = value
        found[name[9:]] = ([parameters[i] for i in range(len(parameters))], total)
    return found


@pytest.mark.torch
def test_layouts_in_pytorch(probe: p.Probe) -> None:
    """Every kernel of some containers of libtorch_cuda, for two architectures. (The smallest hold
    no kernels.)
    """
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    with (Path(spec.origin).parent / "lib" / "libtorch_cuda.so").open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    base = ctypes.addressof(ctypes.c_char.from_buffer(data))
    start, size = next(
        (offset, size) for name, offset, size in _elf_sections(data) if name == ".nv_fatbin"
    )
    containers, at = [], start
    while at < start + size:
        magic, _, header, body = struct.unpack_from("<IHHQ", data, at)
        assert magic == 0xBA55ED50
        if body:
            containers.append((body, at))
        at += header + body
    checked = 0
    for body, place in sorted(containers)[100:200:10]:
        at = place + 16
        while at < place + 16 + body:
            kind, _, header, padded, packed, _, _, _, architecture, _, _, flags, _, unpacked = (
                struct.unpack_from("<HHIQIIHHIIIQQQ", data, at)
            )
            if kind == 2 and architecture in (80, 90) and not flags & 0x300000:
                elf = ctypes.create_string_buffer(unpacked)
                assert zstd.ZSTD_decompress(
                    elf,
                    ctypes.c_size_t(unpacked),
                    data[at + header : at + header + packed],
                    ctypes.c_size_t(packed),
                )
                image = probe.open(base + place, architecture // 10, architecture % 10)
                for name, (parameters, total) in _layouts(elf.raw).items():
                    got, bytes_ = image.layout(name)
                    assert (got, bytes_) == (
                        parameters,
                        max([total, *(o + s for o, s in parameters)]),
                    )
                    checked += 1
            at += header + padded
    assert checked > 10
