"""All checks of a device, in the order in which they are told. What depends on a GPU that is not
there is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deepum import host
from deepum.device import Device
from deepum.doctor import containers, gpus, hosts, installation, pytorch
from deepum.doctor.ask import Answer, ask
from deepum.doctor.check import Check
from deepum.launcher.environment import device_environment


def examine(device: Device, environment: Mapping[str, str]) -> Iterator[Check]:
    """One after the other, as they are known; the driver is asked once."""
    yield installation.shim()
    yield installation.runtime_folder(environment)
    if not device.simulated:
        yield containers.devices()
        capabilities = containers.capabilities(environment)
        if capabilities is not None:
            yield capabilities
    answer = ask(device_environment(device, environment), device.simulated)
    yield from of_driver(
        answer,
        None if device.simulated else host.kernel_driver(),
        host.wsl() and not device.simulated,
    )
    cards = gpus.of_answer(answer)
    yield hosts.memory(cards[0].memory_bytes if cards and not device.simulated else None)
    if not device.simulated:
        yield hosts.share(environment.get("DEEPUM_MANAGED_LIMIT", ""))
    yield hosts.overcommit()
    yield hosts.limits()
    yield containers.shared_memory()
    yield pytorch.version()
    yield pytorch.allocator(environment)


def of_driver(answer: Answer, kernel: host.KernelDriver | None, wsl: bool) -> Iterator[Check]:
    """What can be said after this answer."""
    yield gpus.gpu(answer)
    if not answer.known.get("devices"):
        return
    yield gpus.driver(answer, kernel)
    yield gpus.managed_access(answer, wsl)
    for check in (gpus.moves, gpus.discard, gpus.parameters):
        yield check(answer)
    if "cupti" in answer.known:
        yield gpus.faults(answer)
    if "link" in answer.known:
        yield gpus.link(answer)
