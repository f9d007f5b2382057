"""What a run of a program under the shim needs, checked before its start."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deepum import host, paths, safety
from deepum.configuration.setting import Value
from deepum.configuration.variables import unknown_variables
from deepum.device import Device, choose
from deepum.errors import DeepumError, UsageError
from deepum.launcher import child
from deepum.launcher.environment import OPERATORS, child_environment
from deepum.sizes import size

_AUTO = "auto"  # of --remat: recomputed or moved, under unified memory


@dataclass
class Plan:
    """A run that has been validated: nothing has been started or created yet."""

    program: str
    arguments: list[str]
    values: dict[str, Value]
    device: Device
    environment: dict[str, str] = field(repr=False)
    remarks: list[str] = field(default_factory=list)


def writable(path: Path, what: str) -> Path:
    """The absolute path of a file that can be written. Raises UsageError."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 - a link stays a link, its target may not exist yet
    if path.is_dir():
        raise UsageError(f"{what} {path}: is a folder; name a file")
    if not path.parent.is_dir():
        raise UsageError(f"{what} {path}: the folder {path.parent} does not exist; create it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{what} {path}: cannot be written; choose another place")
    return path


def _replaceable(path: Path, what: str) -> Path:
    """The absolute path of a file that is written anew, by renaming. Raises UsageError."""
    path = writable(path, what)
    if path.exists() and not os.access(path.parent, os.W_OK):
        raise UsageError(f"{what} {path}: its folder cannot be written; choose another place")
    return path


def _usable_profile(path: Path, values: Mapping[str, Value]) -> Path:
    path = _replaceable(path, "profile")
    if path.exists():
        from deepum.daemon.sources import load_profile  # only here: it loads the native core

        load_profile(path, values)
    return path


def _usable_plan(path: Path, values: Mapping[str, Value]) -> Path:
    path = _replaceable(path, "plan")
    if path.exists():
        from deepum.daemon.sources import load_plan  # only here: it loads the native core

        load_plan(path, values)
    return path


def _faults_of_plans(given: Value) -> Value:
    """What `faults` is with --policy planned: plans need the times of launches. Raises UsageError
    where no plan could be made.
    """
    if given == "off":
        raise UsageError(
            "--faults off: --policy planned needs the times of launches; leave --faults out"
        )
    if importlib.util.find_spec("numpy") is None:
        raise UsageError(
            "--policy planned: needs numpy; install it with `pip install 'deepum[lab]'`, or with "
            "`deepum[plan]`, whose solver plans better"
        )
    return "times" if given is None else given


def _faults_of_operators(values: Mapping[str, Value]) -> Value:
    """What `faults` is with --tune writes=operators: clean pages are tried by the times of
    launches. Raises UsageError where declarations were of no use.
    """
    if values["advice"] not in ("duplicate", "all"):
        raise UsageError(
            "--tune writes=operators: is for clean pages; write --tune advice=all,writes=operators"
        )
    if values["faults"] == "off":
        raise UsageError(
            "--faults off: --tune writes=operators needs the times of launches; leave --faults out"
        )
    if values["remat"] is not None:
        raise UsageError(
            f"--remat {values['remat']}: cannot be combined with --tune writes=operators; leave "
            "one of them out"
        )
    return "times" if values["faults"] is None else values["faults"]


def _check_files(values: dict[str, Value]) -> None:
    """Makes paths of what is written absolute. Raises DeepumError for what cannot be, or was not
    written by us.
    """
    for name in ("record", "stats"):
        if values[name] is not None:
            values[name] = str(writable(Path(str(values[name])), name))
    if values["profile"] is not None:
        values["profile"] = str(_usable_profile(Path(str(values["profile"])), values))
    if values["plan"] is not None:
        values["plan"] = str(_usable_plan(Path(str(values["plan"])), values))
    written = [
        str(values[name])
        for name in ("record", "stats", "profile", "plan")
        if values[name] is not None
    ]
    if len(set(written)) < len(written):
        raise UsageError(
            f"{max(written, key=written.count)}: is given for two of --record, --stats, "
            f"--profile and --tune plan; give each a file of its own"
        )


def plan(command: Sequence[str], values: dict[str, Value], environment: Mapping[str, str]) -> Plan:
    """Checks all that can be checked before the start. Raises DeepumError."""
    if not command:
        raise UsageError(
            "COMMAND: is missing; say what to run, as in `deepum run -- python train.py`"
        )
    values = dict(values)
    device, device_remarks = _device(values)
    if values["sim_devices"] is not None and not device.simulated:
        raise UsageError(
            f"DEEPUM_SIM_DEVICES {values['sim_devices']}: is for a simulated GPU; add "
            f"--device sim, or use CUDA_VISIBLE_DEVICES"
        )
    if not device.is_cpu:
        paths.shim()
    if values["remat"] == _AUTO and environment.get("DEEPUM_DISABLE", "0") not in ("", "0"):
        raise UsageError(
            "--remat auto: needs unified memory, and DEEPUM_DISABLE is set; unset it, or give a "
            "size, as in --remat 8GiB"
        )
    if values["policy"] == "planned":
        values["faults"] = _faults_of_plans(values["faults"])
    elif values["plan"] is not None:
        raise UsageError(f"plan {values['plan']}: is for --policy planned; add that")
    if values["writes"] == OPERATORS:
        values["faults"] = _faults_of_operators(values)
    _check_files(values)
    program = child.find_program(command[0], environment)
    made, remarks = child_environment(values, device, environment)
    messages = [
        *unknown(environment),
        *device_remarks,
        *unsafe(device, environment, values),
        *oversized(device, values["gpu_memory"]),
        *remarks,
    ]
    return Plan(program, list(command), values, device, made, messages)


def _device(values: Mapping[str, Value]) -> tuple[Device, list[str]]:
    """The device, and what has to be said about it. Raises DeepumError."""
    wanted = str(values["device"])
    remarks: list[str] = []
    try:
        device = choose(wanted)
    except UsageError:
        raise
    except DeepumError:
        if wanted != "auto" or values["remat"] is None:
            raise
        if values["remat"] == _AUTO:
            raise
        device = choose("cpu")
        remarks = ["no working GPU: the program runs on the CPU, and --remat with it"]
    if device.is_cpu and values["remat"] is None:
        raise UsageError("device cpu: is for --remat SIZE; add that, or run without deepum")
    if device.is_cpu and values["remat"] == _AUTO:
        raise UsageError("--remat auto: is for a GPU; give a size, as in --remat 8GiB")
    if device.is_cpu:
        given = [name for name in ("gpu_memory", "record", "profile", "plan") if values[name]]
        if given:
            raise UsageError(f"{given[0]}: is for a GPU; leave it out, or use --device sim")
    return device, remarks


def unknown(environment: Mapping[str, str]) -> list[str]:
    """Warnings of variables that nothing reads."""
    return [f"warning: {line}" for line in unknown_variables(environment)]


def oversized(device: Device, budget: Value) -> list[str]:
    """What is to be said of a budget beyond a card's memory: on a real card it is none, a simulated
    one is made that large.
    """
    if budget is None:
        return []
    given = [int(part) for part in str(budget).split(",")]
    if device.machine is not None:
        from deepum.machines import named  # only here: it loads the native core

        memory = int(named(device.machine).native().memory_bytes)
        if (most := max(given)) <= memory:
            return []
        cause = (
            f"the simulated card has that much then, more than a {device.machine} has "
            f"({size(memory)})"
        )
        return [f"warning: --gpu-memory {size(most)}: {cause}"]
    found = []
    for ordinal, gpu in enumerate(device.gpus):
        if (limit := given[min(ordinal, len(given) - 1)]) > gpu.memory_bytes:
            cause = (
                f"GPU {ordinal} ({gpu.name}) has {size(gpu.memory_bytes)}, all of which may be used"
            )
            found.append(f"warning: --gpu-memory {size(limit)}: {cause}")
    return found


def unsafe(
    device: Device, environment: Mapping[str, str], values: Mapping[str, Value]
) -> list[str]:
    """What speaks against running here, to be said. Raises DeepumError unless forced to."""
    if device.is_cpu:
        return []
    if device.simulated:
        # Its host memory is addresses only. The card says what the simulated driver will
        # (docs/simulated-gpu.md).
        concurrent = environment.get("DEEPUM_SIM_CONCURRENT_MANAGED_ACCESS", "1") != "0"
        found = safety.reasons(
            [safety.Gpu(f"simulated {device.machine}", 0, (0, 0), concurrent)], None, None
        )
    else:
        found = safety.reasons(device.gpus, host.kernel_driver(), host.available_bytes())
        limits = (
            int(str(values[name])) if values[name] is not None else None
            for name in ("managed_limit", "host_memory")
        )
        share = safety.unlimited(host.share_bytes(), *limits)
        found += [share] if share is not None else []
    if found and not values["force"]:
        raise DeepumError(found[0].text)
    return [f"warning: {reason.thing}: {reason.cause}; --force was given" for reason in found]
