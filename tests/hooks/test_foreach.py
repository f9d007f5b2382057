"""Foreach launches: the access set is what the launch's blocks work on, not what earlier launches
left in the struct.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_daemon import Execute, FakeDaemon, execute
from running import Ran

GRAPH = 2
PROLOGUE = "from foreach import *\nstart()\nstale = alloc(2 * MiB)\nmine = allocations(40)\n"
CAPACITIES = ["4 KiB", "32 KiB", "32 KiB of bytes"]
Launches = Callable[[str], list[Execute]]


@pytest.fixture
def launches(run: Callable[..., Ran], listener: FakeDaemon) -> Launches:
    def launches(snippet: str) -> list[Execute]:
        done = run(PROLOGUE + snippet)
        assert done.code == 0, done.err
        return [execute(event) for event in listener.events() if event.kind == "execute"]

    return launches


def slots(launch: Execute) -> set[int]:
    """The slots of the allocations that it names: 0 is the stale one, 1 to 40 are ours."""
    assert launch.flags & ~GRAPH == 0
    return {slot for slot, _, _ in launch.unknown}


def up_to(last: int) -> set[int]:
    return set(range(1, last + 1))


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("kind", ["plain", "scalars"])
def test_only_the_tensors_of_this_launch_are_named(
    launches: Launches, kind: str, capacity: str
) -> None:
    executions = launches(f"""
for depth in range(1, 6):
    kernel = Foreach({kind!r}, depth, {capacity!r}, stale)
    lists = [mine[3 * d : 3 * d + 3] for d in range(depth)]
    kernel.launch(grid=kernel.fill(lists, [2, 1, 3]))
    kernel.launch(grid=2)  # of the first tensor alone
    kernel.launch(grid=kernel.fill(lists, [kernel.blocks - 1, 0, 1]))
""")
    assert len(executions) == 15
    for depth in range(1, 6):
        some, one, full = executions[3 * depth - 3 : 3 * depth]
        assert slots(some) == slots(full) == up_to(3 * depth)
        assert slots(one) == {3 * d + 1 for d in range(depth)}


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_every_place_of_a_full_list_is_named(launches: Launches, capacity: str) -> None:
    (launch,) = launches(f"""
kernel = Foreach("plain", 3, {capacity!r}, stale)
room = kernel.room
lists = [[mine[d]] * (room - 1) + [mine[10 + d]] for d in range(3)]
kernel.launch(grid=kernel.fill(lists, [1] * room))
""")
    assert slots(launch) == {1, 2, 3, 11, 12, 13}


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_step_counters_of_fused_optimizers_are_accesses(launches: Launches, capacity: str) -> None:
    executions = launches(f"""
for depth in (2, 3, 4, 5):
    kernel = Foreach("fused", depth, {capacity!r}, stale)
    kernel.launch(grid=kernel.fill([mine[2 * d : 2 * d + 2] for d in range(depth)], [1, 4], steps=mine[30:32]))
    kernel.launch(grid=1)
""")
    assert len(executions) == 8
    for i, depth in enumerate((2, 3, 4, 5)):
        assert slots(executions[2 * i]) == up_to(2 * depth) | {31, 32}
        assert slots(executions[2 * i + 1]) == {2 * d + 1 for d in range(depth)} | {31}


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_the_type_of_the_scalars_decides_where_blocks_are_listed(
    launches: Launches, capacity: str
) -> None:
    # double and complex<double> of depth 1 make structs of one size in two of the layouts.
    executions = launches(f"""
for scalar in SCALARS:
    for depth in (1, 2, 3, 4):
        kernel = Foreach("scalars", depth, {capacity!r}, stale, scalar=scalar)
        kernel.launch(grid=kernel.fill([mine[3 * d : 3 * d + 3] for d in range(depth)], [1, 1, 1]))
""")
    assert [slots(launch) for launch in executions] == [
        up_to(3 * depth) for _ in range(5) for depth in (1, 2, 3, 4)
    ]


def test_parameters_behind_the_struct_are_tried_as_ever(launches: Launches) -> None:
    known, unknown = launches("""
for name in (None, "other_kernel"):
    kernel = Foreach("plain", 2, "4 KiB", stale, after=",1,8,8")
    kernel.launch(c.c_uint8(0), mine[20] + 64, 12345, grid=kernel.fill([mine[:2], mine[2:4]], [1, 1]), name=name)
""")
    assert slots(known) == {1, 2, 3, 4, 21}
    assert slots(unknown) == {0, 1, 2, 3, 4, 21}


def test_whatever_is_not_known_exactly_names_every_slot(launches: Launches) -> None:
    executions = launches("""
def filled(*arguments, **more):
    kernel = Foreach(*arguments, stale, **more)
    return kernel, kernel.fill([mine[d : d + 1] for d in range(kernel.depth)], [2])
known, grid = filled("plain", 3, "4 KiB")
known.launch(grid=grid)
larger, grid = filled("plain", 3, "4 KiB", padding=8)
larger.launch(grid=grid)
known.launch(grid=grid, name="_ZN4apex25multi_tensor_apply_kernelI18TensorListMetadataILi3EEE")
for other in ("Li3EEENS1_", "Li3E"), ("18Tensor", "19ATensor"), ("Li3E", "Li6E"), ("Li3E", "Li4E"), ("25multi", "24many"):
    known.launch(grid=grid, name=known.name.replace(*other))
scalars, grid = filled("scalars", 3, "4 KiB")
scalars.launch(grid=grid, name=scalars.name.replace("MetadataIf", "MetadataIe"))
""")
    assert slots(executions[0]) == {1, 2, 3}
    assert [slots(launch) for launch in executions[1:]] == [{0, 1, 2, 3}] * 8


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_grids_that_the_struct_has_no_room_for_name_every_slot(
    launches: Launches, capacity: str
) -> None:
    executions = launches(f"""
kernel = Foreach("plain", 2, {capacity!r}, stale)
grid = kernel.fill([mine[:1], mine[1:2]], [2])
for size in (grid, 0, kernel.blocks + 1, 1 << 20, 0xFFFFFFFF): kernel.launch(grid=size)
kernel.launch(grid=kernel.blocks)  # the last place there is: the last tensor there is
""")
    assert slots(executions[0]) == {1, 2}
    assert [slots(launch) for launch in executions[1:]] == [{0, 1, 2}] * 5


@pytest.mark.parametrize("capacity", CAPACITIES[:2])
def test_tensors_that_the_struct_has_no_room_for_name_every_slot(
    launches: Launches, capacity: str
) -> None:
    executions = launches(f"""
kernel = Foreach("plain", 2, {capacity!r}, stale)
grid = kernel.fill([mine[:1], mine[1:2]], [2])
for tensor in (kernel.room, 0):
    kernel.values.block_to_tensor[grid - 1] = tensor
    kernel.launch(grid=grid)
""")
    assert [slots(launch) for launch in executions] == [{0, 1, 2}, {1, 2}]


def test_the_execution_id_is_that_of_the_tensors_in_use(launches: Launches) -> None:
    executions = launches("""
for rest in (stale, 0, 12345, mine[39]):
    kernel = Foreach("plain", 2, "32 KiB", rest)
    kernel.launch(grid=kernel.fill([mine[:2], mine[2:4]], [1, 1]))
kernel.launch(grid=kernel.fill([mine[:2], [mine[2], mine[4]]], [1, 1]))
kernel.launch(grid=kernel.fill([[mine[1], mine[0]], mine[2:4]], [1, 1]))
kernel.launch(grid=kernel.fill([mine[:2], mine[2:4]], [1, 2]))
""")
    hashes = [launch.hash for launch in executions]
    assert len(set(hashes[:4])) == 1
    assert len(set(hashes[3:])) == 4


def test_the_extra_buffer_form_is_read_alike(launches: Launches) -> None:
    whole, short = launches("""
kernel = Foreach("plain", 4, "4 KiB", stale)
grid = kernel.fill([mine[d : d + 1] for d in range(4)], [3])
for size in (c.c_size_t(c.sizeof(kernel.values)), c.c_size_t(64)):
    extra = (c.c_void_p * 5)(1, c.addressof(kernel.values), 2, c.addressof(size), 0)
    ok(cuda.cuLaunchKernel(function(f"{kernel.name}:{kernel.sizes}"), grid, 1, 1, 512, 1, 1, 0, None, None, extra))
""")
    assert slots(whole) == {1, 2, 3, 4}
    assert slots(short) == {0, 1}


def test_graphs_hold_the_tensors_of_their_launches(launches: Launches) -> None:
    (graph,) = launches("""
s = stream_create()
kernel = Foreach("plain", 2, "32 KiB", stale)
grid = kernel.fill([mine[:2], mine[2:4]], [1, 1])
ok(cuda.cuStreamBeginCapture_v2(s, 0))
kernel.launch(grid=grid, stream=s)
captured, executable = c.c_void_p(), c.c_void_p()
ok(cuda.cuStreamEndCapture(s, c.byref(captured)))
ok(cuda.cuGraphInstantiateWithFlags(c.byref(executable), captured, c.c_uint64(0)))
ok(cuda.cuGraphLaunch(executable, s))
""")
    assert graph.flags == GRAPH and slots(graph) == {1, 2, 3, 4}
