"""Checks of what containers leave out: the driver's device nodes, its libraries, shared memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from deepum import host
from deepum.doctor.check import Check
from deepum.sizes import size

_LEAST_SHARED = 1 << 30


def inside(root: Path = host.ROOT) -> bool:
    """Whether this seems to be a container."""
    marks = (".dockerenv", "run/.containerenv")
    return any((root / mark).exists() for mark in marks) or "container=" in host.read(
        "proc/1/environ", root
    )


def devices(root: Path = host.ROOT) -> Check:
    """The nodes under /dev; unified memory has one of its own. Only for real GPUs."""
    nodes = {
        name: (root / "dev" / name).exists()
        for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "dxg")
    }
    where = "container" if inside(root) else "machine"
    if not nodes["nvidiactl"]:
        if nodes["dxg"]:
            return Check(
                "device nodes",
                "warn",
                "WSL2's /dev/dxg",
                "WSL2 has no unified memory that can be moved",
                nodes,
            )
        remedy = (
            "run it with --gpus all"
            if where == "container"
            else "install NVIDIA's driver and load it (modprobe nvidia)"
        )
        return Check("device nodes", "fail", f"no /dev/nvidiactl in this {where}", remedy, nodes)
    if not nodes["nvidia-uvm"]:
        remedy = "run `nvidia-modprobe -u -c=0` on the host" + (
            ", then start the container anew" if where == "container" else ""
        )
        return Check(
            "device nodes",
            "fail",
            f"no /dev/nvidia-uvm in this {where}, so no unified memory",
            remedy,
            nodes,
        )
    if not os.access(root / "dev/nvidia-uvm", os.R_OK | os.W_OK):
        return Check(
            "device nodes",
            "fail",
            "/dev/nvidia-uvm: may not be opened",
            "let this user read and write it",
            nodes,
        )
    return Check(
        "device nodes",
        "ok",
        ", ".join(f"/dev/{name}" for name, there in nodes.items() if there),
        data=nodes,
    )


def capabilities(environment: Mapping[str, str]) -> Check | None:
    """What the NVIDIA container toolkit was asked to bring in; None outside its containers."""
    names = environment.get("NVIDIA_DRIVER_CAPABILITIES")
    if names is None:
        return None
    data = {"capabilities": names}
    if not {"all", "compute"} & {word.strip() for word in names.split(",")}:
        return Check(
            "driver libraries",
            "fail",
            f"NVIDIA_DRIVER_CAPABILITIES={names} leaves out libcuda",
            "add compute",
            data,
        )
    return Check("driver libraries", "ok", f"NVIDIA_DRIVER_CAPABILITIES={names}", data=data)


def shared_memory(root: Path = host.ROOT) -> Check:
    """/dev/shm: ours is elsewhere (memfd), but PyTorch's data loaders need it, and NCCL."""
    try:
        filesystem = os.statvfs(root / "dev/shm")
    except OSError as error:
        return Check(
            "shared memory",
            "warn",
            f"/dev/shm: {error.strerror}",
            "mount a tmpfs there; PyTorch's data loaders need it",
        )
    there = filesystem.f_blocks * filesystem.f_frsize
    data = {"bytes": there}
    if there < _LEAST_SHARED:
        cause = f"/dev/shm has {size(there)}, too little for PyTorch's data loaders with workers"
        return Check(
            "shared memory",
            "warn",
            cause,
            "run the container with --shm-size=8g or --ipc=host",
            data,
        )
    return Check("shared memory", "ok", f"/dev/shm has {size(there)}", data=data)
