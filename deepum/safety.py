"""Places where unified memory is not safe, or of no use: `deepum run` refuses them with a reason,
unless --force.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepum.host import KernelDriver
from deepum.sizes import size

# With less there is nowhere for memory to go, and the kernel ends whoever asks for more.
LEAST_HOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Gpu:
    """A card as the driver tells of it; sizes in bytes."""

    name: str
    memory_bytes: int
    capability: tuple[int, int]
    concurrent_managed_access: bool


@dataclass(frozen=True)
class Hang:
    """Drivers that are known to hang on what we do: versions from `first` below `beyond`, cards
    from a compute capability on.
    """

    first: tuple[int, ...]
    beyond: tuple[int, ...]
    open_module: bool
    capability: tuple[int, int]
    what: str
    source: str


HANGS = (
    # Reported with 595.71.05 on an RTX PRO 4500; the branch has had no fix that says so.
    Hang(
        (595,),
        (596,),
        True,
        (10, 0),
        "its open kernel module is reported to hang on Blackwell cards when it evicts",
        "github.com/NVIDIA/open-gpu-kernel-modules/issues/1223",
    ),
)


@dataclass(frozen=True)
class Reason:
    """Why not: the thing, the cause, the next step."""

    thing: str
    cause: str
    remedy: str

    @property
    def text(self) -> str:
        """After `deepum: error: `."""
        return f"{self.thing}: {self.cause}; {self.remedy}"


def known_hang(driver: KernelDriver | None, gpus: Sequence[Gpu]) -> Hang | None:
    """What is known of this driver with these cards."""
    if driver is None:
        return None
    for hang in HANGS:
        concerned = hang.first <= driver.version < hang.beyond and driver.open == hang.open_module
        if concerned and any(gpu.capability >= hang.capability for gpu in gpus):
            return hang
    return None


def unlimited(
    share_bytes: int | None, managed_limit: int | None, host_memory: int | None
) -> Reason | None:
    """Why not on a machine of which this process has a share (deepum.host.share_bytes): others run
    there, too, and a driver that hangs while it evicts is theirs as well. `managed_limit`,
    `host_memory`: settings; without host memory nothing goes beyond the card.
    """
    if share_bytes is None or managed_limit is not None or host_memory == 0:
        return None
    share = f"this process has a share of it ({size(share_bytes)} of memory, by a control group)"
    cause = f"{share}, and nothing keeps managed memory within the card"
    remedy = (
        "say how much it may be with --managed-limit SIZE (DEEPUM_MANAGED_LIMIT), or use --force "
        "if the machine is yours"
    )
    return Reason("machine", cause, remedy)


def reasons(
    gpus: Sequence[Gpu], driver: KernelDriver | None, host_bytes: int | None
) -> list[Reason]:
    """Why programs should not be run here; `host_bytes`: what is left of the host's memory, None
    where that does not matter.
    """
    found = []
    if gpus and not any(gpu.concurrent_managed_access for gpu in gpus):
        cause = (
            "has no concurrent managed access (as under WSL2, on most vGPUs, with Confidential "
            "Computing), so nothing can be moved"
        )
        found.append(
            Reason(
                gpus[0].name,
                cause,
                "use a bare-metal Linux driver, or --force, which leaves memory on the card",
            )
        )
    if (hang := known_hang(driver, gpus)) is not None and driver is not None:
        found.append(
            Reason(
                f"driver {driver.text}",
                f"{hang.what} ({hang.source})",
                "install another branch, or use --force at your own risk",
            )
        )
    if host_bytes is not None and host_bytes < LEAST_HOST_BYTES:
        cause = (
            f"only {host_bytes >> 20} MiB are available, and what leaves the GPU has to go there"
        )
        found.append(
            Reason(
                "host memory",
                cause,
                "free some or raise the container's limit to 1 GiB at least, or use --force",
            )
        )
    return found
