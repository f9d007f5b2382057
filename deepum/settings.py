"""Every setting, defined once: its name, environment variable, flag, kind, default, range and help.

Precedence: flag, then environment, then the file given by `--config`, then the default. Sizes are bytes once parsed; text sizes are a
number with a unit (`8GiB`, `8G`, `512MiB`, `1.5GiB`, plain bytes). docs/configuration.md is checked against this file by a test.
The shim reads those of readers "shim" itself (native/runtime/session.hpp), the daemon gets all of them as text in the hello.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deepum.errors import UsageError
from deepum.plain_rules import SHARING_LIBRARIES, parse_rules
from deepum.sizes import format_size, parse_size

Value = int | bool | str | None

_TRUE = {"1", "true", "yes", "on"}
_MOST_DEVICES = 16  # DEEPUM_MAX_DEVICES, native/wire/records.h
_FALSE = {"0", "false", "no", "off", ""}


@dataclass(frozen=True)
class Setting:
    """One setting. `kind` is size, sizes (one a GPU), count, boolean, choice, path, text or rules (plain_rules.py).

    `low` and `high` are inclusive and in the kind's unit.
    """

    name: str
    kind: str
    help: str
    default: Value = None
    readers: tuple[str, ...] = ("daemon",)  # of launcher, shim, daemon
    flag: bool = True
    low: int = 0
    high: int = (1 << 63) - 1
    choices: tuple[str, ...] = ()
    unset: str = ""  # what holds while it is not set, for those without a default

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"DEEPUM_{self.name.upper()}"

    @property
    def option(self) -> str:
        """The flag of `deepum run`."""
        return f"--{self.name.replace('_', '-')}"

    def parse(self, text: str, source: str) -> Value:
        """The value of a text; `source` names where it came from in the error. Raises UsageError."""
        try:
            return self._value(text)
        except ValueError as error:
            raise UsageError(f"{source}: {error}") from None

    def _value(self, text: str) -> Value:
        if self.kind == "boolean":
            if text.strip().lower() not in _TRUE | _FALSE:
                raise ValueError(f"'{text}' is neither true nor false; write 1 or 0")
            return text.strip().lower() in _TRUE
        if self.kind == "choice":
            if text not in self.choices:
                raise ValueError(f"'{text}' is unknown; choose one of {', '.join(self.choices)}")
            return text
        if self.kind in ("path", "text"):
            if not text or "\0" in text:
                raise ValueError("is empty; give a value or leave it out")
            return text
        if self.kind == "rules":
            return parse_rules(text)
        if self.kind == "sizes":
            return self._sizes(text)
        if self.kind == "size":
            value = parse_size(text)
        else:
            if not re.fullmatch(r"-?\d{1,18}", text.strip()):
                raise ValueError(f"'{text}' is not a whole number; write one like {self.default if self.default is not None else 1}")
            value = int(text)
        if not self.low <= value <= self.high:
            raise ValueError(f"'{text}' is out of range; give {self.range_text}")
        return value

    def _sizes(self, text: str) -> Value:
        """Bytes; of several sizes, which are for one GPU each and the last for all further ones, the text with commas between."""
        parts = text.split(",")
        values = [parse_size(part) for part in parts]
        if len(values) > _MOST_DEVICES:
            raise ValueError(f"'{text}' has more than {_MOST_DEVICES} sizes; give one for each GPU")
        for part, value in zip(parts, values, strict=True):
            if not self.low <= value <= self.high:
                raise ValueError(f"'{part}' is out of range; give {self.range_text}")
        return values[0] if len(values) == 1 else ",".join(map(str, values))

    @property
    def range_text(self) -> str:
        """What may be given, in words."""
        shown = format_size if self.kind in ("size", "sizes") else str
        if self.kind == "choice":
            return ", ".join(self.choices)
        if self.kind == "sizes":
            return f"at least {shown(self.low)}; several with commas between: one for each GPU, the last for all further ones"
        if self.kind not in ("size", "count"):
            words = {"boolean": "0 or 1", "text": "text", "rules": "sizes, size ranges, libraries, LIBRARY:SIZES, none"}
            return words.get(self.kind, "a path")
        return f"at least {shown(self.low)}" if self.high >= (1 << 63) - 1 else f"{shown(self.low)} to {shown(self.high)}"

    def text(self, value: Value) -> str:
        """The value as an environment variable carries it; sizes in bytes."""
        return str(int(value)) if isinstance(value, bool) else str(value)


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "device",
        "text",
        "where the program runs: auto and cuda are the real GPU, sim and sim:MACHINE a simulated one (see `deepum machines`)",
        "auto",
        ("launcher",),
    ),
    Setting(
        "gpu_memory",
        "sizes",
        "GPU memory that the program may occupy, of each GPU; on the simulated GPU, the memory of the card",
        readers=("launcher", "shim"),
        low=64 << 20,
        unset="the whole card",
    ),
    Setting(
        "gpu_reserve",
        "size",
        "GPU memory of each GPU that is left free for what the driver, kernels' code and libraries take later",
        readers=("shim",),
        low=0,
        unset="128MiB, a 16th of what was free at most; 0 on the simulated GPU",
    ),
    Setting(
        "sim_devices",
        "count",
        "simulated GPUs of a machine; each process has its own",
        readers=("launcher",),
        low=1,
        high=_MOST_DEVICES,
        unset="1",
    ),
    Setting(
        "host_memory",
        "size",
        "host memory that allocations may spill to beyond the GPU's",
        readers=("shim",),
        low=0,
        unset="90 % of what is available at the first allocation; 256GiB on the simulated GPU",
    ),
    Setting(
        "force",
        "boolean",
        "run where deepum would refuse to: no concurrent managed access, too little host memory, a driver known to hang, a share of a "
        "machine without a limit",
        False,
        ("launcher",),
    ),
    Setting(
        "policy",
        "choice",
        "on-demand only watches; correlation prefetches and pre-evicts",
        "correlation",
        choices=("on-demand", "correlation"),
    ),
    Setting(
        "prediction",
        "choice",
        "what is launched next: what followed the same launches before (history), or the paper's execution correlation table (tables)",
        "history",
        choices=("tables", "history"),
    ),
    Setting("prefetch_degree", "count", "launches that the chain runs ahead (N)", 8192, low=0, high=1 << 20),
    Setting("profile", "path", "learned tables: read at the start if the file exists, written at the end", unset="nothing is kept"),
    Setting("record", "path", "write the session's events to this file", unset="nothing is recorded"),
    Setting(
        "stats", "path", "write the run's statistics to this file, as JSON", readers=("launcher",), unset="only the summary is printed"
    ),
    Setting(
        "eviction_order",
        "choice",
        "which block outside the predicted window is evicted first",
        "furthest-next-use",
        choices=("least-recently-migrated", "oldest-last-use", "furthest-next-use"),
    ),
    Setting("execution_ids", "count", "most execution IDs kept", 1 << 16, low=16, high=1 << 24),
    Setting("execution_records", "count", "records (prev3, prev2, prev1, next) kept for an execution ID", 16, low=1, high=1 << 12),
    Setting("block_table_rows", "count", "rows of the UM-block correlation table of an execution ID", 2048, low=1, high=1 << 20),
    Setting("block_table_ways", "count", "ways of a row of that table", 2, low=1, high=1 << 6),
    Setting("block_table_successors", "count", "successors kept for an entry of that table", 4, low=1, high=1 << 6),
    Setting(
        "chain_steps",
        "count",
        "most launches by which the chain is extended, and most that are placed, at one event",
        8,
        low=1,
        high=1 << 16,
    ),
    Setting("headroom_blocks", "count", "UM blocks (2 MiB) kept free on a device", 16, low=0, high=1 << 20),
    Setting(
        "pre_eviction",
        "count",
        "evict ahead of need: 1 yes, 0 no, the driver evicts for what is fetched (for comparison)",
        1,
        low=0,
        high=1,
    ),
    Setting(
        "prefetch",
        "count",
        "fetch what launches will use: 1 yes, 0 no, kernels fault on it while evictions go on (for comparison)",
        1,
        ("shim",),
        low=0,
        high=1,
    ),
    Setting(
        "gates",
        "count",
        "under pressure, without --sync, launches wait on their streams for what is fetched for them: 1 yes, 0 no, they fault on what has "
        "not come yet",
        1,
        ("shim",),
        low=0,
        high=1,
    ),
    Setting(
        "confidence_launches",
        "count",
        "most launches for which the belief that a block is resident holds under pressure; an iteration, if that is shorter",
        4096,
        low=1,
        high=1 << 30,
    ),
    Setting(
        "invalidation",
        "count",
        "drop the content of dead PyTorch blocks instead of copying it: 1 yes, 0 no",
        1,
        low=0,
        high=1,
    ),
    Setting(
        "advice",
        "choice",
        "what the core advises the driver: that tables of which kernels use a few rows stay on the host, and tensors of which they use "
        "little once an iteration (remote); that what is read is on "
        "the host as well, so that it leaves without a copy (duplicate: needs observed faults); both (all), or nothing",
        "remote",
        choices=("none", "remote", "duplicate", "all"),
    ),
    Setting("launch_queue", "count", "launches that the driver lets the host be ahead of the GPU", 1024, low=0, high=1 << 20),
    Setting(
        "table_mebibytes", "count", "most memory for learned tables, MiB; execution IDs longest unused go first", 256, low=1, high=1 << 20
    ),
    Setting(
        "sync",
        "boolean",
        "each launch waits on the host for its decisions",
        readers=("launcher", "shim"),
        unset="1 on the simulated GPU, 0 on a GPU",
    ),
    Setting("managed_limit", "size", "most managed memory over all of the user's processes on a GPU", readers=("shim",), unset="no limit"),
    Setting("managed_threshold", "size", "allocations smaller than this stay device memory", 1 << 20, ("shim",)),
    Setting(
        "plain_memory",
        "rules",
        "which others stay device memory, since they are shared with other processes or devices: by size, by the library that asks "
        "(docs/sharing.md); adds to the default, or with none takes its place",
        readers=("shim",),
        unset=", ".join(SHARING_LIBRARIES),
    ),
    Setting(
        "faults",
        "choice",
        "observe the GPU's faults: while tables still learn (auto), always, or never",
        "off",
        ("shim",),
        choices=("auto", "on", "off"),
    ),
    Setting(
        "fault_source",
        "choice",
        "what faults are observed through: CUPTI, or uvm-tools where CUPTI is missing, refuses, or is a profiler's (auto); or that one "
        "alone",
        "auto",
        ("shim",),
        choices=("auto", "cupti", "uvm-tools"),
    ),
    Setting("fault_interval", "count", "launches between two looks for observed faults, in lock-step", 64, ("shim",), low=1, high=1 << 20),
    Setting("marker_interval", "count", "launches of a stream between two progress markers", 16, ("shim",), low=1, high=1 << 20),
    Setting(
        "moves",
        "choice",
        "without --sync, how a move waits for what it follows: in the driver's queue (stream); on the host, which then makes it (host); or "
        "on the host where the driver blocks a thread that queues it (auto)",
        "auto",
        ("shim",),
        choices=("auto", "stream", "host"),
    ),
    Setting("handover_bytes", "size", "moves handed to the driver and not yet complete, a direction", 64 << 20, ("shim",), low=2 << 20),
    Setting("log", "count", "what the shim says: 0 nothing, 1 warnings, 2 information, 3 everything", 1, ("shim",), high=3),
    Setting("disable", "boolean", "the shim does nothing", False, ("shim",), flag=False),
    Setting(
        "daemon_idle",
        "count",
        "seconds without a session after which a daemon started on demand ends",
        60,
        ("daemon",),
        flag=False,
        high=10**9,
    ),
    Setting(
        "daemon_silence",
        "count",
        "seconds after which a daemon that takes nothing is given up, and the program goes on without",
        10,
        ("shim",),
        flag=False,
        low=1,
        high=10**6,
    ),
    Setting(
        "runtime_dir",
        "path",
        "folder of the daemon's socket, mode 0700",
        readers=("shim", "daemon"),
        flag=False,
        unset="$XDG_RUNTIME_DIR/deepum, else /tmp/deepum-UID",
    ),
)
BY_NAME: dict[str, Setting] = {setting.name: setting for setting in SETTINGS}

# Set by the launcher for the shim, the daemon and the simulated driver; not for people.
INTERNAL_VARIABLES = (
    "DEEPUM_STATS_DIR",
    "DEEPUM_DAEMON",
    "DEEPUM_SIM_MACHINE",
    "DEEPUM_SIM_FIGURES",
    "DEEPUM_SIM_MEMORY",
    "DEEPUM_SIM_RECORD",
    "DEEPUM_HOST_MEMORY_VIRTUAL",
)

# Besides: of the simulated GPU, set by hand (docs/simulated-gpu.md); of builds, tests and benchmarks.
_OTHER_VARIABLES = (
    *(f"DEEPUM_SIM_{name}" for name in ("HOST_MEMORY", "SOFT_BUDGET", "CONCURRENT_MANAGED_ACCESS")),
    *(f"DEEPUM_SIM_{name}" for name in ("RANDOM_EVICTION", "MANAGED_OFFSET", "UVM_TOOLS", "LIBRARIES")),
    *(f"DEEPUM_{name}" for name in ("CUDA_INCLUDE", "SANITIZE", "SHIM", "TORCHES", "KEEP_TORCHES")),
)
_OF_TESTS = ("DEEPUM_TEST_", "DEEPUM_PROOF_", "DEEPUM_ACCEPTANCE_")


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """A line for each DEEPUM_* variable that nobody reads, with the nearest name: mistyped, it would be ignored in silence."""
    known = [*(setting.variable for setting in SETTINGS), *INTERNAL_VARIABLES, *_OTHER_VARIABLES]
    lines = []
    for name in sorted(environment):
        if name.startswith("DEEPUM_") and name not in known and not name.startswith(_OF_TESTS):
            near = difflib.get_close_matches(name, known, 1, 0.8)
            lines.append(f"{name}: there is no such variable; {f'did you mean {near[0]}?' if near else 'see docs/configuration.md'}")
    return lines


def from_environment(environment: Mapping[str, str], reader: str | None = None) -> dict[str, Value]:
    """Settings (of one reader) given by DEEPUM_* variables; an empty variable counts as not set. Raises UsageError."""
    given = [s for s in SETTINGS if environment.get(s.variable, "") != "" and (reader is None or reader in s.readers)]
    return {s.name: s.parse(environment[s.variable], s.variable) for s in given}


def from_file(path: Path) -> dict[str, Value]:
    """Settings of a TOML file, by name, dashes or underscores. Raises UsageError."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{path}: {cause}; give a readable TOML file") from None
    values: dict[str, Value] = {}
    for key, value in table.items():
        setting = BY_NAME.get(key.replace("-", "_"))
        if setting is None or isinstance(value, (dict, list)):
            raise UsageError(f"{path}: '{key}' is no setting; see docs/configuration.md for their names")
        values[setting.name] = setting.parse(str(value), f"{path}: {key}")
    return values


def resolve(
    flags: Mapping[str, Value], environment: Mapping[str, str], file: Path | None = None, reader: str | None = None
) -> dict[str, Value]:
    """All settings by name, defaults included; of the environment only those of one reader, if named. Raises UsageError."""
    values: dict[str, Value] = {setting.name: setting.default for setting in SETTINGS}
    if file is not None:
        values |= from_file(file)
    values |= from_environment(environment, reader)
    return values | dict(flags)
