"""What a thread declares to be only read by what it launches: kernel_hooks/declare_reads.h."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_daemon import Execute, FakeDaemon, execute
from running import Ran

Run = Callable[..., Ran]
DECLARING = """
import threading

def answer(name, entry="cuGetProcAddress", *more):
    found = c.c_void_p()
    result = getattr(cuda, entry)(name.encode(), c.byref(found), 12000, c.c_uint64(0), *more)
    return found.value if result == 0 else None

declare_reads = c.CFUNCTYPE(None, c.c_void_p, c.c_uint32)(answer("deepumDeclareReads"))

def declare(*ranges):
    global kept
    flat = [address for one in sorted(ranges) for address in one]
    kept = (c.c_uint64 * max(1, len(flat)))(*flat)
    declare_reads(kept, len(ranges))

report = c.CDLL(None)._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
report.argtypes = [c.c_void_p, c.c_int64, c.c_size_t, c.c_size_t, c.c_int16]

# Blocks of PyTorch's allocator beside one another: their begins and ends.
def report_blocks(segment, count, size):
    blocks = [(segment + i * size, segment + (i + 1) * size) for i in range(count)]
    for i, (begin, _) in enumerate(blocks):
        report(begin, size, size * (i + 1), size * count, 1)
    return blocks

start()
a, b = alloc(5 * MiB), alloc(9 * MiB)
of_a, of_b = (a, a + 5 * MiB), (b, b + 9 * MiB)
k = function("k:8,8")
"""


@pytest.fixture
def launches_of(run: Run, listener: FakeDaemon) -> Callable[[str], list[Execute]]:
    def launches_of(snippet: str) -> list[Execute]:
        done = run(DECLARING + snippet)
        assert done.code == 0, done.err
        return [execute(event) for event in listener.events() if event.kind == "execute"]

    return launches_of


def declared(launch: Execute) -> list[tuple[int, int, int]]:
    return [launch.unknown[place] for place in launch.declared]


A, B = (0, 0, 3), (1, 0, 5)


def test_what_is_declared_is_marked_and_the_launch_is_the_same(
    launches_of: Callable[[str], list[Execute]],
) -> None:
    launches = launches_of("""
launch(k, a, b)
declare(of_a); launch(k, a, b)
declare(of_b); launch(k, a, b)
declare(of_a, of_b); launch(k, a, b + 9 * MiB - 1)
declare(); launch(k, a, b)
""")
    assert [declared(launch) for launch in launches] == [[], [A], [B], [A, B], []]
    assert all(launch.unknown == [A, B] for launch in launches)
    assert len({launch.hash for launch in launches if launch is not launches[3]}) == 1


def test_a_range_ends_before_its_end(launches_of: Callable[[str], list[Execute]]) -> None:
    launches = launches_of("""
declare((a, a + 64)); launch(k, a + 63, b); launch(k, a + 64, b); launch(k, a - 1, b)
declare((a + 64, a + 128), (b, b + 1)); launch(k, a + 63, b); launch(k, a + 64, b + 1)
""")
    assert [declared(launch) for launch in launches] == [[A], [], [], [B], [A]]


def test_memory_that_one_argument_may_write_is_not_only_read(
    launches_of: Callable[[str], list[Execute]],
) -> None:
    launches = launches_of("""
declare((a, a + 64), of_b); launch(k, a, a + 64); launch(k, a + 64, a); launch(k, b, a + 64)
""")
    assert [declared(launch) for launch in launches] == [[], [], [B]]


def test_of_neighbours_that_are_one_range_all_have_to_be_declared(
    launches_of: Callable[[str], list[Execute]],
) -> None:
    """PyTorch's blocks beside one another are one range of UM blocks."""
    launches = launches_of("""
first, second, _ = report_blocks(alloc(12 * MiB), 3, 4 * MiB)
declare(first); launch(k, first[0], second[0])
declare(first, second); launch(k, first[0], second[0])
""")
    assert [launch.unknown for launch in launches] == [[(2, 0, 4)]] * 2
    assert [declared(launch) for launch in launches] == [[], [(2, 0, 4)]]


def test_what_is_written_at_the_edge_of_one_range_of_several(
    launches_of: Callable[[str], list[Execute]],
) -> None:
    launches = launches_of("""
blocks = report_blocks(alloc(6 * MiB), 3, 2 * MiB)
k = function("k:8,8,8")
declare(*blocks); launch(k, *(begin for begin, _ in blocks))
for i in range(3):
    declare(*(blocks[:i] + blocks[i + 1:])); launch(k, *(begin for begin, _ in blocks))
""")
    assert [launch.unknown for launch in launches] == [[(2, 0, 3)]] * 4
    assert [declared(launch) for launch in launches] == [[(2, 0, 3)], [], [], []]


@pytest.mark.parametrize(("size", "is_declared"), [(3, False), (5, True)])
def test_neighbours_that_share_a_block(
    launches_of: Callable[[str], list[Execute]], size: int, is_declared: bool
) -> None:
    """Only what has a block of its own can be only read while its neighbour is written."""
    (launch,) = launches_of(f"""
segment, middle = alloc(40 * MiB), alloc(2 * MiB)
blocks = report_blocks(segment, 2, {size} * MiB)
declare(blocks[0]); launch(function("k:8,8,8"), blocks[0][0], middle, blocks[1][0])
""")
    shared = {3: [(2, 0, 2), (3, 0, 1), (2, 1, 2)], 5: [(2, 0, 3), (3, 0, 1), (2, 2, 3)]}[size]
    assert launch.unknown == shared
    assert declared(launch) == shared[:1] * is_declared


def test_a_declaration_is_of_its_thread(launches_of: Callable[[str], list[Execute]]) -> None:
    launches = launches_of("""
context = start()
def other():
    ok(cuda.cuCtxSetCurrent(context))
    launch(k, a, b)
    kept = (c.c_uint64 * 2)(*of_b)
    declare_reads(kept, 1)
    launch(k, a, b)
declare(of_a)
for _ in range(2):
    thread = threading.Thread(target=other); thread.start(); thread.join()
launch(k, a, b)
""")
    assert [declared(launch) for launch in launches] == [[], [B], [], [B], [A]]


def test_many_arguments_are_marked_each_for_itself(
    launches_of: Callable[[str], list[Execute]],
) -> None:
    launches = launches_of("""
many = [alloc(2 * MiB) for _ in range(200)]
foreach = function("foreach:1600")
declare(*((x, x + 2 * MiB) for x in many[::2])); launch(foreach, (c.c_uint64 * 200)(*many))
declare(*((x, x + 2 * MiB) for x in many)); launch(foreach, (c.c_uint64 * 200)(*many))
""")
    assert [launch.declared for launch in launches] == [list(range(0, 200, 2)), list(range(200))]


def test_without_room_for_the_marks_nothing_is_declared(
    launches_of: Callable[[str], list[Execute]],
) -> None:
    (launch,) = launches_of("""
many = [alloc(2 * MiB) for _ in range(2050)]
declare(*((x, x + 2 * MiB) for x in many)); launch(function("f:16400"), (c.c_uint64 * 2050)(*many))
""")
    assert len(launch.unknown) == 2043 and launch.declared == [] and launch.flags == 4


def test_copies_and_graphs_are_told_as_ever(launches_of: Callable[[str], list[Execute]]) -> None:
    launches = launches_of("""
declare(of_a, of_b)
ok(cuda.cuMemcpyDtoD_v2(c.c_uint64(a), c.c_uint64(b), c.c_size_t(MiB)))
s = stream_create()
ok(cuda.cuStreamBeginCapture_v2(s, 0))
launch(k, a, b, stream=s)
graph, executable = c.c_void_p(), c.c_void_p()
ok(cuda.cuStreamEndCapture(s, c.byref(graph)))
ok(cuda.cuGraphInstantiateWithFlags(c.byref(executable), graph, c.c_uint64(0)))
ok(cuda.cuGraphLaunch(executable, s))
""")
    copy, graph = launches
    assert copy.written == [(0, 0, 1)] and copy.read == [(1, 0, 1)]
    assert copy.declared == graph.declared == []
    assert graph.unknown == [A, B]


def test_a_forked_child_has_declared_nothing(run: Run) -> None:
    """What its parent declared lies in memory that is the child's own to free."""
    facts = run(
        DECLARING
        + """
import os, signal
wanted = c.CFUNCTYPE(c.c_int)(answer("deepumReadsWanted"))
declare(of_a)
child = os.fork()
if child == 0:
    signal.alarm(20)
    launch(k, a, b)
    declare(of_b); launch(k, a, b); declare()
    os._exit(40 + wanted())
tell(ended=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    ).facts()
    assert facts == {"ended": 40}


def test_the_daemon_says_when_it_wants_to_know(run: Run, listener: FakeDaemon) -> None:
    facts = run(
        DECLARING
        + """
wanted = c.CFUNCTYPE(c.c_int)(answer("deepumReadsWanted"))
tell(wanted=wanted())
"""
    ).facts()
    assert facts == {"wanted": 0}


@pytest.mark.parametrize("disabled", [False, True])
def test_names_of_ours_are_answered_under_the_shim_alone(run: Run, disabled: bool) -> None:
    facts = run(
        """
def answer(name, entry, *more):
    found = c.c_void_p()
    result = getattr(cuda, entry)(name, c.byref(found), 12000, c.c_uint64(0), *more)
    return [result, bool(found.value)]
status = c.c_int(7)
found = [answer(name, "cuGetProcAddress") for name in (b"deepumDeclareReads", b"deepumReadsWanted", b"deepumOther")]
found.append(answer(b"deepumDeclareReads", "cuGetProcAddress_v2", c.byref(status)))
tell(found=found, status=status.value)
""",
        DEEPUM_DISABLE="1" if disabled else "0",
    ).facts()
    unknown = [500, False]
    if disabled:
        assert [one for one in facts["found"] if one != unknown] == []
    else:
        assert facts["found"] == [[0, True], [0, True], unknown, [0, True]]
        assert facts["status"] == 0
