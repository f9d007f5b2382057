"""What is kept of an ablation: a JSON file of cases, and beside it, while it is being made, a file
for each case.

    {"version": 3, "cases": {"mechanisms: gpt2-xl b5 on v100-16gb": {
       "what", "case", "job", "script", "waiting", "machine" (as it was run), "memory_bytes",
       "steps", "warm_up", "mode" (gated, lock-step), "costs" (kind, expected, unkind), "sparse",
       "rows": {"on-demand": {"options", "date", "deepum", "python", "steps_ms", "step_ms",
                              "a_step": {"faults", "bytes_h2d", ...}, "peak_allocated_bytes",
                              "peak_resident_bytes", "bytes_discarded", "speed_up", "of_bound"},
                ...},
       "failed": {ROW: CAUSE}, "bound_ms", "footprint_bytes"}}}

Milliseconds are virtual, those of a step and the counts of `a_step` means over the steps after
`warm_up`. `bound_ms` is that of main_job.py, for `sparse` cases that of computing alone; it and
what depends on it are null where the run with unlimited memory is missing.
"""

from __future__ import annotations

import datetime
import json
import platform
import shutil
from pathlib import Path
from typing import Any

from ablation_cases import ON_DEMAND, UNLIMITED, Case
from main_job import JobError, Run, bound

import deepum

VERSION = 3
HEAD = (
    "what",
    "case",
    "job",
    "script",
    "waiting",
    "machine",
    "memory_bytes",
    "steps",
    "warm_up",
    "mode",
    "costs",
)


def figures(one: Run, options: list[str], warm_up: int) -> dict[str, Any]:
    """What is kept of a run."""
    return {
        "options": options,
        "date": datetime.date.today().isoformat(),
        "deepum": deepum.__version__,
        "python": platform.python_version(),
        "steps_ms": [step.ms for step in one.steps],
        "step_ms": one.mean_ms(warm_up),
        "a_step": one.means(warm_up),
        "peak_allocated_bytes": one.peak_allocated_bytes,
        "peak_resident_bytes": one.statistics.get("peak_resident_bytes"),
        "bytes_discarded": one.statistics.get("bytes_discarded"),
    }


def derive(record: dict[str, Any]) -> None:
    """Fills in what follows from the runs."""
    rows = record["rows"]
    unlimited, base = rows.get(UNLIMITED), rows.get(ON_DEMAND)
    record["footprint_bytes"] = unlimited and unlimited["peak_allocated_bytes"]
    used = None if record["sparse"] else record["footprint_bytes"]  # in each step
    record["bound_ms"] = (
        unlimited
        and bound(unlimited["step_ms"], used, record["machine"], record["memory_bytes"])["bound_ms"]
    )
    for one in rows.values():
        one["speed_up"] = base and base["step_ms"] / one["step_ms"]
        one["of_bound"] = record["bound_ms"] and one["step_ms"] / record["bound_ms"]


class Results:
    """The file and its parts. Without a path nothing is kept. Raises JobError for a file of
    something else.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.cases: dict[str, dict[str, Any]] = {}
        if path is None:
            return
        if path.exists():
            self.cases = _read(path)["cases"]
        for part in sorted(self.parts.glob("*.json")):
            record = _read(part)["case"]
            self.cases[f"{record['what']}: {record['case']}"] = record

    @property
    def parts(self) -> Path:
        """The folder of files by case."""
        assert self.path is not None
        return self.path.with_suffix(".parts")

    def open(
        self,
        what: str,
        case: Case,
        machine: dict[str, Any],
        memory_bytes: int,
        mode: str,
        costs: str,
    ) -> dict[str, Any]:
        """The record of a case, with the rows that were run as it is now."""
        head = (
            what,
            case.name,
            case.job,
            list(case.script),
            case.waiting,
            machine,
            memory_bytes,
            case.steps,
            case.warm_up,
            mode,
            costs,
        )
        record = dict(zip(HEAD, head, strict=True)) | {
            "sparse": case.sparse,
            "rows": {},
            "failed": {},
        }
        kept = self.cases.get(f"{what}: {case.name}")
        if kept is not None and all(kept.get(name) == record[name] for name in HEAD):
            record["rows"] = kept["rows"]
        self.cases[f"{what}: {case.name}"] = record
        return record

    def keep(self, record: dict[str, Any]) -> None:
        """Writes the case's part: after each run."""
        derive(record)
        if self.path is not None:
            self.parts.mkdir(parents=True, exist_ok=True)
            slug = "".join(
                c if c.isalnum() or c in "-." else "-" for c in f"{record['what']} {record['case']}"
            )
            _write(self.parts / f"{slug}.json", {"version": VERSION, "case": record})

    def merge(self) -> None:
        """Writes the file, with what others have added to it and to its parts meanwhile; the parts
        go.
        """
        if self.path is not None:
            self.cases = Results(self.path).cases | self.cases
            _write(self.path, {"version": VERSION, "cases": dict(sorted(self.cases.items()))})
            shutil.rmtree(self.parts, ignore_errors=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        sound = document["version"] == VERSION and ("cases" in document or "case" in document)
    except (OSError, ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise JobError(
            f"{path}: is not a file of results of this script, version {VERSION}; give "
            f"another, or remove it"
        )
    return dict(document)


def _write(path: Path, document: dict[str, Any]) -> None:
    """Whole or not at all."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    new.replace(path)
