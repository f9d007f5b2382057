"""DEEPUM_PLAIN_MEMORY: large memory that stays device memory, by its size and by the library that
asks for it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_daemon import FakeDaemon
from running import Ran

from deepum.configuration.plain_rules import MOST_RULES, SHARING_LIBRARIES, parse_rules

MIB = 1 << 20
# asked(library, size, way) and kinds(size...): the real function that memory came from, asked for
# by a library, and by the program.
ASKING = """
def asked(path, size, how="ask"):
    address = c.c_uint64()
    ok(getattr(c.CDLL(path), how)(c.byref(address), c.c_size_t(size)))
    name = name_called()
    free(address.value)
    return name
def kinds(*sizes):
    return [name_called() for size in sizes if alloc(size)]
start()
"""


@pytest.fixture(scope="module")
def asker(
    compile_c: Callable[..., Path], fake_driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """A library of that file name that allocates for itself, itself or through a libcudart."""
    driver = str(fake_driver / "libcuda.so.1")
    runtime = compile_c(
        "hook_asker.c", "askers/libcudart.so.13", "-DHAND_ON", "-shared", "-fPIC", driver
    )
    compiled = compile_c(
        "hook_asker.c",
        "askers/libasker.so",
        "-shared",
        "-fPIC",
        driver,
        str(runtime),
        f"-Wl,-rpath,{runtime.parent}",
    )
    folder = tmp_path_factory.mktemp("named")

    def named(name: str) -> Path:
        return Path(shutil.copy(compiled, folder / name))

    return named


def test_what_communication_libraries_allocate_stays_device_memory(
    run: Callable[..., Ran], asker: Callable[[str], Path]
) -> None:
    listed = [str(asker(f"{name}.so.2")) for name in SHARING_LIBRARIES] + [
        str(asker("libnvshmem_host.so.3")),
        str(asker("libnccl-net.so")),
    ]
    others = [
        str(asker(name))
        for name in ("libtorch_cuda.so", "libncclx.so", "mylibnccl.so", "libucm.so.0")
    ]
    facts = run(
        f"{ASKING}\ntell(listed=[asked(p, 4 * MiB) for p in {listed}], others=[asked(p, 4 * "
        f"MiB) for p in {others}], own=kinds(4 * MiB))"
    ).facts()
    assert set(facts["listed"]) == {"cuMemAlloc_v2"}
    assert set(facts["others"]) == {"cuMemAllocManaged"}
    assert facts["own"] == ["cuMemAllocManaged"]


def test_the_library_is_found_however_it_asks(
    run: Callable[..., Ran], asker: Callable[[str], Path]
) -> None:
    nccl, other = asker("libnccl.so.2"), asker("libother.so")
    ways = ("ask", "ask_through", "ask_pitched", "ask_in_order")
    facts = run(
        f"{ASKING}\ntell(nccl=[asked({str(nccl)!r}, 8 * MiB, way) for way in {ways}],"
        f" other=[asked({str(other)!r}, 8 * MiB, way) for way in {ways}])"
    ).facts()
    assert facts["nccl"] == [
        "cuMemAlloc_v2",
        "cuMemAlloc_v2",
        "cuMemAllocPitch_v2",
        "cuMemAllocAsync",
    ]
    assert facts["other"] == ["cuMemAllocManaged"] * 4


def test_a_library_loaded_later_is_known_and_one_that_went_is_forgotten(
    run: Callable[..., Ran], asker: Callable[[str], Path]
) -> None:
    nccl, other = str(asker("libnccl.so.2")), str(asker("libother.so"))
    facts = run(f"""{ASKING}
import _ctypes
told = []
for _ in range(3):
    library = c.CDLL({nccl!r}); address = c.c_uint64()
    ok(library.ask(c.byref(address), c.c_size_t(4 * MiB))); told.append(name_called())
    _ctypes.dlclose(library._handle)
    told.append(asked({other!r}, 4 * MiB))
tell(told=told)
""").facts()
    assert facts["told"] == ["cuMemAlloc_v2", "cuMemAllocManaged"] * 3


@pytest.mark.parametrize(
    ("rules", "plain"),
    [
        ("4MiB", [4]),
        ("2MiB-4MiB", [2, 3, 4]),
        ("5MiB-", [5, 6]),
        ("-3MiB", [1, 2, 3]),
        (" 1 MiB , 6m ", [1, 6]),
        ("none", []),
        ("libpython:2MiB-", []),
    ],
)
def test_sizes_that_stay_device_memory(
    run: Callable[..., Ran], rules: str, plain: list[int]
) -> None:
    facts = run(
        f"{ASKING}\ntell(kinds=kinds(*(i * MiB for i in range(1, 7))))", DEEPUM_PLAIN_MEMORY=rules
    ).facts()
    assert facts["kinds"] == [
        "cuMemAlloc_v2" if i in plain else "cuMemAllocManaged" for i in range(1, 7)
    ]


def test_rules_add_to_the_default_and_none_takes_it_away(
    run: Callable[..., Ran], asker: Callable[[str], Path]
) -> None:
    nccl, own = str(asker("libnccl.so.2")), str(asker("libown.so"))
    program = (
        f"{ASKING}\ntell(kinds=[asked(p, s * MiB) for p in ({nccl!r}, {own!r}) for s in (2, 8)])"
    )
    plain, managed = "cuMemAlloc_v2", "cuMemAllocManaged"
    for rules, kinds in (
        ("libown", [plain, plain, plain, plain]),
        ("none,libown", [managed, managed, plain, plain]),
        ("libown:4MiB-", [plain, plain, managed, plain]),
        ("NONE, libown : 2MiB", [managed, managed, plain, managed]),
    ):
        assert run(program, DEEPUM_PLAIN_MEMORY=rules).facts()["kinds"] == kinds, rules


def test_plain_memory_counts_against_the_capacity_and_is_told_to_nobody(
    run: Callable[..., Ran], listener: FakeDaemon
) -> None:
    facts = run(
        (
            "start(); before = mem_info(); kept = alloc(20 * MiB); gone = alloc(20 * MiB); "
            "free(gone); tell(before=before, after=mem_info())"
        ),
        DEEPUM_PLAIN_MEMORY="20MiB",
    ).facts()
    assert facts["before"][0] - facts["after"][0] == 20 * MIB
    assert [event.kind for event in listener.events() if event.kind in ("allocate", "free")] == []


GOOD = (
    "none",
    "2MiB",
    "libx",
    "-1",
    "1-",
    "_x.so:1-2",
    "libopen-pal+1.2",
    ",".join(["7"] * (MOST_RULES - len(SHARING_LIBRARIES))),
)
BAD = (
    "x:",
    "-",
    "2MiB-1MiB",
    "2MiB,,3MiB",
    "2MiB,",
    "lib/x",
    "libx:libx",
    "1e9",
    "none:3",
    "0x10",
    "l" * 64,
    "1-2-3",
    ",".join(["7"] * (MOST_RULES - len(SHARING_LIBRARIES) + 1)),
    "none," + ",".join(["7"] * (MOST_RULES + 1)),
)


@pytest.mark.parametrize("text", GOOD + BAD)
def test_shim_and_launcher_understand_the_same_rules(run: Callable[..., Ran], text: str) -> None:
    done = run("start(); tell()", DEEPUM_PLAIN_MEMORY=text, DEEPUM_LOG="1")
    refused = [
        line
        for line in done.err.splitlines()
        if line.startswith("deepum: warning: DEEPUM_PLAIN_MEMORY: '")
    ]
    assert len(refused) == (text in BAD), done.err
    assert all("is not usable; write sizes" in line for line in refused)
    if text in BAD:
        with pytest.raises(ValueError):
            parse_rules(text)
    else:
        assert parse_rules(parse_rules(text)) == parse_rules(text)


def test_an_unusable_value_leaves_the_default(
    run: Callable[..., Ran], asker: Callable[[str], Path]
) -> None:
    nccl = str(asker("libnccl.so.2"))
    facts = run(
        f"{ASKING}\ntell(kinds=[asked({nccl!r}, 4 * MiB), *kinds(5 * MiB)])",
        DEEPUM_PLAIN_MEMORY="5MiB,?",
    ).facts()
    assert facts["kinds"] == ["cuMemAlloc_v2", "cuMemAllocManaged"]


def test_pytorchs_totals_are_told_without_its_blocks_in_plain_memory(
    run: Callable[..., Ran], listener: FakeDaemon
) -> None:
    """The daemon compares them with the blocks that it knows; a disagreement would end all
    discarding.
    """
    run(
        """
report = c.CDLL(None)._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
report.argtypes = [c.c_void_p, c.c_int64, c.c_size_t, c.c_size_t, c.c_int16]
total = 0
def block(address, size):
    global total
    total += size
    report(address, size, total, total, 1)
start()
managed_segment, plain, other = alloc(8 * MiB), alloc(20 * MiB), alloc(20 * MiB)
block(managed_segment, MiB)
block(plain, 3 * MiB); block(plain + 4 * MiB, MiB); block(other, 5 * MiB)
block(managed_segment + MiB, MiB)
block(plain, -3 * MiB)
block(managed_segment + 2 * MiB, MiB)
free(other); total -= 5 * MiB
block(managed_segment + 2 * MiB, -MiB)
tell()
""",
        DEEPUM_PLAIN_MEMORY="20MiB",
    ).facts()
    block_events = [event for event in listener.events() if event.kind.startswith("block_")]
    assert [(event.kind, event.words()[3] // MIB) for event in block_events] == [
        ("block_active", 1),
        ("block_active", 2),
        ("block_active", 3),
        ("block_inactive", 2),
    ]
