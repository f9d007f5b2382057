"""Is every byte right? The random programs of tests/proof, their kernels as CUDA kernels, without
deepum and under it; and, from the sections before, training whose losses and parameters have to be
the same bits as in plain device memory.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from acceptance.place import HERE, ROOT, Place
from acceptance.trainings import Deadline

sys.path.insert(0, str(ROOT / "tests" / "proof"))

from proof_batches import Batch, batches
from proof_programs import Program
from proof_running import Outcome, Runner, opened

from deepum.configuration.resolve import resolve
from deepum.configuration.settings import BY_NAME
from deepum.device import Device
from deepum.launcher.environment import child_environment

_PROGRAMS = 2000  # as many of them as there is time for
_SHORT_PROGRAMS = 60
_PLAIN = 3  # batches that run without deepum as well, so that what fails is known to be ours


class OnCard(Batch):
    """A batch as `deepum run --device cuda` runs it; the budget is a soft limit there."""

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        values = resolve(
            {name: BY_NAME[name].parse(text, name) for name, text in self.settings.items()}, {}
        )
        made, _ = child_environment(values, Device(None), base)
        made |= {name: base[name] for name in base if name.startswith("DEEPUM_")}
        return made | {"DEEPUM_SYNC": str(int(self.lock_step)), "DEEPUM_PROOF_LATE": str(self.late)}


def run(place: Place, keep: Callable[[dict[str, Any]], None], deadline: Deadline) -> None:
    """`programs`: how many were right, and what went wrong; `training`: where bits were
    compared.
    """
    findings: dict[str, Any] = {"training": _training(place), "programs": {}}
    keep(findings)
    folder = Path(place.folder) / "proof"
    folder.mkdir()
    if place.cuda_include is None:
        findings["programs"] = {"error": "cuda.h was not found"}
        keep(findings)
        return
    import deepum

    with opened(folder, Path(place.cuda_include), Path(deepum.__file__).resolve().parent) as runner:
        runner.base["DEEPUM_MANAGED_LIMIT"] = str(place.managed_limit)
        if not place.simulated:
            if os.environ.get("LD_LIBRARY_PATH"):  # perhaps where the driver is
                runner.base["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
            try:
                runner.tools = replace(runner.tools, kernels=_cuda_kernels(place, folder))
            except (OSError, subprocess.CalledProcessError) as error:
                findings["programs"] = {"error": f"nvcc: {error}"}
                keep(findings)
                return
        _programs(place, runner, lambda programs: keep(findings | {"programs": programs}), deadline)


def _cuda_kernels(place: Place, folder: Path) -> Path:
    """Compiled for this card."""
    cubin = folder / "proof-kernels.cubin"
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    include = ROOT / "tests" / "proof" / "executor"
    command = [
        nvcc,
        "-cubin",
        f"-arch={place.capability}",
        f"-I{include}",
        str(HERE / "native" / "proof_kernels.cu"),
        "-o",
        str(cubin),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return cubin


def _on_card(batch: Batch) -> Batch:
    return OnCard(
        batch.number, batch.flavour, batch.seeds, batch.settings, batch.lock_step, 0, batch.late
    )


def _fit(batch: Batch, simulated: bool) -> list[Program]:
    """What can run: on a real card no programs for two, nor such as end their contexts, which takes
    a second each.
    """
    programs = batch.programs()
    return (
        programs
        if simulated
        else [program for program in programs if program.devices == 1 and not program.resets]
    )


def _programs(
    place: Place, runner: Runner, keep: Callable[[dict[str, Any]], None], deadline: Deadline
) -> None:
    right: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    without = 0
    findings: dict[str, Any] = {}
    for batch in batches(_SHORT_PROGRAMS if place.short else _PROGRAMS, 0):
        programs = _fit(batch, place.simulated)
        if not programs:
            continue
        if deadline.left < 3:
            findings["cut"] = True
            break
        path = runner.write(programs)
        meant = runner.meant(path)
        ways = ["plain", "deepum"] if without < _PLAIN else ["deepum"]
        without += 1
        for what in ways:
            if what == "plain":
                ran = _plain(place, runner, path)
            else:
                ran = runner.under_deepum(path, batch if place.simulated else _on_card(batch))
            failing = ran.first_difference(meant, len(programs))
            right[what] += len(programs) if failing is None else failing
            if failing is not None or ran.code != 0:
                seed = programs[failing].seed if failing is not None else None
                wrong.append(
                    {
                        "what": what,
                        "batch": str(batch),
                        "seed": seed,
                        "code": ran.code,
                        "said": ran.messages[-300:],
                    }
                )
        findings |= {"right": dict(right), "wrong": wrong}
        keep(findings)
    reports = runner.reports()
    names = ("bytes_prefetched", "bytes_evicted", "bytes_invalidated")
    # Else it would prove nothing.
    findings["moved"] = {
        name: sum(session["core"][name] for session in reports.sessions) for name in names
    }
    keep(findings)


def _plain(place: Place, runner: Runner, path: Path) -> Outcome:
    """In device memory; on a real card without the shim, on the simulated one with it idle."""
    return runner.plain(path) if place.simulated else runner.bare(path)


def _training(place: Place) -> list[dict[str, Any]]:
    """Model, what ran, and whether its bits were those of plain memory."""
    found = []
    for section, rows in (("overhead", "compared"), ("budgets", "rows")):
        path = Path(place.folder) / f"{section}.json"
        content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for row in content.get(rows, []):
            if "same_bits" in row:
                where = (
                    f"{row['what']} at {row['share']} %"
                    if section == "budgets"
                    else "deepum, all fits"
                )
                found.append({"model": row["model"], "what": where, "same_bits": row["same_bits"]})
    return found
