"""Where the acceptance runs: the device, what was built, the limits that keep it safe. Sections get
it as a file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import deepum

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
# Else an installed one is found by itself.
TREE = [str(ROOT)] if Path(deepum.__file__).is_relative_to(ROOT / "deepum") else []


@dataclass(frozen=True)
class Place:
    """`device` is `cuda` or `sim:MACHINE`; `folder` is for what comes and goes; `managed_limit`
    bytes of managed memory at most, over all processes, 60 % of what was free of the card at the
    start.
    """

    device: str
    folder: str
    short: bool
    managed_limit: int
    ordinal: int = 0
    cuda_include: str | None = None
    loops: str | None = None
    deepum: bool = True  # the shim, the core and the simulated GPU are there
    torch: bool = True
    capability: str = ""  # as nvcc writes it, sm_90
    models: tuple[str, ...] = ("gpt2", "bert", "resnet", "dlrm")
    # budgets, per cent of the footprint; the most telling first, since time may run out.
    shares: tuple[int, ...] = (50, 75, 25)

    @property
    def simulated(self) -> bool:
        """True on the simulated GPU."""
        return self.device != "cuda"

    @property
    def log(self) -> Path:
        """The event log of the latest training with a budget."""
        return Path(self.folder) / "run.log"

    def write(self, path: Path) -> None:
        """For another process."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Place:
        """What `write` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """For a program of ours, without the shim: it finds this deepum, and on the simulated GPU
        its driver.
        """
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith("DEEPUM_")
        }
        kept = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        clean["PYTHONPATH"] = os.pathsep.join(
            dict.fromkeys([*TREE, str(HERE.parent), *filter(None, kept)])
        )
        clean["DEEPUM_MANAGED_LIMIT"] = str(self.managed_limit)
        clean["DEEPUM_RUNTIME_DIR"] = str(Path(self.folder) / "runtime")
        clean["DEEPUM_DAEMON_IDLE"] = "5"
        if self.loops:
            clean["DEEPUM_ACCEPTANCE_LOOPS"] = self.loops
        if self.simulated:
            clean["DEEPUM_SIM_SOFT_BUDGET"] = "1"  # a budget is a soft limit, as on a real GPU
        return clean | dict(extra or {})

    def driver_environment(self) -> dict[str, str]:
        """For a program that talks to the driver itself."""
        made = self.environment()
        if self.simulated:
            from deepum.device import choose
            from deepum.launcher.environment import device_environment

            made = device_environment(choose(self.device), made)
        return made

    def under_deepum(self, options: list[str], command: list[str]) -> list[str]:
        """`deepum run` with the options."""
        return [
            sys.executable,
            "-P",
            "-m",
            "deepum",
            "run",
            "--device",
            self.device,
            *options,
            "--",
            *command,
        ]
