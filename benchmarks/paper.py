"""The tables of DeepUM's evaluation, simulated: what the published system, others and ours come to,
beside the lower bound.

    python benchmarks/paper.py --json benchmarks/results/paper-simulated.json
        --page docs/research/paper.md
    python benchmarks/paper.py --only ablation,degrees --json FILE   # the others as FILE has them
    python benchmarks/paper.py --tiny                                # small models, to try it

    speed-ups   over on-demand paging, V100 with 32 and 16 GB; tables, faults and energy are of the
                same simulations
    batches     the largest batch with 128 and 512 GiB of host memory
    ablation    with one mechanism more from column to column
    degrees     by prefetch degree N

Every table is printed; `--json` keeps what they are made of, and what made it; `--page` puts them
between the marks of a page. All cores are used (`--jobs`). A simulation that fails is told, and
missing in its table. Needs PyTorch (`pip install 'deepum[torch]'`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import paper_cases as cases
from paper_batches import UNIFIED, WITH_CARD, Answer, Question, largest
from paper_energy import V100
from paper_tables import SECTIONS

import deepum
from deepum.errors import DeepumError
from deepum.machines import machines
from deepum.simulate.comparison import Comparison
from deepum.simulate.point import Point, simulate
from deepum.simulate.policies import BY_NAME
from deepum.simulate.sweep import Failure, sweep

VERSION = 1
_HOSTS = (128 << 30, 512 << 30)
_TINY_HOSTS = (1 << 30, 2 << 30)
_DIGITS = 7
# Of what is run, in the results.
_KEYS = {
    "speed-ups": "simulations",
    "batches": "batches",
    "ablation": "ablation",
    "degrees": "degrees",
}

P = TypeVar("P")
R = TypeVar("R")


def _run(
    what: str, task: Callable[[P], R], points: Sequence[P], jobs: int | None, failed: list[str]
) -> list[tuple[P, R]]:
    found = []
    for done in sweep(task, points, jobs, label=what):
        if isinstance(done.result, Failure):
            failed.append(done.result.line)
            print(done.result.line, file=sys.stderr, flush=True)
        else:
            found.append((done.point, done.result))
    return found


def _rounded(figures: Any) -> Any:
    """Seven digits are more than a table shows."""
    if isinstance(figures, float):
        return float(f"{figures:.{_DIGITS}g}")
    if isinstance(figures, dict):
        return {key: _rounded(value) for key, value in figures.items()}
    return [_rounded(value) for value in figures] if isinstance(figures, list) else figures


def _as_json(found: Sequence[tuple[Point, Comparison]]) -> list[dict[str, Any]]:
    return [_rounded(one.as_json()) for _, one in found]


def questions(tiny: bool) -> list[Question]:
    """Which largest batches are asked for. Tiny models would need huge ones to fill a card."""
    workloads, hosts, limited_by_card = (
        (cases.TINY, _TINY_HOSTS, ())
        if tiny
        else (cases.MODELS, _HOSTS, (WITH_CARD, *cases.SWAPPING))
    )
    return [
        Question(name, policy, host, cases.MACHINES[0])
        for name in workloads
        for host in hosts
        for policy in (UNIFIED, *limited_by_card)
    ]


def _answered(found: Sequence[tuple[Question, Answer]]) -> list[dict[str, Any]]:
    return [asdict(question) | asdict(answer) for question, answer in found]


def _merged(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points that differ in policies alone, as one simulation."""
    merged: dict[str, dict[str, Any]] = {}
    for part in parts:
        known = merged.setdefault(
            f"{part['workload']} {part['machine']} {part['memory_bytes']}", part
        )
        known["policies"] |= part["policies"]
    return list(merged.values())


def made(section: str, tiny: bool, jobs: int | None, failed: list[str]) -> list[dict[str, Any]]:
    """What a section's tables are made of."""
    if section == "batches":
        return _answered(_run(section, largest, questions(tiny), jobs, failed))
    points = {"speed-ups": cases.speed_ups, "ablation": cases.ablation, "degrees": cases.degrees}[
        section
    ](tiny)
    return _merged(_as_json(_run(section, simulate, points, jobs, failed)))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def head() -> dict[str, Any]:
    """What made it."""
    named = [*(BY_NAME[name] for name in cases.COMPARED), *cases.ABLATION]
    return {
        "version": VERSION,
        "date": datetime.date.today().isoformat(),
        "deepum": deepum.__version__,
        "python": platform.python_version(),
        "torch": _version("torch"),
        "machines": {one.name: asdict(one) for one in machines() if one.name in cases.MACHINES},
        "compared": list(cases.COMPARED),
        "policies": {
            one.name: {"description": one.description, "settings": dict(one.changes)}
            for one in named
        },
        "power": V100.as_json(),
    }


def written(results: dict[str, Any]) -> str:
    """The file's text: a line for each simulation."""
    lists = {
        key: value
        for key, value in results.items()
        if isinstance(value, list) and key != "compared"
    }
    text = json.dumps(
        {key: value for key, value in results.items() if key not in lists}, indent=1
    ).removesuffix("\n}")
    for key, rows in lists.items():
        text += (
            f",\n {json.dumps(key)}: [\n"
            + ",\n".join(f"  {json.dumps(row)}" for row in rows)
            + "\n ]"
        )
    return text + "\n}\n"


def fill(text: str, results: dict[str, Any]) -> str:
    """A page with the tables between its marks `<!-- paper: SECTION -->` and `<!-- end -->`. Raises
    DeepumError without them.
    """
    for section, (_, _, table) in SECTIONS.items():
        before, mark, rest = text.partition(f"<!-- paper: {section} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not mark or not end:
            raise DeepumError(
                f"the page: no place is marked for {section}; put `<!-- paper: {section} -->` "
                f"and `<!-- end -->` there"
            )
        text = before + mark + "\n".join(table(results)) + "\n" + end + after
    return text


def _kept(path: Path | None) -> dict[str, Any]:
    if path is None or not path.exists():
        return {}
    try:
        document = dict(json.loads(path.read_text(encoding="utf-8")))
        if document["version"] == VERSION:
            return document
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise DeepumError(
        f"{path}: is not a file of this script's results, version {VERSION}; give another, or "
        f"remove it"
    )


def main() -> None:
    sections = tuple(_KEYS)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        metavar="SECTION,...",
        default=",".join(sections),
        help=f"of {', '.join(sections)}",
    )
    parser.add_argument(
        "--json", metavar="FILE", type=Path, help="keeps what the tables are made of"
    )
    parser.add_argument(
        "--page",
        metavar="FILE.md",
        type=Path,
        help="puts the tables there, all sections of --json's file",
    )
    parser.add_argument("--jobs", metavar="N", type=int, help="processes; all cores by default")
    parser.add_argument(
        "--tiny", action="store_true", help="two small models on cards that are too small for them"
    )
    given = parser.parse_args()
    chosen = [name for name in given.only.split(",") if name]
    failed: list[str] = []
    try:
        if unknown := [name for name in chosen if name not in sections]:
            raise DeepumError(
                f"--only: there is no section {unknown[0]}; there are {', '.join(sections)}"
            )
        results = _kept(given.json) | head()
        for section in chosen:
            results[_KEYS[section]] = made(section, given.tiny, given.jobs, failed)
            if given.json is not None:  # after each, so that an interrupted run has what it has
                given.json.write_text(written(results), encoding="utf-8")
        for title, keys, table in SECTIONS.values():
            if all(results.get(key) for key in keys):
                print("\n".join([f"## {title}", "", *table(results)]), flush=True)
        if given.page is not None:
            given.page.write_text(
                fill(given.page.read_text(encoding="utf-8"), results), encoding="utf-8"
            )
    except (DeepumError, OSError) as error:
        sys.exit(error.line if isinstance(error, DeepumError) else f"deepum: error: {error}")
    if failed:
        sys.exit(f"deepum: error: {len(failed)} simulations failed; see their lines above")


if __name__ == "__main__":
    main()
