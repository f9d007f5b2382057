"""/dev/nvidia-uvm-tools of the simulated GPU, as a client of its own meets it: records of faults,
and requests that are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Script = Callable[..., Any]
START = """
        import errno, mmap
        from deepum.doctor.uvm_tools import Events, Queue, Tracker, _device
        BLOCK = 2 << 20
"""


def test_a_queue_and_cupti_are_each_told_all_faults(script: Script) -> None:
    script(
        START
        + """
        from cupti_client import Cupti
        m, cupti, queue = Module(), Cupti(), Queue()
        p = managed(8 * BLOCK // 4)
        first = int(p) // BLOCK
        ck(m.set(0, p, BLOCK // 4, 1.0))
        ck(d.cuCtxSynchronize())
        cupti.start()
        queue.enable()
        ck(m.add(0, int(p) + BLOCK, int(p) + 2 * BLOCK, int(p) + 3 * BLOCK, BLOCK // 4))
        ck(d.cuCtxSynchronize())
        seen, told = queue.take(), cupti.flush()
        assert seen.blocks == {f.block for f in told} == {first + 1, first + 2, first + 3}
        assert sum(seen.faults.values()) == sum(f.faults for f in told) and seen.faults["write"] == told[2].faults
        ck(m.scale(0, int(p) + 4 * BLOCK, BLOCK // 4, 2.0))
        ck(d.cuCtxSynchronize())
        queue.disable()
        ck(m.scale(0, int(p) + 5 * BLOCK, BLOCK // 4, 2.0))
        ck(d.cuCtxSynchronize())
        assert queue.take().blocks == {first + 4}  # until it was disabled
        assert [f.block for f in cupti.flush()] == [first + 4, first + 5]
        """
    )


def test_what_the_driver_would_refuse_is_refused(script: Script) -> None:
    script(
        START
        + """
        device = _device()
        assert device.release() == "580.65.06"
        life, space = device.uvm_descriptors()
        memory = mmap.mmap(-1, 1 << 20)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        def init(descriptor, uvm=space, count=1024, records=address, control=address + (1 << 19)):
            tracker = Tracker(records, count, control, uvm_descriptor=uvm)
            device.control(descriptor, 76, tracker)
            return tracker.status
        def enable(descriptor, events=8):
            asked = Events(events)
            device.control(descriptor, 58, asked)
            return asked.status
        one = device.open()
        assert enable(one) == 0x1F             # INVALID_ARGUMENT: no queue yet
        assert init(one, uvm=life) == 0x16     # ILLEGAL_ACTION: no address space
        assert init(one, uvm=one) == 0x1B      # INSUFFICIENT_PERMISSIONS: not of /dev/nvidia-uvm
        assert init(one, count=1000) == init(one, count=1) == 0x1F
        assert init(one, records=address + 8) == init(one, control=0) == 0x1E
        assert init(one) == 0 and init(one) == 0x1F
        assert enable(one) == 0 and enable(one, 1 << 2) == 0x1F  # migrations are not simulated
        for descriptor, request in ((one, 99), (space, 64), (-1, 76)):
            try:
                device.control(descriptor, request, Tracker())
            except OSError as refused:
                assert refused.errno in (errno.EINVAL, errno.EBADF)
            else:
                raise AssertionError(request)
        """
    )


def test_a_driver_that_cannot_be_played_is_refused(script: Script) -> None:
    ran = script(
        'assert error(d.cuInit(0)) == "INVALID_VALUE"',
        bare=True,
        env={"DEEPUM_SIM_UVM_TOOLS": "newest"},
    )
    assert "DEEPUM_SIM_UVM_TOOLS=newest: not usable; give a driver's release" in ran.err
