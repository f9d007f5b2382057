"""Memory and events of one process, opened by another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Script = Callable[..., Any]

# A second process that opens what it is sent: `other(text, bytes...)` gives what it prints.
OTHER = """
import subprocess, sys
def other(text, *handles):
    prelude = "from sim_prelude import *\\nimport sys\\nctx = context()\\n" + OPENING
    command = [sys.executable, "-c", prelude + text, *(raw(h).hex() for h in handles)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
OPENING = '''
LAZY = d.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
def handle_of(text, kind=d.CUipcMemHandle):
    made = kind()
    ctypes.memmove(made.getPtr(), bytes.fromhex(text), 64)
    return made
'''
exec(OPENING)
def raw(handle):
    return ctypes.string_at(handle.getPtr(), 64)
"""


def test_only_plain_memory_has_a_handle(script: Script) -> None:
    script(
        OTHER
        + """
plain, small, shared = device(1 << 20), device(100), managed(1 << 20)
pooled = ck(d.cuMemAllocAsync(4 * MIB, 0))
host = ck(d.cuMemHostAlloc(4096, 0))
for address in (shared, pooled, host, 4096):
    assert error(d.cuIpcGetMemHandle(address)) == "INVALID_VALUE"
capable = d.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
assert [bool(ck(d.cuPointerGetAttribute(capable, p))) for p in (plain, small, shared, pooled)] == [True, True, False, False]
whole, inside = ck(d.cuIpcGetMemHandle(plain)), ck(d.cuIpcGetMemHandle(int(plain) + 4096))
assert raw(whole) == raw(inside) != raw(ck(d.cuIpcGetMemHandle(small)))
assert error(d.cuIpcOpenMemHandle(whole, LAZY)) == "INVALID_CONTEXT"   # its own
assert error(d.cuIpcOpenMemHandle(d.CUipcMemHandle(), LAZY)) == "INVALID_VALUE"
dmabuf = d.CUmemRangeHandleType.CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
assert error(d.cuMemGetHandleForAddressRange(plain, 4 * MIB, dmabuf, 0)) == "NOT_SUPPORTED"
assert error(d.cuMemGetHandleForAddressRange(shared, 4 * MIB, dmabuf, 0)) == "INVALID_VALUE"
"""
    )


def test_both_processes_see_what_either_writes(script: Script) -> None:
    """Data from before the handle was made, from after it, and from the other process; pages never
    written are zeros in both.
    """
    script(
        OTHER
        + """
n = 3 << 20
large, small = device(n), device(256)
put(large, np.arange(1000)); put(small, np.full(256, 7))
handles = [ck(d.cuIpcGetMemHandle(p)) for p in (large, small)]
put(int(large) + 8 * MIB, np.full(10, 5))
told = other('''
large, small = (ck(d.cuIpcOpenMemHandle(handle_of(text), LAZY)) for text in sys.argv[1:3])
begin, bytes_ = ck(d.cuMemGetAddressRange(int(small) + 8))
values = get(large, 3 << 20)
print(values[:1000].sum(), values[2 << 20], np.count_nonzero(values), get(small, 256).sum(), int(begin) == int(small), bytes_)
put(int(large) + 4 * MIB, np.full(4, 9))
ck(d.cuMemsetD8(int(large) + 8 * MIB, 0, 2 * MIB)); ck(d.cuCtxSynchronize())
''', *handles)
assert told == f"{float(sum(range(1000)))} 5.0 {999 + 10} {7.0 * 256} True 1024", told
values = get(large, n)
assert values[1 << 20] == 9 and values[(1 << 20) + 4] == 0 and values[2 << 20] == 0 and values[999] == 999
copy = device(n)
ck(d.cuMemcpyDtoD(copy, large, 4 * n)); assert np.array_equal(get(copy, n), values)
ck(d.cuMemcpyDtoD(large, int(copy) + 4 * MIB, 4 * MIB)); assert get(large, 1)[0] == 9
for p in (large, small, copy):
    ck(d.cuMemFree(p))
again = device(n)
put(again, np.zeros(4)); assert not get(again, n)[:4].any()
"""
    )


def test_memory_is_open_until_it_was_closed_as_often_as_opened(script: Script) -> None:
    script(
        OTHER
        + """
memory = device(1 << 20)
handle = ck(d.cuIpcGetMemHandle(memory))
told = other('''
handle = handle_of(sys.argv[1])
free = ck(d.cuMemGetInfo())[0]
assert error(d.cuIpcOpenMemHandle(handle, 0)) == "INVALID_VALUE"
first, second = ck(d.cuIpcOpenMemHandle(handle, LAZY)), ck(d.cuIpcOpenMemHandle(handle, LAZY))
assert int(first) == int(second) and free - ck(d.cuMemGetInfo())[0] == 4 * MIB
assert error(d.cuMemFree(first)) == error(d.cuIpcGetMemHandle(first)) == "INVALID_VALUE"
ck(d.cuIpcCloseMemHandle(first)); get(first, 4)
ck(d.cuIpcCloseMemHandle(first))
assert error(d.cuIpcCloseMemHandle(first)) == "INVALID_VALUE" and ck(d.cuMemGetInfo())[0] == free
own = device(10)
assert error(d.cuIpcCloseMemHandle(own)) == "INVALID_VALUE"
ck(d.cuIpcOpenMemHandle(handle, LAZY))
ck(d.cuDevicePrimaryCtxReset(0))     # what is open is closed with the context
context(); assert ck(d.cuMemGetInfo())[0] == free
print("done")
''', handle)
assert told == "done"
get(memory, 4)
ck(d.cuMemFree(memory))
gone = other('print(error(d.cuIpcOpenMemHandle(handle_of(sys.argv[1]), LAZY)))', handle)
assert gone == "INVALID_HANDLE"
"""
    )


def test_an_event_for_other_processes_is_complete_when_it_is_recorded(script: Script) -> None:
    script(
        OTHER
        + """
flags = d.CUevent_flags
shared = flags.CU_EVENT_INTERPROCESS | flags.CU_EVENT_DISABLE_TIMING
assert error(d.cuEventCreate(flags.CU_EVENT_INTERPROCESS)) == "INVALID_VALUE"
module, work, memory = Module(), stream(), device(1 << 20)
own, event = ck(d.cuEventCreate(flags.CU_EVENT_DISABLE_TIMING)), ck(d.cuEventCreate(shared))
assert error(d.cuIpcGetEventHandle(own)) == "INVALID_HANDLE"
ck(module.set(work, memory, 1 << 20, 3.0))
ck(d.cuEventRecord(own, work)); assert error(d.cuEventQuery(own)) == "NOT_READY"
ck(d.cuEventRecord(event, work)); ck(d.cuEventQuery(event)); ck(d.cuEventQuery(own))
handles = ck(d.cuIpcGetMemHandle(memory)), ck(d.cuIpcGetEventHandle(event))
assert error(d.cuIpcOpenEventHandle(handles[1])) == "INVALID_CONTEXT"
told = other('''
event = ck(d.cuIpcOpenEventHandle(handle_of(sys.argv[2], d.CUipcEventHandle)))
waiting = stream()
ck(d.cuStreamWaitEvent(waiting, event, 0)); ck(d.cuEventSynchronize(event))
memory = ck(d.cuIpcOpenMemHandle(handle_of(sys.argv[1]), LAZY))
print(get(memory, 1 << 20).sum())
ck(d.cuEventDestroy(event))
''', *handles)
assert float(told) == 3.0 * (1 << 20)
"""
    )
