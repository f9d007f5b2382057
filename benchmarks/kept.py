"""What a benchmark keeps: its results in a file, and the table of them on a page, between marks."""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepum.errors import DeepumError
from deepum.simulate.driver import BAND

ROOT = Path(__file__).resolve().parents[1]
Results = dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """script: whose results they are, by the name of its file. page_name: below the root. table:
    Markdown of the results, with a newline at its end. file_name: in benchmarks/results.
    """

    script: str
    page_name: str
    table: Callable[[Results], str]
    file_name: str

    @property
    def file(self) -> Path:
        """Where the results are kept unless --json names another."""
        return ROOT / "benchmarks" / "results" / self.file_name

    @property
    def page_file(self) -> Path:
        """The page's file."""
        return ROOT / self.page_name

    def parser(self, description: str | None) -> argparse.ArgumentParser:
        """Of the benchmark's options: --json and --page, to which it adds its own."""
        made = argparse.ArgumentParser(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        made.add_argument(
            "--json", type=Path, default=self.file, metavar="FILE", help="what is kept"
        )
        made.add_argument("--page", action="store_true", help="make the page, instead")
        return made

    def page(self, results: Results, text: str) -> str:
        """The page with the table between its marks. Raises ValueError where it has none."""
        begin, end = (f"<!-- benchmarks/{self.script}.py: {mark} -->" for mark in ("begin", "end"))
        before, _, rest = text.partition(begin + "\n")
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"{self.page_name}: has no '{begin}' and '{end}' around a table")
        return f"{before}{begin}\n{self.table(results)}{end}{after}"

    def write_page(self, file: Path) -> None:
        """Of the results in that file."""
        text = self.page_file.read_text(encoding="utf-8")
        results = json.loads(file.read_text(encoding="utf-8"))
        self.page_file.write_text(self.page(results, text), encoding="utf-8")


def add_costs(parser: argparse.ArgumentParser, *also: str) -> None:
    """--costs: of the simulated driver, one of BAND, or of `also`."""
    parser.add_argument(
        "--costs",
        choices=(*BAND, *also),
        default="expected",
        help="what the driver costs (%(default)s)",
    )


def names_of(
    parser: argparse.ArgumentParser, what: str, text: str, known: Collection[str]
) -> list[str]:
    """Names with commas between them, each one of those that are known; ends with the parser's
    error where one is not. what: such a name's kind.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            parser.error(f"{what} '{name}': is unknown; choose of {', '.join(known)}")
    return names


def results_in(file: Path, key: str) -> Results:
    """The results in that file, so that those of other points stay; none under `key` without it."""
    found: Results = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {key: {}}
    return found


def save(file: Path, results: Results) -> None:
    """Writes them as they are."""
    file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def measure_points(
    given: argparse.Namespace,
    kept: Results,
    run_name: str,
    points: Iterable[str],
    measure: Callable[[str], Results],
) -> Iterator[tuple[str, Results]]:
    """Each point with what was measured, which is kept in `--json` among those of that run. Points
    that fail are said and left out.
    """
    mine = kept["runs"].setdefault(run_name, {"points": {}})
    for point in points:
        try:
            found = measure(point)
        except DeepumError as error:
            print(f"{point}: {error}", file=sys.stderr)
            continue
        mine |= circumstances(mode=given.mode, costs=given.costs)
        mine["points"][point] = found
        save(given.json, kept)
        yield point, found


def circumstances(**more: object) -> Results:
    """What a measurement is kept with: its date, the processor, and more."""
    return {
        "date": datetime.date.today().isoformat(),
        "processor": platform.processor() or platform.machine(),
        **more,
    }
