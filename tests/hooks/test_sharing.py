"""Memory handed to other processes and devices: the driver's answer is the program's, and the user
learns what to do.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_daemon import FakeDaemon
from running import Ran

# share(way, address): the driver's answer.
WAYS = """
def share(way, address):
    handle = (c.c_char * 64)()
    at = c.c_uint64(address)
    return {
        "ipc": lambda: cuda.cuIpcGetMemHandle(handle, at),
        "dmabuf": lambda: cuda.cuMemGetHandleForAddressRange(handle, at, c.c_size_t(4096), 1, c.c_uint64(0)),
        "tokens": lambda: cuda.cuPointerGetAttribute(handle, 5, at),
        "sync": lambda: cuda.cuPointerSetAttribute(handle, 6, at),
        "buffer": lambda: cuda.cuPointerSetAttribute(handle, 7, at),
    }[way]()
start()
"""
LINES = {
    "ipc": ("cuIpcGetMemHandle", "shared with another process (CUDA IPC)"),
    "dmabuf": ("cuMemGetHandleForAddressRange", "exported as a DMA-BUF"),
    "tokens": ("CU_POINTER_ATTRIBUTE_P2P_TOKENS", "registered for GPUDirect RDMA"),
    "sync": ("CU_POINTER_ATTRIBUTE_SYNC_MEMOPS", "registered for GPUDirect RDMA"),
}


def lines(done: Ran) -> list[str]:
    return [line for line in done.err.splitlines() if "managed memory" in line]


@pytest.mark.parametrize("way", list(LINES))
def test_the_drivers_refusal_is_handed_on_counted_and_explained(
    run: Callable[..., Ran], listener: FakeDaemon, way: str
) -> None:
    done = run(f"{WAYS}\ntell(result=share({way!r}, alloc(20 * MiB) + 4096))", DEEPUM_LOG="1")
    assert done.facts() == {"result": 801 if way == "dmabuf" else 1}
    what, impossible = LINES[way]
    assert lines(done) == [
        f"deepum: warning: {what}: an allocation of 20MiB is managed memory, which cannot be "
        f"{impossible}; DEEPUM_PLAIN_MEMORY=20MiB (--plain-memory 20MiB) keeps allocations of this "
        "size device memory"
    ]
    listener.events()
    assert [session.refused() for session in listener.sessions] == [1]
    advised = run(
        f"{WAYS}\ntell(result=share({way!r}, alloc(20 * MiB) + 4096))",
        DEEPUM_LOG="1",
        DEEPUM_PLAIN_MEMORY="20MiB",
    )
    assert advised.facts() == {"result": 0} and not lines(advised)


def test_each_size_is_told_once_and_every_refusal_counted(
    run: Callable[..., Ran], listener: FakeDaemon
) -> None:
    done = run(
        (
            f"{WAYS}\nfor size in (2 * MiB, 3 * MiB + 5, 2 * MiB):\n    a = alloc(size); "
            f"share('ipc', a); share('dmabuf', a)\ntell()"
        ),
        DEEPUM_LOG="1",
    )
    done.facts()
    assert [line.split(" of ")[1].split()[0] for line in lines(done)] == [
        "2MiB",
        str(3 * (1 << 20) + 5),
    ]
    listener.events()
    assert [session.refused() for session in listener.sessions] == [6]


def test_a_program_that_shares_many_sizes_does_not_fill_the_log(
    run: Callable[..., Ran], listener: FakeDaemon
) -> None:
    done = run(
        f"{WAYS}\nfor i in range(40):\n    share('ipc', alloc((2 + i) * MiB))\ntell()",
        DEEPUM_LOG="1",
    )
    done.facts()
    assert len(lines(done)) == 16
    listener.events()
    assert [session.refused() for session in listener.sessions] == [40]


def test_nothing_is_said_of_what_is_not_our_doing(
    run: Callable[..., Ran], listener: FakeDaemon
) -> None:
    """The program's own managed memory, plain memory, addresses that nobody knows, other
    attributes, devices that share nothing.
    """
    done = run(
        f"{WAYS}\nresults = [share('ipc', a) for a in (managed(4 * MiB), alloc(1000), 4096)] "
        f"+ [share('buffer', alloc(4 * MiB))]\n"
        "tell(results=results)",
        DEEPUM_LOG="1",
    )
    assert done.facts() == {"results": [1, 0, 1, 1]} and not lines(done)
    unable = run(
        f"{WAYS}\na = alloc(4 * MiB); tell(results=[share(way, a) for way in {list(LINES)}])",
        DEEPUM_LOG="1",
        FAKE_NO_SHARING="1",
    )
    assert unable.facts() == {"results": [1, 801, 1, 1]} and not lines(unable)
    listener.events()
    assert [session.refused() for session in listener.sessions] == [0, 0]
