"""The CUDA driver through cuda-python's bindings: checked calls, managed memory within a safe share
of the card, times by events.

Needs the extra `[cuda]`. Used in processes of its own (probe.py, benchmarks/acceptance), never in
the launcher or the daemon.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

MIB = 1 << 20
# Asking for more managed memory than is free has hung GPUs (NVIDIA/open-gpu-kernel-modules issue
# 1223): never more than this share of it.
SAFE_SHARE = 0.6

# Each thread does one thing to the word `stride` bytes behind the last one's, `count` of them. In
# PTX's oldest form that knows unified memory's cards, so that any driver compiles it.
_HEAD = ".version 6.0\n.target sm_60\n.address_size 64\n"
_KERNEL = """
.visible .entry deepum_{name}(.param .u64 data, .param .u64 count, .param .u64 stride)
{{
  .reg .pred %p;
  .reg .b32 %r<5>;
  .reg .b64 %rd<7>;
  ld.param.u64 %rd1, [data];
  ld.param.u64 %rd2, [count];
  ld.param.u64 %rd6, [stride];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd3, %r1, %r2;
  cvt.u64.u32 %rd4, %r3;
  add.u64 %rd3, %rd3, %rd4;
  setp.ge.u64 %p, %rd3, %rd2;
  @%p bra done;
  mul.lo.u64 %rd4, %rd3, %rd6;
  add.u64 %rd5, %rd1, %rd4;
  mov.u32 %r4, 1;
  {does}
done:
  ret;
}}
"""
_DOES = {
    "read": "ld.volatile.global.u32 %r4, [%rd5];",
    "write": "st.global.u32 [%rd5], %r4;",
    "add": "red.global.add.u32 [%rd5], %r4;",
}


class CudaError(Exception):
    """A call failed: `name` is the driver's name of the error, without CUDA_ERROR_."""

    def __init__(self, call: str, name: str) -> None:
        super().__init__(f"{call}: {name}")
        self.call = call
        self.name = name


class UnsafeError(Exception):
    """Memory was asked for that the card does not safely have."""


class Cuda:
    """The driver, with the primary context of a device current. `cuda("cuMemAlloc", bytes)` answers
    with the call's values.

    Raises ImportError without cuda-bindings, CudaError without a driver or device.
    """

    def __init__(self, ordinal: int = 0) -> None:
        from cuda.bindings import driver

        self.api: Any = driver
        try:
            self("cuInit", 0)
        except CudaError:
            raise
        except (
            Exception
        ) as error:  # cuda-bindings tells by exceptions of its own that there is no libcuda.so.1
            raise CudaError(
                "libcuda.so.1",
                "is not there"
                if "NotFound" in type(error).__name__
                else " ".join(str(error).split()),
            ) from None
        self.device = self("cuDeviceGet", ordinal)
        self.context = self("cuDevicePrimaryCtxRetain", self.device)
        self("cuCtxSetCurrent", self.context)
        self.host = self.location("HOST", 0)
        self.gpu = self.location("DEVICE", ordinal)
        self.managed_bytes = 0
        self._sizes: dict[int, int] = {}
        self._kernels: dict[str, Any] = {}

    def __call__(self, name: str, *arguments: Any) -> Any:
        answer = getattr(self.api, name)(*arguments)
        if int(answer[0]) != 0:
            raise CudaError(name, self.name_of(answer[0]))
        return None if len(answer) == 1 else answer[1] if len(answer) == 2 else answer[1:]

    def name_of(self, result: Any) -> str:
        """Of an error."""
        try:
            return str(self.api.CUresult(int(result)).name).removeprefix("CUDA_ERROR_")
        except ValueError:
            return f"error {int(result)}"

    def answer(self, name: str, *arguments: Any) -> str:
        """What a call answers: SUCCESS, or the error's name; NOT_FOUND where the driver or the
        bindings do not have it.
        """
        try:
            self(name, *arguments)
        except CudaError as error:
            return error.name
        except (AttributeError, RuntimeError):
            return "NOT_FOUND"
        return "SUCCESS"

    def has(self, name: str, version: int) -> bool:
        """Whether the driver has a function in the form of that CUDA version: asked of it, not
        derived from its version.
        """
        try:
            pointer, _ = self("cuGetProcAddress", name.encode(), version, 0)
        except CudaError:
            return False
        return int(pointer) != 0

    def attribute(self, name: str, device: Any = None) -> int:
        """Of the device: its CU_DEVICE_ATTRIBUTE_*."""
        number = getattr(self.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self("cuDeviceGetAttribute", number, self.device if device is None else device))

    def location(self, kind: str, ordinal: int) -> Any:
        """A CUmemLocation: DEVICE with its ordinal, or HOST."""
        place = self.api.CUmemLocation()
        place.type = getattr(self.api.CUmemLocationType, f"CU_MEM_LOCATION_TYPE_{kind}")
        place.id = ordinal
        return place

    # ---- memory

    def free_bytes(self) -> int:
        """Of the card, now."""
        return int(self("cuMemGetInfo")[0])

    def managed(self, size: int) -> int:
        """Managed memory's address. Raises UnsafeError when it, with all that was asked for before,
        may not be safe.
        """
        safe = int(SAFE_SHARE * self.free_bytes())
        if self.managed_bytes + size > safe:
            raise UnsafeError(
                f"{(self.managed_bytes + size) / MIB:.0f} MiB of managed memory are more than "
                f"{SAFE_SHARE:.0%} of what is free, {safe / MIB:.0f} MiB"
            )
        address = int(
            self("cuMemAllocManaged", size, self.api.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value)
        )
        self.managed_bytes += size
        self._sizes[address] = size
        return address

    def free(self, address: int) -> None:
        """Gives device or managed memory back."""
        self("cuMemFree", address)
        self.managed_bytes -= self._sizes.pop(address, 0)

    def pinned(self, size: int) -> int:
        """Host memory's address."""
        return int(self("cuMemHostAlloc", size, 0))

    def prefetch(self, address: int, size: int, place: Any, stream: Any) -> None:
        """Of managed memory, to `gpu` or `host`, in stream order."""
        self("cuMemPrefetchAsync", address, size, place, 0, stream)

    def advise(self, address: int, size: int, advice: str, place: Any) -> None:
        """CU_MEM_ADVISE_*, which takes effect at once."""
        self(
            "cuMemAdvise",
            address,
            size,
            getattr(self.api.CUmem_advise, f"CU_MEM_ADVISE_{advice}"),
            place,
        )

    # ---- streams and time

    def stream(self) -> Any:
        """That waits for nobody."""
        return self("cuStreamCreate", self.api.CUstream_flags.CU_STREAM_NON_BLOCKING.value)

    def event(self) -> Any:
        """With time."""
        return self("cuEventCreate", self.api.CUevent_flags.CU_EVENT_DEFAULT.value)

    def milliseconds(self, stream: Any, work: Callable[[], object]) -> float:
        """GPU time from before the first to behind the last of what `work` queues on the stream."""
        begin, end = self.event(), self.event()
        self("cuEventRecord", begin, stream)
        work()
        self("cuEventRecord", end, stream)
        self("cuEventSynchronize", end)
        elapsed = float(self("cuEventElapsedTime", begin, end))
        self("cuEventDestroy", begin)
        self("cuEventDestroy", end)
        return elapsed

    def touch(self, kind: str, address: int, count: int, stream: Any, stride: int = 4) -> None:
        """A kernel of `count` threads, each of which does that to a word, the words `stride` bytes
        apart: "read", "write" a 1, or "add" it atomically. The simulated GPU knows nothing of
        strides: for it all of these read and write the first `count` words.
        """
        values = (address, count, stride), (ctypes.c_uint64,) * 3
        self(
            "cuLaunchKernel",
            self.kernel(kind),
            (count + 255) // 256,
            1,
            1,
            256,
            1,
            1,
            0,
            stream,
            values,
            0,
        )

    def kernel(self, kind: str) -> Any:
        """The CUfunction that `touch` launches: its parameters are the address, the count and the
        stride, 64 bits each.
        """
        if not self._kernels:
            text = _HEAD + "".join(
                _KERNEL.format(name=name, does=does) for name, does in _DOES.items()
            )
            module = self("cuModuleLoadData", text.encode() + b"\0")
            self._kernels = {
                name: self("cuModuleGetFunction", module, f"deepum_{name}".encode())
                for name in _DOES
            }
        return self._kernels[kind]
