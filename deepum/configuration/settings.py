"""Every setting, defined once: its name, environment variable, kind, default, range and help.

`OPTIONS` are options of `deepum run`. `TUNABLES`, which measure or compare what the core and the
mover do, are set by its `--tune`. `VARIABLES` have an environment variable alone. `VARIED_BY_TESTS`
are constants but for tests, which set them by their variables. docs/configuration.md is checked
against this file by a test. The shim reads those of readers "shim" itself
(native/runtime/shim_settings.cpp), the daemon gets all of them as text in the hello.
"""

from __future__ import annotations

from deepum.configuration.plain_rules import SHARING_LIBRARIES
from deepum.configuration.setting import MOST_DEVICES, Setting

OPTIONS: tuple[Setting, ...] = (
    Setting(
        "device",
        "text",
        (
            "where the program runs: auto and cuda are the real GPU, sim and sim:MACHINE a "
            "simulated one (see `deepum machines`), cpu none (for --remat)"
        ),
        "auto",
        ("launcher",),
    ),
    Setting(
        "gpu_memory",
        "sizes",
        (
            "GPU memory that the program may occupy, of each GPU; on the simulated GPU, the "
            "memory of the card"
        ),
        readers=("launcher", "shim"),
        low=64 << 20,
        unset="the whole card",
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
        "run where deepum would refuse to: no concurrent managed access, too little host memory, a "
        "driver known to hang, a share of a machine without a limit",
        False,
        ("launcher",),
    ),
    Setting(
        "policy",
        "choice",
        (
            "on-demand only watches; correlation prefetches and pre-evicts; planned also follows "
            "plans of the iteration, made beside the program"
        ),
        "correlation",
        ("launcher", "daemon"),
        choices=("on-demand", "correlation", "planned"),
    ),
    Setting(
        "sync",
        "boolean",
        "each launch waits on the host for its decisions",
        readers=("launcher", "shim"),
        unset="1 on the simulated GPU, 0 on a GPU",
    ),
    Setting(
        "faults",
        "choice",
        (
            "observe the GPU's faults: while tables still learn (auto), always, or never, but when "
            "launches end, while plans are made (times)"
        ),
        readers=("launcher", "shim"),
        choices=("auto", "on", "off", "times"),
        unset="off; times with --policy planned or --tune writes=operators",
    ),
    Setting(
        "managed_limit",
        "size",
        "most managed memory over all of the user's processes on a GPU",
        readers=("shim",),
        unset="no limit",
    ),
    Setting(
        "plain_memory",
        "rules",
        "which allocations stay device memory, since they are shared with other processes or "
        "devices: by size, by the library that asks "
        "(docs/sharing.md); adds to the default, or with none takes its place",
        readers=("shim",),
        unset=", ".join(SHARING_LIBRARIES),
    ),
    Setting(
        "remat",
        "size",
        "memory that the tensors of a PyTorch program may take on its device: beyond that they are "
        "computed again when they are used, instead of kept; auto computes again or moves, "
        "whichever is faster (docs/rematerialise.md)",
        readers=("launcher", "program"),
        low=1 << 20,
        choices=("auto",),
        unset="nothing is computed again",
    ),
    Setting(
        "profile",
        "path",
        "learned tables: read at the start if the file exists, written at the end",
        unset="nothing is kept",
    ),
    Setting(
        "record", "path", "write the session's events to this file", unset="nothing is recorded"
    ),
    Setting(
        "stats",
        "path",
        "write the run's statistics to this file, as JSON",
        readers=("launcher",),
        unset="only the summary is printed",
    ),
    Setting(
        "log",
        "count",
        "what the shim says: 0 nothing, 1 warnings, 2 information, 3 everything",
        1,
        ("shim",),
        high=3,
    ),
)

TUNABLES: tuple[Setting, ...] = (
    Setting(
        "plan",
        "path",
        (
            "with --policy planned, the plan that is kept: followed from the start if the file "
            "exists, written at the end"
        ),
        readers=("launcher", "daemon"),
        unset="nothing is kept",
    ),
    Setting(
        "prediction",
        "choice",
        (
            "what predicts the next launch: the launches before it (history), or the paper's "
            "execution correlation table (tables)"
        ),
        "history",
        choices=("tables", "history"),
    ),
    Setting(
        "prefetch_degree",
        "count",
        "launches that the chain runs ahead (N)",
        8192,
        low=0,
        high=1 << 20,
    ),
    Setting(
        "eviction_order",
        "choice",
        "which block outside the predicted window is evicted first",
        "furthest-next-use",
        choices=("least-recently-migrated", "oldest-last-use", "furthest-next-use"),
    ),
    Setting(
        "pre_eviction",
        "count",
        "1: evict ahead of need; 0: the driver evicts for what is fetched",
        1,
        low=0,
        high=1,
    ),
    Setting(
        "invalidation",
        "count",
        "1: drop the content of dead PyTorch blocks; 0: copy it",
        1,
        low=0,
        high=1,
    ),
    Setting(
        "advice",
        "choice",
        (
            "what the driver is advised: what is used by the row stays on the host (remote), what "
            "is read is there, too (duplicate)"
        ),
        "remote",
        choices=("none", "remote", "duplicate", "all"),
    ),
    Setting(
        "writes",
        "choice",
        (
            "how it becomes known what launches write, for advice=all: by observed faults, or by "
            "PyTorch's operators, which declare what they only read while that is learned"
        ),
        "faults",
        ("launcher", "daemon", "program"),
        choices=("faults", "operators"),
    ),
    Setting(
        "headroom_blocks",
        "count",
        "UM blocks (2 MiB) kept free on a device",
        16,
        low=0,
        high=1 << 20,
    ),
    Setting(
        "launch_queue",
        "count",
        "launches that the driver lets the host be ahead of the GPU",
        1024,
        low=0,
        high=1 << 20,
    ),
    Setting(
        "table_mebibytes",
        "count",
        "most memory for learned tables, MiB; execution IDs longest unused go first",
        256,
        low=1,
        high=1 << 20,
    ),
    Setting(
        "prefetch",
        "count",
        "1: fetch what launches will use; 0: kernels fault on it, evictions go on",
        1,
        ("shim",),
        low=0,
        high=1,
    ),
    Setting(
        "gates",
        "count",
        (
            "1: under pressure without --sync, launches wait for what is fetched for them; 0: "
            "they fault on what has not come yet"
        ),
        1,
        ("shim",),
        low=0,
        high=1,
    ),
    Setting(
        "moves",
        "choice",
        (
            "how a move waits without --sync: in the driver's queue (stream), on the host (host), "
            "on the host if the driver blocks (auto)"
        ),
        "auto",
        ("shim",),
        choices=("auto", "stream", "host"),
    ),
    Setting(
        "gpu_reserve",
        "size",
        (
            "GPU memory left free on each GPU for what the driver, kernels' code and libraries "
            "take later"
        ),
        readers=("shim",),
        low=0,
        unset="128MiB, a 16th of what was free at most; 0 on the simulated GPU",
    ),
    Setting(
        "fault_source",
        "choice",
        "what observes faults: CUPTI, uvm-tools, or uvm-tools where CUPTI cannot be used (auto)",
        "auto",
        ("shim",),
        choices=("auto", "cupti", "uvm-tools"),
    ),
)

VARIABLES: tuple[Setting, ...] = (
    Setting(
        "sim_devices",
        "count",
        "simulated GPUs of a machine; each process has its own",
        readers=("launcher",),
        low=1,
        high=MOST_DEVICES,
        unset="1",
    ),
    Setting("disable", "boolean", "the shim does nothing", False, ("shim",)),
    Setting(
        "daemon_idle",
        "count",
        "seconds without a session after which a daemon started on demand ends",
        60,
        ("daemon",),
        high=10**9,
    ),
    Setting(
        "metrics",
        "count",
        "port of the loopback interface on which a daemon tells metrics (docs/metrics.md); 0: none",
        0,
        ("daemon",),
        high=65535,
    ),
    Setting(
        "daemon_silence",
        "count",
        (
            "seconds after which a daemon that takes nothing is given up, and the program goes on "
            "without"
        ),
        10,
        ("shim",),
        low=1,
        high=10**6,
    ),
    Setting(
        "runtime_dir",
        "path",
        "folder of the daemon's socket, mode 0700",
        readers=("shim", "daemon"),
        unset="$XDG_RUNTIME_DIR/deepum, else /tmp/deepum-UID",
    ),
)

VARIED_BY_TESTS: tuple[Setting, ...] = (
    Setting(
        "chain_steps",
        "count",
        "most launches by which the chain is extended, and most that are placed, at one event",
        8,
        low=1,
        high=1 << 16,
    ),
    Setting(
        "confidence_launches",
        "count",
        (
            "most launches for which the belief that a block is resident holds under pressure; an "
            "iteration, if that is shorter"
        ),
        4096,
        low=1,
        high=1 << 30,
    ),
    Setting(
        "managed_threshold",
        "size",
        "allocations smaller than this stay device memory",
        1 << 20,
        ("shim",),
    ),
    Setting(
        "marker_interval",
        "count",
        "launches of a stream between two progress markers",
        16,
        ("shim",),
        low=1,
        high=1 << 20,
    ),
    Setting(
        "handover_bytes",
        "size",
        "moves handed to the driver and not yet complete, a direction",
        64 << 20,
        ("shim",),
        low=2 << 20,
    ),
    Setting(
        "fault_interval",
        "count",
        "launches between two looks for observed faults, in lock-step",
        64,
        ("shim",),
        low=1,
        high=1 << 20,
    ),
)

SETTINGS: tuple[Setting, ...] = (*OPTIONS, *TUNABLES, *VARIABLES, *VARIED_BY_TESTS)
BY_NAME: dict[str, Setting] = {setting.name: setting for setting in SETTINGS}
