"""Checks of the host: memory for what leaves the GPU, and limits."""

from __future__ import annotations

import resource
from pathlib import Path

from deepum import host
from deepum.doctor.check import Check
from deepum.safety import LEAST_HOST_BYTES
from deepum.sizes import size

_LEAST_FILES = 256  # a daemon has about 5 a session


def memory(gpu_bytes: int | None, root: Path = host.ROOT) -> Check:
    """What is left for memory that leaves the GPU. `gpu_bytes`: of the card, if there is one."""
    available, total, limit = (
        host.available_bytes(root),
        host.total_bytes(root),
        host.group_limit(root),
    )
    data = {"available_bytes": available, "total_bytes": total, "group_left_bytes": limit}
    if available is None:
        return Check(
            "host memory", "warn", "nobody tells how much there is", "give --host-memory", data
        )
    shown = f"{size(available)} available" + (f" of {size(total)}" if total is not None else "")
    if limit is not None and limit <= available:
        shown += ", by the control group's limit"
    if available < LEAST_HOST_BYTES:
        return Check(
            "host memory",
            "fail",
            shown,
            "free some, or raise the container's limit to 1 GiB at least",
            data,
        )
    if gpu_bytes is not None and available < gpu_bytes:
        # The driver keeps the pages of what it has moved back: every byte that was ever out counts.
        remedy = (
            "programs get less than twice the card; free some or raise the container's limit for "
            "more"
        )
        return Check(
            "host memory", "warn", f"{shown}: less than the GPU's {size(gpu_bytes)}", remedy, data
        )
    return Check("host memory", "ok", shown, data=data)


def share(managed_limit: str, root: Path = host.ROOT) -> Check:
    """Whether others have a part of the machine. `managed_limit`: as the environment has it, empty
    without.
    """
    share_bytes = host.share_bytes(root)
    data = {"share_bytes": share_bytes, "managed_limit": managed_limit or None}
    if share_bytes is None:
        return Check("share", "ok", "all of the machine's memory", data=data)
    found = f"{size(share_bytes)} of the machine's memory, by a control group"
    if managed_limit:
        return Check(
            "share", "ok", f"{found}; managed memory is limited to {managed_limit}", data=data
        )
    return Check(
        "share",
        "warn",
        f"{found}, and no limit of managed memory",
        "set DEEPUM_MANAGED_LIMIT, or give --force",
        data,
    )


def overcommit(root: Path = host.ROOT) -> Check:
    """Whether address space may be reserved freely, as CUDA does."""
    mode = host.read("proc/sys/vm/overcommit_memory", root).strip()
    data = {"overcommit_memory": mode or None}
    if mode == "2":
        cause = (
            "strict (vm.overcommit_memory = 2): CUDA reserves more addresses than it uses, and "
            "may be refused"
        )
        return Check("overcommit", "warn", cause, "sysctl vm.overcommit_memory=0", data)
    return Check(
        "overcommit", "ok", {"0": "heuristic", "1": "always"}.get(mode, "unknown"), data=data
    )


def _limit(kind: int) -> int | None:
    soft, _ = resource.getrlimit(kind)
    return None if soft == resource.RLIM_INFINITY else soft


def limits() -> Check:
    """The process's own: address space, open files, locked memory."""
    addresses, files, locked = (
        _limit(resource.RLIMIT_AS),
        _limit(resource.RLIMIT_NOFILE),
        _limit(resource.RLIMIT_MEMLOCK),
    )
    data = {"address_space_bytes": addresses, "open_files": files, "locked_memory_bytes": locked}
    if addresses is not None:
        cause = (
            f"address space is limited to {size(addresses)}, and CUDA reserves more than the GPU "
            f"and the host have"
        )
        return Check("limits", "fail", cause, "ulimit -v unlimited", data)
    if files is not None and files < _LEAST_FILES:
        return Check("limits", "warn", f"{files} open files", f"ulimit -n {_LEAST_FILES}", data)
    # NVIDIA's driver pins pages for CUDA without regard to this limit; what registers memory for a
    # network card has to regard it.
    shown = "unlimited" if locked is None else size(locked)
    return Check("limits", "ok", f"address space unlimited, locked memory {shown}", data=data)
