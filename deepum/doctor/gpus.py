"""Checks of card and driver: what unified memory and we need of them. The figures come from the
process that asked (probe.py).
"""

from __future__ import annotations

from typing import Any

from deepum.doctor.ask import Answer
from deepum.doctor.check import Check
from deepum.host import KernelDriver
from deepum.safety import Gpu, known_hang
from deepum.sizes import size

# cuFuncGetParamInfo: below, kernels' parameters are read from their code where that is possible.
_OLDEST_CUDA = 12040
_OLDEST_CAPABILITY = (6, 0)  # Pascal: page faults


def of_answer(answer: Answer) -> list[Gpu]:
    """The cards that the driver told of."""
    return [
        Gpu(
            device["name"],
            device["memory_bytes"],
            (device["capability"][0], device["capability"][1]),
            bool(device["attributes"]["concurrent_managed_access"]),
        )
        for device in answer.known.get("devices", [])
    ]


def gpu(answer: Answer) -> Check:
    """That there is one, and that the driver answers."""
    devices = answer.known.get("devices", [])
    if not answer.bindings:
        return Check(
            "cuda-bindings",
            "fail",
            "is not installed, so nobody can ask the driver",
            "pip install 'deepum[cuda]'",
        )
    if not devices:
        cause = answer.trouble or "the driver knows of no card"
        return Check(
            "GPU",
            "fail",
            f"none that works: {cause}",
            (
                "install NVIDIA's driver, give the container its GPU (--gpus all), or run on the "
                "simulated one (--device sim)"
            ),
        )
    shown = ", ".join(
        (
            f"{d['name']}, {size(d['memory_bytes'])}, compute capability "
            f"{d['capability'][0]}.{d['capability'][1]}"
        )
        for d in devices
    )
    if all(tuple(device["capability"]) < _OLDEST_CAPABILITY for device in devices):
        return Check(
            "GPU",
            "fail",
            f"{shown}: has no page faults",
            "use a card from 2016 (Pascal) or later",
            {"devices": devices},
        )
    if answer.trouble is not None:
        remedy = "look into the kernel's log (dmesg); a GPU that hangs needs a reset or a reboot"
        return Check("GPU", "fail", f"{shown}: {answer.trouble}", remedy, {"devices": devices})
    return Check(
        "GPU", "ok", shown, data={"devices": devices, "free_bytes": answer.known.get("free_bytes")}
    )


def driver(answer: Answer, kernel: KernelDriver | None) -> Check:
    """Its version, and what is known against it."""
    version = int(answer.known["cuda_version"])
    shown = f"CUDA {version // 1000}.{version % 1000 // 10}"
    if kernel is not None:
        shown = f"{kernel.text}, {'open' if kernel.open else 'proprietary'} kernel module, {shown}"
    data: dict[str, Any] = {
        "cuda_version": version,
        "kernel_driver": kernel.text if kernel is not None else None,
    }
    hang = known_hang(kernel, of_answer(answer))
    if hang is not None:
        return Check(
            "driver",
            "fail",
            f"{shown}: {hang.what} ({hang.source})",
            "install another branch",
            data,
        )
    if version < _OLDEST_CUDA:
        return Check(
            "driver",
            "warn",
            f"{shown}: is older than what is tested",
            "install driver 550 (CUDA 12.4) or later",
            data,
        )
    return Check("driver", "ok", shown, data=data)


def managed_access(answer: Answer, wsl: bool) -> Check:
    """Whether memory can be moved while kernels run."""
    first = answer.known["devices"][0]["attributes"]
    if not first["concurrent_managed_access"]:
        why = "WSL2 has none" if wsl else "as on most vGPUs and with Confidential Computing"
        remedy = "use a bare-metal Linux driver; `deepum run --force` leaves memory on the card"
        return Check(
            "unified memory", "fail", f"no concurrent managed access ({why})", remedy, first
        )
    shown = "concurrent managed access"
    if first["pageable_memory_access_uses_host_page_tables"]:
        shown += "; pageable memory through the host's page tables"
    elif first["pageable_memory_access"]:
        shown += "; pageable memory too (HMM)"
    return Check("unified memory", "ok", shown, data=first)


def moves(answer: Answer) -> Check:
    """How memory can be moved: in batches or one by one."""
    calls = answer.known["calls"]
    if not calls["cuMemPrefetchAsync"]:
        return Check(
            "prefetch",
            "fail",
            "the driver has no cuMemPrefetchAsync",
            "install driver 550 or later",
            calls,
        )
    if not calls["cuMemPrefetchBatchAsync"]:
        return Check(
            "prefetch",
            "warn",
            "one range a call: no batches",
            "a driver of CUDA 13.0 (580) or later has them",
            calls,
        )
    return Check("prefetch", "ok", "in batches", data=calls)


def discard(answer: Answer) -> Check:
    """Whether dead memory can be dropped."""
    calls = answer.known["calls"]
    if not calls["cuMemDiscardBatchAsync"]:
        cause = "not in this driver, so dead PyTorch memory is copied out like any other"
        return Check("discard", "warn", cause, "a driver of CUDA 13.0 (580) or later has it", calls)
    return Check("discard", "ok", "cuMemDiscardBatchAsync", data=calls)


def parameters(answer: Answer) -> Check:
    """Whether kernels tell of their parameters, from which accesses are known."""
    calls = answer.known["calls"]
    if not calls["cuFuncGetParamInfo"]:
        cause = (
            "the driver does not tell kernels' parameters, so that launches are known by name alone"
        )
        return Check(
            "kernel arguments", "warn", cause, "install driver 550 (CUDA 12.4) or later", calls
        )
    return Check("kernel arguments", "ok", "cuFuncGetParamInfo", data=calls)


def faults(answer: Answer) -> Check:
    """Where observed accesses would come from (docs/observed-accesses.md): CUPTI, else
    uvm-tools.
    """
    found, tools = answer.known.get("cupti"), answer.known.get("uvm_tools")
    data = {"cupti": found, "uvm_tools": tools}
    shown = f"CUPTI {found['version']} ({found['path']})" if found else "CUPTI"
    lacking = found["error"] if found else "no libcupti.so.13 or .12"
    missing = tools["error"] if tools else "the driver did not answer"
    if lacking is None:
        return Check(
            "fault source",
            "ok",
            f"{shown}; uvm-tools too" if missing is None else f"{shown}; uvm-tools: {missing}",
            data=data,
        )
    if tools and missing is None:
        return Check(
            "fault source",
            "ok",
            f"uvm-tools of driver {tools['release']}; {shown}: {lacking}",
            data=data,
        )
    remedy = (
        "pip install nvidia-cuda-cupti, or install the toolkit's CUPTI; needed for --faults alone"
    )
    if found is not None:
        remedy = (
            "needed for --faults alone; the driver's option NVreg_RestrictProfilingToAdminUsers=0 "
            "lets everybody profile"
        )
    return Check("fault source", "warn", f"{shown}: {lacking}; uvm-tools: {missing}", remedy, data)


_WAYS = (("pinned copy", "pinned"), ("prefetch", "prefetch"), ("on demand", "on_demand"))
_POOR = 0.6  # of a pinned copy's speed; 0.85 to 0.95 is expected


def link(answer: Answer) -> Check:
    """How fast memory comes and goes."""
    rates = answer.known["link"]
    if "error" in rates:
        remedy = "end what else uses the GPU, then ask again"
        return Check("link", "warn", f"could not be measured: {rates['error']}", remedy, rates)

    def both(way: str) -> str:
        out = rates[f"to_host_{way}"]
        return f"{rates[f'to_gpu_{way}']:.1f} in, {'?' if out is None else f'{out:.1f}'} out"

    shown = "GB/s: " + "; ".join(f"{words} {both(way)}" for words, way in _WAYS)
    slow = [
        way
        for way in ("to_gpu", "to_host")
        if rates[f"{way}_prefetch"] < _POOR * rates[f"{way}_pinned"]
    ]
    if slow == ["to_host"]:
        remedy = (
            "none: the driver maps each page of 4 KiB that it moves there; what leaves the GPU "
            "does so at this rate"
        )
        return Check("link", "warn", f"{shown}: prefetches to the host are slow", remedy, rates)
    if slow:
        remedy = (
            "see that the process runs on the GPU's NUMA node (nvidia-smi topo -m), and what else "
            "uses the link"
        )
        return Check("link", "warn", f"{shown}: prefetches are slow", remedy, rates)
    return Check("link", "ok", shown, data=rates)
