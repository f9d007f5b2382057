"""The environment variables that begin with DEEPUM_: which there are, and which of those given are
none of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from deepum.configuration.settings import SETTINGS

# Set by the launcher for the shim, the daemon and the simulated driver; not for people.
INTERNAL_VARIABLES = (
    "DEEPUM_STATS_DIR",
    "DEEPUM_DAEMON",
    "DEEPUM_SIM_MACHINE",
    "DEEPUM_SIM_FIGURES",
    "DEEPUM_SIM_MEMORY",
    "DEEPUM_SIM_RECORD",
    "DEEPUM_HOST_MEMORY_VIRTUAL",
    "DEEPUM_REMAT_DEVICE",
)

# Besides: of the simulated GPU, set by hand (docs/simulated-gpu.md); of builds, tests and
# benchmarks.
_OTHER_VARIABLES = (
    *(f"DEEPUM_SIM_{name}" for name in ("HOST_MEMORY", "SOFT_BUDGET", "CONCURRENT_MANAGED_ACCESS")),
    *(
        f"DEEPUM_SIM_{name}"
        for name in ("RANDOM_EVICTION", "MANAGED_OFFSET", "UVM_TOOLS", "LIBRARIES")
    ),
    *(f"DEEPUM_{name}" for name in ("CUDA_INCLUDE", "SANITIZE", "SHIM", "TORCHES", "KEEP_TORCHES")),
)
_OF_TESTS = ("DEEPUM_TEST_", "DEEPUM_PROOF_", "DEEPUM_ACCEPTANCE_")


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """A line for each DEEPUM_* variable that nothing reads, with the nearest name: mistyped, it
    would be ignored in silence.
    """
    known = [*(setting.variable for setting in SETTINGS), *INTERNAL_VARIABLES, *_OTHER_VARIABLES]
    lines = []
    for name in sorted(environment):
        if name.startswith("DEEPUM_") and name not in known and not name.startswith(_OF_TESTS):
            near = difflib.get_close_matches(name, known, 1, 0.8)
            lines.append(
                f"{name}: there is no such variable; "
                f"{f'did you mean {near[0]}?' if near else 'see docs/configuration.md'}"
            )
    return lines
