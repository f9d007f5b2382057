"""What the hooks tell the daemon: executions with their access sets, in launch order, the same in
every run.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from fake_daemon import Event, Execute, FakeDaemon, block_range, execute
from running import Ran

Run = Callable[..., Ran]
COPY, GRAPH, PARTIAL, SPARSE, MEMSET = 1, 2, 4, 8, 16
PROLOGUE = "start()\na, b = alloc(5 * MiB), alloc(9 * MiB)\n"


@pytest.fixture
def events_of(run: Run, listener: FakeDaemon) -> Callable[..., list[Event]]:
    def events_of(snippet: str, **settings: str) -> list[Event]:
        done = run(snippet, **settings)
        assert done.code == 0, done.err
        return listener.events()

    return events_of


def executions(events: list[Event]) -> list[Execute]:
    return [execute(event) for event in events if event.kind == "execute"]


def of_kind(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event.kind == kind]


def test_allocations_are_named_by_size_and_order_and_take_the_lowest_slot(
    events_of: Callable[..., list[Event]],
) -> None:
    events = events_of(
        "start()\na = alloc(5 * MiB); b = alloc(5 * MiB); own = managed(5 * MiB); free(a); c1 "
        "= alloc(5 * MiB); alloc(4096)"
    )
    allocated = [struct.unpack("<IIQQQ", event.body) for event in of_kind(events, "allocate")]
    slots = [slot for slot, *_ in allocated]
    names = [name for _, _, name, *_ in allocated]
    assert slots == [0, 1, 2, 0]
    assert names[3] == names[0] and len(set(names)) == 3
    assert [size for *_, size, _ in allocated] == [5 << 20] * 4
    assert [event.flags for event in of_kind(events, "allocate")] == [0, 0, 1, 0]
    assert allocated[3][1] != allocated[0][1]
    assert struct.unpack("<II", of_kind(events, "free")[0].body) == (0, allocated[0][1])
    sequences = [event.sequence for event in events]
    assert sequences == sorted(set(sequences))


def test_every_aligned_word_of_every_parameter_is_tried(
    events_of: Callable[..., list[Event]],
) -> None:
    events = events_of(
        PROLOGUE
        + """
kernel = function("mixed:8,4,24,8,12")
struct_ = (c.c_uint64 * 3)(7, b + 100, 3)
unaligned = (c.c_uint32 * 3)(1, a & 0xffffffff, a >> 32)
launch(kernel, a + 4 * MiB, c.c_uint32(5), struct_, 12345, unaligned)
launch(kernel, 0xffffffffffffffff, c.c_uint32(5), (c.c_uint64 * 3)(1 << 47, a - 1, 512), b + 9 * MiB, unaligned)
"""
    )
    first, second = executions(events)
    assert first.unknown == [(0, 0, 3), (1, 0, 5)] and not first.written and not first.read
    assert second.unknown == []
    assert first.flags == second.flags == 0


def test_the_extra_buffer_form_is_read_too(events_of: Callable[..., list[Event]]) -> None:
    events = events_of(
        PROLOGUE
        + """
kernel = function("both:8,4,8")
buffer = (c.c_uint64 * 3)(a, 1, b)
size = c.c_size_t(24)
extra = (c.c_void_p * 5)(1, c.addressof(buffer), 2, c.addressof(size), 0)
ok(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, extra))
launch(kernel, a, c.c_uint32(1), b)
"""
    )
    by_buffer, by_parameters = executions(events)
    assert by_buffer.unknown == [(0, 0, 3), (1, 0, 5)]
    assert by_buffer.hash == by_parameters.hash


def test_execution_id_depends_on_function_shape_and_pointers_but_on_no_other_scalar(
    events_of: Callable[..., list[Event]],
) -> None:
    launches = events_of(
        PROLOGUE
        + """
one, two = function("one:8,8,4"), function("two:8,8,4")
n = c.c_uint32
launch(one, a, b, n(1)); launch(one, a, b, n(2))
launch(two, a, b, n(1)); launch(one, a, b, n(1), grid=2); launch(one, a, b, n(1), block=64); launch(one, a, b, n(1), shared=1)
launch(one, b, a, n(1)); launch(one, a + 8, b, n(1)); launch(one, a, a, n(1)); launch(one, a, 5, n(1)); launch(one, 5, a, n(1))
launch(function("one:8,8,4"), a, b, n(1))
"""
    )
    hashes = [launch.hash for launch in executions(launches)]
    assert hashes[0] == hashes[1] == hashes[-1]
    assert len(set(hashes[1:-1])) == 10


def test_a_second_run_at_other_addresses_tells_the_same(
    events_of: Callable[..., list[Event]], listener: FakeDaemon
) -> None:
    program = (
        PROLOGUE
        + """
kernel = function("k:8,8,16")
for step in range(3):
    c1 = alloc(3 * MiB)
    launch(kernel, a, c1, (c.c_uint64 * 2)(b, step))
    ok(cuda.cuMemcpyDtoD_v2(c.c_uint64(c1), c.c_uint64(a), c.c_size_t(MiB)))
    free(c1)
"""
    )
    events_of(program, DEEPUM_SYNC="1")
    events_of(program, DEEPUM_SYNC="1", FAKE_SHUFFLE="1")
    first, second = listener.sessions
    assert [event.raw for event in first.events] == [event.raw for event in second.events]
    assert len(executions(first.events)) == 6


def test_hundreds_of_pointers_and_more_than_a_record_holds(
    events_of: Callable[..., list[Event]],
) -> None:
    events = events_of(
        """
start()
many = [alloc(2 * MiB) for _ in range(448)]
foreach = function("foreach:3584")
launch(foreach, (c.c_uint64 * 448)(*many))
launch(foreach, (c.c_uint64 * 448)(*(many[:100] * 4 + many[:48])))
launch(foreach, (c.c_uint64 * 448)(*([many[7]] * 448)))
more = [alloc(2 * MiB) for _ in range(2052)]
launch(function("huge:20000"), (c.c_uint64 * 2500)(*(many + more)))
"""
    )
    every, some, one, huge = executions(events)
    assert every.unknown == [(slot, 0, 1) for slot in range(448)] and every.flags == 0
    assert some.unknown == [(slot, 0, 1) for slot in range(100)]
    assert one.unknown == [(7, 0, 1)]
    assert huge.flags == PARTIAL and len(huge.unknown) == 2043


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb", SPARSE),
        (
            "_ZN2at6native40EmbeddingBag_updateOutputKernel_sum_meanIflEEvPKT0_S4_PKT_PS5_PS2_lllllNS0_17EmbeddingBagModeE",
            SPARSE,
        ),
        ("_ZN2at6native19indexFuncLargeIndexIfljLi2ELi2ELin2ELb1ENS0_9ReduceAddEEEvv", SPARSE),
        (
            "_ZN2at6native24index_elementwise_kernelILi128ELi4EZNS0_16gpu_index_kernelEEEvlT1_",
            SPARSE,
        ),
        ("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEviT0_T1_", 0),
        ("my_indexFuncLargeIndex", 0),
    ],
)
def test_pytorchs_gathers_are_known_by_name(
    events_of: Callable[..., list[Event]], name: str, flags: int
) -> None:
    (launch,) = executions(
        events_of(f"start(); launch(function('{name}:8,8'), alloc(64 * MiB), alloc(2 * MiB))")
    )
    assert launch.flags == flags and launch.unknown == [(0, 0, 32), (1, 0, 1)]


def test_copies_and_memsets_know_what_they_read_and_write(
    events_of: Callable[..., list[Event]],
) -> None:
    events = events_of(
        PROLOGUE
        + """
u, z = c.c_uint64, c.c_size_t
ok(cuda.cuMemcpyHtoD_v2(u(a + 2 * MiB), b"x" * 64, z(64)))
ok(cuda.cuMemcpyDtoH_v2(c.create_string_buffer(64), u(b + 3 * MiB), z(64)))
ok(cuda.cuMemcpyDtoDAsync_v2(u(a), u(b + 4 * MiB), z(4 * MiB), None))
ok(cuda.cuMemsetD32_v2(u(b), 0, z(MiB)))
ok(cuda.cuMemcpyHtoD_v2(u(alloc(4096)), b"x" * 64, z(64)))
ok(cuda.cuMemcpyBatchAsync_v2((u * 2)(a, b), (u * 2)(b + 8 * MiB, a + 4 * MiB), (z * 2)(MiB, MiB), z(2), None, None, z(0), stream_create()))
"""
    )
    to_device, to_host, inside, fill, batch = executions(events)
    assert all(copy.flags == COPY for copy in (to_device, to_host, inside, batch))
    assert fill.flags == COPY | MEMSET
    assert (to_device.written, to_device.read) == ([(0, 1, 1)], [])
    assert (to_host.written, to_host.read) == ([], [(1, 1, 1)])
    assert (inside.written, inside.read) == ([(0, 0, 2)], [(1, 2, 2)])
    assert (fill.written, fill.read) == ([(1, 0, 2)], [])
    assert (batch.written, batch.read) == ([(0, 0, 1), (1, 0, 1)], [(1, 4, 1), (0, 2, 1)])


def test_streams_get_the_lowest_free_id_at_their_first_use(
    events_of: Callable[..., list[Event]],
) -> None:
    events = events_of(
        PROLOGUE
        + """
k = function("k:8")
unused, s, t = stream_create(), stream_create(), stream_create()
launch(k, a); launch(k, a, stream=t); launch(k, a, stream=s); launch(k, a, suffix="_ptsz")
launch(k, a, stream=c.c_void_p(2)); launch(k, a, stream=c.c_void_p(1))
ok(cuda.cuStreamDestroy_v2(t))
launch(k, a, stream=unused)
"""
    )
    assert [launch.stream for launch in executions(events)] == [0, 1, 2, 3, 3, 0, 1]
    assert struct.unpack("<II", of_kind(events, "stream_destroyed")[0].body)[0] == 1


def test_default_streams_of_each_context_are_streams_of_their_own(
    events_of: Callable[..., list[Event]],
) -> None:
    """Their handles are the same, and work on the one says nothing of work on the other."""
    events = events_of(
        PROLOGUE
        + """
k = function("k:8")
first, other = c.c_void_p(), c.c_void_p()
ok(cuda.cuCtxGetCurrent(c.byref(first)))
launch(k, a); launch(k, a, suffix="_ptsz")
ok(cuda.cuCtxCreate_v2(c.byref(other), 0, 0)); ok(cuda.cuCtxSetCurrent(other))
launch(k, a); launch(k, a, suffix="_ptsz")
ok(cuda.cuCtxSetCurrent(first))
launch(k, a); launch(k, a, suffix="_ptsz")
ok(cuda.cuCtxDestroy_v2(other))
"""
    )
    assert [launch.stream for launch in executions(events)] == [0, 1, 2, 3, 0, 1]
    ended = [struct.unpack("<II", event.body)[0] for event in of_kind(events, "stream_destroyed")]
    assert ended[:2] == [2, 3]


def test_streams_beyond_the_63rd_share_the_last_id(events_of: Callable[..., list[Event]]) -> None:
    events = events_of(
        PROLOGUE + 'k = function("k:8")\nfor i in range(70): launch(k, a, stream=stream_create())'
    )
    assert [launch.stream for launch in executions(events)] == [min(i, 63) for i in range(70)]


def test_launch_ex_and_cooperative_are_the_same_execution(
    events_of: Callable[..., list[Event]],
) -> None:
    events = events_of(
        PROLOGUE
        + """
class Config(c.Structure):
    _fields_ = [("dims", c.c_uint * 7), ("stream", c.c_void_p), ("attributes", c.c_void_p), ("count", c.c_uint)]
k = function("k:8,8")
launch(k, a, b, grid=3, block=64, shared=16)
config = Config((c.c_uint * 7)(3, 1, 1, 64, 1, 1, 16), None, None, 0)
ok(cuda.cuLaunchKernelEx(c.byref(config), k, pointers(a, b), None))
ok(cuda.cuLaunchCooperativeKernel(k, 3, 1, 1, 64, 1, 1, 16, None, pointers(a, b)))
"""
    )
    launches = executions(events)
    assert len(launches) == 3 and len({launch.hash for launch in launches}) == 1
    assert all(launch.unknown == [(0, 0, 3), (1, 0, 5)] for launch in launches)


def test_nothing_happens_during_capture_and_a_graph_launch_is_one_execution(
    events_of: Callable[..., list[Event]],
) -> None:
    events = events_of(
        PROLOGUE
        + """
k, twice = function("k:8,4"), function("twice:8,8")
s, other = stream_create(), stream_create()
n = c.c_uint32
launch(k, a, n(1), stream=s)
ok(cuda.cuStreamBeginCapture_v2(s, 0))
launch(k, a, n(1), stream=s); launch(k, a + 2 * MiB, n(1), stream=s); launch(twice, a, b, stream=s)
launch(k, b, n(1), stream=other)
graph, executable = c.c_void_p(), c.c_void_p()
ok(cuda.cuStreamEndCapture(s, c.byref(graph)))
ok(cuda.cuGraphInstantiateWithFlags(c.byref(executable), graph, c.c_uint64(0)))
ok(cuda.cuGraphLaunch(executable, s)); ok(cuda.cuGraphLaunch(executable, s))
launch(k, a, n(1), stream=s)
"""
    )
    before, beside, graph, again, after = executions(events)
    assert before.hash == after.hash
    assert beside.stream != graph.stream
    assert graph.flags == GRAPH and graph.unknown == [(0, 0, 3), (1, 0, 5)]
    assert graph.hash == again.hash and graph.hash not in (before.hash, beside.hash)


def test_functions_are_asked_for_once_and_again_after_an_unload(run: Run) -> None:
    facts = run(
        PROLOGUE
        + """
k = function("k:8,8")
launch(k, a, b); first = cuda.fake_queries()
for _ in range(10): launch(k, a, b)
second = cuda.fake_queries()
ok(cuda.cuModuleUnload(module()))
launch(k, a, b); launch(k, a, b)
tell(first=first, second=second, third=cuda.fake_queries())
"""
    ).facts()
    assert facts["first"] == facts["second"] and facts["third"] == 2 * facts["first"]


def test_synchronisations_are_told(events_of: Callable[..., list[Event]]) -> None:
    events = events_of(
        PROLOGUE
        + """
s = stream_create()
launch(function("k:8"), a, stream=s)
ok(cuda.cuStreamSynchronize(s)); ok(cuda.cuCtxSynchronize())
event = c.c_void_p(); ok(cuda.cuEventCreate(c.byref(event), 0)); ok(cuda.cuEventSynchronize(event))
"""
    )
    assert [struct.unpack("<II", event.body)[0] for event in of_kind(events, "synchronise")] == [
        0,
        63,
        63,
    ]


def test_context_synchronisation_waits_for_the_programs_streams_only(run: Run) -> None:
    facts = run("""
start()
streams = [stream_create() for _ in range(3)]
before = cuda.fake_synchronised_streams()
ok(cuda.cuCtxSynchronize())
tell(waited=cuda.fake_synchronised_streams() - before, last=name_called())
""").facts()
    assert facts == {"waited": 4, "last": "cuStreamSynchronize"}


def test_program_prefetch_and_advice_in_every_version(
    events_of: Callable[..., list[Event]],
) -> None:
    events = events_of("""
start()
own = managed(6 * MiB)
u, z = c.c_uint64, c.c_size_t
class Location(c.Structure):
    _fields_ = [("type", c.c_int), ("id", c.c_int)]
ok(cuda.cuMemPrefetchAsync(u(own + 2 * MiB), z(2 * MiB), -1, None)); first = name_called()
ok(cuda.cuMemPrefetchAsync_v2(u(own), z(6 * MiB), Location(1, 0), 0, None)); second = name_called()
ok(cuda.cuMemAdvise(u(own), z(MiB), 3, 0))
ok(cuda.cuMemAdvise_v2(u(own), z(MiB), 1, Location(2, 0)))
assert (first, second, name_called()) == ("cuMemPrefetchAsync", "cuMemPrefetchAsync_v2", "cuMemAdvise_v2")
""")
    reported = [
        (event.kind, block_range(event.words()[0]), *struct.unpack_from("<ii", event.body, 8))
        for event in events
        if event.kind.startswith("program")
    ]
    assert reported == [
        ("program_prefetch", (0, 1, 1), -1, 0),
        ("program_prefetch", (0, 0, 3), 0, 0),
        ("program_advise", (0, 0, 1), 0, 3),
        ("program_advise", (0, 0, 1), -1, 1),
    ]


REPORT = """
report = c.CDLL(None)._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
report.argtypes = [c.c_void_p, c.c_int64, c.c_size_t, c.c_size_t, c.c_int16]
def block(address, size, device=1): report(address, size, 11, 22, device)
"""


def test_an_execution_id_leaves_out_where_pytorchs_blocks_lie(
    events_of: Callable[..., list[Event]],
) -> None:
    """And which of them share a UM block, or are neighbours, for that changes from step to step."""
    events = events_of(
        REPORT
        + """
start()
segment, other = alloc(20 * MiB), alloc(20 * MiB)
k = function("k:8,8,8")
for at in (segment, segment + 512, segment + 4 * MiB, other, other + 4 * MiB):
    block(at, 512)
block(segment + 8 * MiB, 3 * MiB)
block(segment + 11 * MiB, 3 * MiB)
block(other + 8 * MiB, 3 * MiB)
launch(k, segment, segment + 512, segment)
launch(k, segment, segment + 4 * MiB, segment)
launch(k, segment, other, other + 4 * MiB)
launch(k, segment + 8 * MiB, segment + 11 * MiB, segment + 8 * MiB)
launch(k, segment + 8 * MiB, other + 8 * MiB, segment + 8 * MiB)
launch(k, segment, segment + 512, segment, grid=2)
"""
    )
    *alike, another = executions(events)
    assert len({launch.hash for launch in alike}) == 1 != len(alike)
    assert another.hash != alike[0].hash
    assert [len(launch.unknown) for launch in alike] == [1, 2, 3, 1, 2]


def test_pytorch_blocks_are_the_access_sets(events_of: Callable[..., list[Event]]) -> None:
    events = events_of(
        REPORT
        + """
start()
segment = alloc(20 * MiB)
k = function("k:8")
launch(k, segment)
block(segment, MiB)                      # inside one UM block
block(segment + MiB, 5 * MiB)            # from the first into the third
block(segment + 6 * MiB, 512)            # its neighbour in the fourth
block(segment + 8 * MiB, 4 * MiB)        # two whole ones
block(segment + 12 * MiB, 8 * MiB, device=0)  # a CPU tensor's report changes nothing
for offset in (0, MiB, 3 * MiB, 6 * MiB - 1, 6 * MiB, 8 * MiB, 11 * MiB, 13 * MiB):
    launch(k, segment + offset)
block(segment + MiB, -5 * MiB)
launch(k, segment + 3 * MiB)
block(segment + MiB, 2 * MiB)
launch(k, segment + MiB); launch(k, segment + 2 * MiB + MiB // 2); launch(k, segment + 4 * MiB)
"""
    )
    sets = [launch.unknown[0] for launch in executions(events)]
    assert sets[0] == (0, 0, 10)
    assert sets[1:9] == [
        (0, 0, 1),
        (0, 0, 3),
        (0, 0, 3),
        (0, 0, 3),
        (0, 3, 1),
        (0, 4, 2),
        (0, 4, 2),
        (0, 6, 1),
    ]
    assert sets[9:] == [(0, 1, 1), (0, 0, 2), (0, 0, 2), (0, 2, 1)]
    active = [struct.unpack("<IIQQQQ", event.body) for event in of_kind(events, "block_active")]
    assert [(offset >> 20, size) for _, _, offset, size, _, _ in active][1] == (1, 5 << 20)
    assert active[0][4:] == (11, 22)
    assert len(of_kind(events, "block_inactive")) == 1


def test_allocations_that_share_a_um_block_are_told_apart(
    events_of: Callable[..., list[Event]], run: Run
) -> None:
    events = events_of(
        "start()\nk = function('k:8')\nblocks = [managed(MiB // 2) for _ in range(40)]\n"
        "for x in blocks: launch(k, x + 100)\nfor x in blocks[::2]: free(x)\nfor x in "
        "blocks[1::2]: launch(k, x + 100)"
    )
    slots = [launch.unknown[0][0] for launch in executions(events)]
    assert slots == [*range(40), *range(1, 40, 2)]
