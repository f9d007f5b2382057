"""Device allocations become unified memory, within real limits, and programs see the device memory
they asked for.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from running import Ran

MIB = 1 << 20
GIB = 1 << 30


def test_large_allocations_become_managed_and_small_ones_do_not(run: Callable[..., Ran]) -> None:
    facts = run("""
start()
big = alloc(MiB); first = name_called()
small = alloc(MiB - 1); second = name_called()
free(big); free(small)
pitch, address = c.c_size_t(), c.c_uint64()
ok(cuda.cuMemAllocPitch_v2(c.byref(address), c.byref(pitch), c.c_size_t(1000), c.c_size_t(2048), 4))
tell(first=first, second=second, pitched=name_called(), pitch=pitch.value, left=cuda.fake_managed_bytes())
""").facts()
    assert facts["first"] == "cuMemAllocManaged" and facts["second"] == "cuMemAlloc_v2"
    assert facts["pitched"] == "cuMemAllocManaged" and facts["pitch"] == 1024
    assert facts["left"] == 2 * MIB


def test_threshold_is_a_setting(run: Callable[..., Ran]) -> None:
    facts = run(
        "start(); alloc(MiB); tell(name=name_called())", DEEPUM_MANAGED_THRESHOLD=str(2 * MIB)
    ).facts()
    assert facts["name"] == "cuMemAlloc_v2"


def test_memory_info_is_the_virtual_capacity(run: Callable[..., Ran]) -> None:
    facts = run(
        "start(); before = mem_info(); alloc(100 * MiB); tell(before=before, after=mem_info())"
    ).facts()
    assert facts["before"] == [5 * GIB, 5 * GIB]
    assert facts["after"] == [5 * GIB - 100 * MIB, 5 * GIB]


def test_gpu_memory_setting_limits_what_is_counted_of_the_card(run: Callable[..., Ran]) -> None:
    facts = run("start(); tell(info=mem_info())", DEEPUM_GPU_MEMORY=str(256 * MIB)).facts()
    assert facts["info"][1] == 4 * GIB + 256 * MIB


def test_what_others_took_of_the_card_is_not_counted(run: Callable[..., Ran]) -> None:
    snippet = (
        "start(); info = mem_info(); tell(info=info, results=[try_alloc(700 * MiB)[0], "
        "try_alloc(300 * MiB)[0], try_alloc(200 * MiB)[0]])"
    )
    facts = run(snippet, FAKE_FREE=str(GIB // 2), DEEPUM_HOST_MEMORY=str(GIB // 2)).facts()
    assert facts == {"info": [GIB, GIB], "results": [0, 0, 2]}
    facts = run(
        "start(); tell(info=mem_info())", FAKE_FREE=str(GIB // 2), DEEPUM_GPU_MEMORY=str(GIB // 4)
    ).facts()
    assert facts["info"][1] == 4 * GIB + GIB // 4


def test_null_arguments_do_not_crash(run: Callable[..., Ran]) -> None:
    facts = run("""
start()
left = c.c_size_t()
results = [
    cuda.cuMemGetInfo_v2(None, None),
    cuda.cuMemGetInfo_v2(c.byref(left), None),
    cuda.cuMemAlloc_v2(None, c.c_size_t(MiB)),
    try_alloc(0)[0],
    cuda.cuMemFree_v2(c.c_uint64(0)),
    cuda.cuPointerGetAttribute(None, 2, c.c_uint64(0)),
    cuda.cuLaunchKernelEx(None, None, None, None),
    cuda.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, None, None, None),
    cuda.cuMemcpy2D_v2(None),
    cuda.cuMemAllocManaged(None, c.c_size_t(MiB), 1),
]
kernel = function("needs:8,8")
cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
tell(results=results, left=left.value)
""").facts()
    assert facts["left"] > 0
    assert facts["results"][2] == facts["results"][3] == 1


def test_before_there_is_a_context_nothing_happens(run: Callable[..., Ran]) -> None:
    facts = run("""
tell(alloc=try_alloc(4 * MiB)[0], name=name_called(), sync=cuda.cuCtxSynchronize(), stream=cuda.cuStreamSynchronize(None))
""").facts()
    assert facts["name"] == "cuMemAlloc_v2"


def test_out_of_memory_beyond_gpu_and_host(run: Callable[..., Ran]) -> None:
    facts = run(
        """
start()
results = [try_alloc(512 * MiB)[0] for _ in range(4)]
left = mem_info()[0]
free(try_alloc(1)[1])
tell(results=results, left=left)
""",
        DEEPUM_HOST_MEMORY=str(600 * MIB),
    ).facts()
    assert facts["results"] == [0, 0, 0, 2]
    assert facts["left"] == 88 * MIB


def test_freed_memory_can_be_allocated_again(run: Callable[..., Ran]) -> None:
    facts = run(
        "start()\nfor _ in range(50):\n    a = alloc(900 * MiB); b = alloc(700 * MiB); "
        "free(a); free(b)\n"
        "tell(left=cuda.fake_managed_bytes())",
        DEEPUM_HOST_MEMORY=str(GIB),
    ).facts()
    assert facts["left"] == 0


def test_managed_limit_counts_the_programs_own_managed_memory(run: Callable[..., Ran]) -> None:
    facts = run(
        """
start()
own = managed(60 * MiB)
refused, taken = try_alloc(60 * MiB)[0], try_alloc(40 * MiB)[0]
address = c.c_uint64()
refused_too = cuda.cuMemAllocManaged(c.byref(address), c.c_size_t(MiB), 1)
free(own)
tell(refused=refused, taken=taken, refused_too=refused_too, again=try_alloc(60 * MiB)[0], info=mem_info())
""",
        DEEPUM_MANAGED_LIMIT=str(100 * MIB),
    ).facts()
    assert (facts["refused"], facts["taken"], facts["refused_too"], facts["again"]) == (2, 0, 2, 0)
    assert facts["info"] == [0, 100 * MIB]


def test_managed_limit_holds_over_processes_and_the_dead_do_not_count(
    run: Callable[..., Ran], environment: dict[str, str]
) -> None:
    limit = str(100 * MIB)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from client import *\nimport time\nstart(); alloc(70 * MiB); tell(); time.sleep(60)",
        ],
        env={**environment, "DEEPUM_MANAGED_LIMIT": limit},
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        snippet = (
            "start(); tell(big=try_alloc(40 * MiB)[0], small=try_alloc(30 * MiB)[0], "
            "info=mem_info())"
        )
        beside = run(snippet, DEEPUM_MANAGED_LIMIT=limit)
        assert beside.facts() == {"big": 2, "small": 0, "info": [0, 100 * MIB]}
        other_gpu = run("start(1); tell(big=try_alloc(90 * MiB)[0])", DEEPUM_MANAGED_LIMIT=limit)
        assert other_gpu.facts() == {"big": 0}
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert run("start(); tell(big=try_alloc(90 * MiB)[0])", DEEPUM_MANAGED_LIMIT=limit).facts() == {
        "big": 0
    }


def test_pointer_attributes_are_those_of_device_memory(run: Callable[..., Ran]) -> None:
    facts = run("""
start()
def ask(address, attribute, kind=c.c_uint):
    answer = kind()
    result = cuda.cuPointerGetAttribute(c.byref(answer), attribute, c.c_uint64(address))
    return [result, answer.value]
ours, own = alloc(5 * MiB), managed(5 * MiB)
size, base = c.c_size_t(), c.c_uint64()
ok(cuda.cuMemGetAddressRange_v2(c.byref(base), c.byref(size), c.c_uint64(ours + 100)))
kind, is_managed, host = c.c_uint(), c.c_uint(), c.c_uint64(1)
attributes = (c.c_uint * 3)(2, 8, 4)
data = (c.c_void_p * 3)(c.addressof(kind), c.addressof(is_managed), c.addressof(host))
ok(cuda.cuPointerGetAttributes(3, attributes, data, c.c_uint64(ours)))
tell(type=ask(ours, 2), managed=ask(ours, 8), host=ask(ours, 4, c.c_uint64)[0], size=ask(ours, 12, c.c_size_t)[1],
     device=ask(ours, 9, c.c_int),
     own_type=ask(own, 2), own_managed=ask(own, 8), own_host=ask(own, 4, c.c_uint64)[0], range=[base.value == ours, size.value],
     many=[kind.value, is_managed.value, host.value])
""").facts()
    assert facts["type"] == [0, 2] and facts["managed"] == [0, 0] and facts["host"] == 1
    assert (
        facts["size"] == 5 * MIB and facts["range"] == [True, 5 * MIB] and facts["device"] == [0, 0]
    )
    assert facts["own_type"] == [0, 4] and facts["own_managed"] == [0, 1] and facts["own_host"] == 0
    assert facts["many"] == [2, 0, 0]


def test_without_concurrent_managed_access_everything_stays_plain_and_says_so_once(
    run: Callable[..., Ran],
) -> None:
    done = run(
        "start(); alloc(4 * MiB); alloc(4 * MiB); tell(name=name_called(), info=mem_info())",
        FAKE_NO_MANAGED="1",
        FAKE_FREE=str(GIB // 2),
        DEEPUM_LOG="1",
    )
    assert done.facts() == {"name": "cuMemAlloc_v2", "info": [GIB // 2, GIB]}
    assert done.err.count("no concurrent managed access") == 1


@pytest.mark.parametrize(("place", "size", "times"), [(1, 20, 1), (1, 0, 0), (2, 20, 0)])
def test_memory_that_cannot_be_managed_is_told_once(
    run: Callable[..., Ran], place: int, size: int, times: int
) -> None:
    """As PyTorch asks for it where a program sets expandable_segments itself. Places: the device's,
    the host's.
    """
    done = run(
        f"""
start()
properties, handle = (c.c_uint * 16)(1, 0, {place}, 0), c.c_uint64()
for _ in range(3):
    ok(cuda.cuMemCreate(c.byref(handle), c.c_size_t({size} * MiB), properties, c.c_uint64(0)))
tell(name=name_called(), handle=handle.value)
""",
        DEEPUM_LOG="1",
    )
    assert done.facts() == {"name": "cuMemCreate", "handle": 7}
    assert done.err.count("do not set expandable_segments in the program") == times


def test_stream_ordered_memory_is_managed_and_reused_in_stream_order(
    run: Callable[..., Ran],
) -> None:
    facts = run("""
start()
stream, other = stream_create(), stream_create()
def allocate(stream, size=10 * MiB):
    address = c.c_uint64()
    ok(cuda.cuMemAllocAsync(c.byref(address), c.c_size_t(size), stream))
    return address.value
first = allocate(stream); name = name_called()
ok(cuda.cuMemFreeAsync(c.c_uint64(first), stream))
again, elsewhere = allocate(stream), allocate(other)
small = allocate(stream, 4096); small_name = name_called()
ok(cuda.cuMemFreeAsync(c.c_uint64(small), stream)); small_free = name_called()
held = cuda.fake_managed_bytes()
ok(cuda.cuMemFreeAsync(c.c_uint64(again), stream)); ok(cuda.cuMemFreeAsync(c.c_uint64(elsewhere), other))
ok(cuda.cuStreamSynchronize(stream))
tell(name=name, reused=first == again, elsewhere=elsewhere == first, small=[small_name, small_free], held=held,
     left=cuda.fake_managed_bytes(), info=mem_info())
""").facts()
    assert facts["name"] == "cuMemAllocManaged" and facts["reused"] and not facts["elsewhere"]
    assert facts["small"] == ["cuMemAllocAsync", "cuMemFreeAsync"]
    assert facts["held"] == 20 * MIB and facts["left"] == 0 and facts["info"][0] == facts["info"][1]


def test_memory_freed_on_a_stream_that_ended_is_not_for_the_next_of_its_handle(
    run: Callable[..., Ran],
) -> None:
    """The next is not ordered behind what the ended one still does."""
    facts = run("""
start()
def allocate(stream, size=10 * MiB):
    address = c.c_uint64()
    ok(cuda.cuMemAllocAsync(c.byref(address), c.c_size_t(size), stream))
    return address.value
streams, reused = [], False
first = stream_create(); memory = allocate(first)
ok(cuda.cuMemFreeAsync(c.c_uint64(memory), first)); ok(cuda.cuStreamDestroy_v2(first))
second = stream_create()
tell(same=first.value == second.value, reused=allocate(second) == memory)
""").facts()
    assert facts == {"same": True, "reused": False}


def test_pending_frees_are_given_back_before_memory_is_refused(run: Callable[..., Ran]) -> None:
    facts = run(
        """
start()
stream = stream_create()
address = c.c_uint64()
ok(cuda.cuMemAllocAsync(c.byref(address), c.c_size_t(900 * MiB), stream)); ok(cuda.cuMemFreeAsync(address, stream))
tell(result=try_alloc(800 * MiB)[0])
""",
        DEEPUM_MANAGED_LIMIT=str(GIB),
    ).facts()
    assert facts["result"] == 0


def test_a_reset_device_gives_its_memory_back(run: Callable[..., Ran]) -> None:
    facts = run(
        "start(); alloc(500 * MiB); alloc(100); ok(cuda.cuDevicePrimaryCtxReset_v2(0)); "
        "start(); tell(info=mem_info())"
    ).facts()
    assert facts["info"][0] == facts["info"][1]
