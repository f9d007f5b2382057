"""What the numbers matter that the core was tuned with (native/core/parameters.h): the time of a
step with each of them smaller and larger.

    python benchmarks/parameters.py                # all, over the named workloads; half an hour
    python benchmarks/parameters.py --set both --only planner,window.narrowing
    python benchmarks/parameters.py --workloads dlrm,lstm --factor 16
    python benchmarks/parameters.py --page         # docs/research/parameters.md of what is kept

Each parameter is divided and multiplied by `--factor`, and not less than 1; the others keep their
values. Each workload is simulated twice, as it is and as a program that waits for the GPU after
each step, since what is placed at waits matters to those alone. Figures are the mean of the steady
steps of the default policy, gated, with the expected driver, over the same with all parameters as
they are. What is found is kept in FILE (--json) as each workload is done, and is not simulated
again unless the core's own time of the workload has changed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from deepum.core import default_parameters
from deepum.errors import DeepumError
from deepum.simulate.driver import BAND
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import run
from deepum.simulate.steps import steady, steps
from deepum.simulate.sweep import Failure, cores, sweep
from deepum.simulate.workload import load
from deepum.workloads import WORKLOADS
from deepum.workloads.held_out import HELD_OUT

ROOT = Path(__file__).resolve().parents[1]
HEADER = ROOT / "native" / "core" / "parameters.h"
FILE = ROOT / "benchmarks" / "results" / "parameters.json"
PAGE = ROOT / "docs" / "research" / "parameters.md"
WAITS = " waits"  # behind a workload's name: the program waits after each step
SETS = {
    label: tuple(name + wait for name in names for wait in ("", WAITS))
    for label, names in (("named", WORKLOADS), ("held-out", HELD_OUT))
}
MOST = 1 << 20  # kMostOfParameter
MATTERS = 0.002  # part of a step, above which a change is one
AS_IT_IS = ""  # the variant in which nothing is changed

Times = dict[str, float]  # ms a step, by variant: `planner.least_idle=8`


@dataclass(frozen=True)
class Point:
    """A workload on a machine, and the variants to simulate."""

    workload: str
    machine: str
    variants: tuple[str, ...]

    def __str__(self) -> str:
        return self.workload


@dataclass(frozen=True)
class Parameter:
    """What the header says of one."""

    name: str
    value: int
    meaning: str
    classes: str


def parameters() -> list[Parameter]:
    """All of them, in the order of the header."""
    defaults = default_parameters()
    text = re.sub(r"\n +\* ", " ", HEADER.read_text(encoding="utf-8"))  # a comment is one line
    found = []
    classes = above = ""
    for line in text.splitlines():
        if heading := re.fullmatch(r"/\* (.+) \*/", line):
            classes = heading[1]
        elif struct := re.match(r"typedef struct deepum_(\w+)_parameters \{", line):
            group = struct[1]
        elif comment := re.fullmatch(r"  /\* (.+?)\.? \*/", line):
            above = re.sub(r"^[A-Z](?=[a-z])", lambda first: first[0].lower(), comment[1])
        elif field := re.fullmatch(r"  uint32_t (\w+);(?: +/\* (.+) \*/)?", line):
            name = f"{group}.{field[1]}"
            found.append(Parameter(name, defaults[name], field[2] or above, classes))
            above = ""
    return found


def variants(only: Sequence[str], factor: int) -> list[str]:
    """Of the parameters whose names begin with one of those words, or all."""
    made = []
    for name, value in default_parameters().items():
        if not only or any(name == word or name.startswith(word + ".") for word in only):
            made += [
                f"{name}={changed}"
                for changed in (max(1, value // factor), min(MOST, value * factor))
                if changed != value
            ]
    return made


def simulate(point: Point) -> Times:
    """Times of the variants. Raises DeepumError."""
    waits = point.workload.endswith(WAITS)
    workload = load(point.workload.removesuffix(WAITS), None, waits, point.machine)
    times: Times = {}
    for variant in point.variants:
        policy = BY_NAME["deepum"]
        if variant != AS_IT_IS:
            name, _, value = variant.partition("=")
            policy = replace(
                policy, changes={**policy.changes, "parameters": ((name, int(value)),)}
            )
        kept = steady(
            steps(run(workload, point.machine, policy, driver=BAND["expected"]), workload.trace)
        )
        times[variant] = sum(step.ns for step in kept) / len(kept) / 1e6
    return times


def measure(points: Sequence[Point], jobs: int | None) -> Iterator[tuple[str, Times]]:
    """What was found of each workload; a failure is told, and the others go on."""
    for done in sweep(simulate, points, jobs, None, "simulating"):
        if isinstance(done.result, Failure):
            print(done.result.line, file=sys.stderr)
        else:
            yield done.point.workload, done.result


def ratios(times: Mapping[str, Times], variant: str) -> dict[str, float]:
    """Of each workload's time as it is, where the variant was simulated."""
    return {
        name: found[variant] / found[AS_IT_IS] for name, found in times.items() if variant in found
    }


def cell(times: Mapping[str, Times], variant: str) -> str:
    """The geometric mean, and what changes most where anything does."""
    found = ratios(times, variant)
    if not found:
        return "-"
    most = max(found, key=lambda name: abs(found[name] - 1))
    waits = WAITS if most.endswith(WAITS) and ":" in most else ""
    changed = (
        f" (`{most.partition(':')[0]}{waits}` {found[most]:.3f})"
        if abs(found[most] - 1) > MATTERS
        else ""
    )
    return f"{geometric_mean(found.values()):.3f}{changed}"


def page(kept: Mapping[str, Any]) -> str:
    """docs/research/parameters.md."""
    times: dict[str, Times] = kept["ms"]
    factor = int(kept["factor"])
    sets = {
        label: {name: times[name] for name in names if name in times}
        for label, names in SETS.items()
    }
    counts = " and ".join(
        f"{len(found)} of the {len(SETS[label])} {label}" for label, found in sets.items()
    )
    lines = [
        "# Parameters of the decision core",
        "",
        (
            "The numbers that policies were tuned with, by class (`native/core/parameters.h`), "
            "and what they matter: the time of a step with"
        ),
        (
            f"a parameter divided and multiplied by {factor}, over that with all as they are. "
            f"Geometric means over {counts}"
        ),
        (
            f"points, on {kept['machine']}, default policy, gated, the expected driver; steady "
            f"steps. A workload is two points: as it is, and"
        ),
        (
            "as a program that waits for the GPU after each step (`waits`). In brackets what "
            "changes most,"
        ),
        (
            f"where that is more than {MATTERS:.1%}. Settings of a program do not change them; "
            f"experiments do, by"
        ),
        "`deepum.core.CoreSettings.default(parameters=[(name, value)])`. Made by:",
        "",
        "    python benchmarks/parameters.py --set both && python benchmarks/parameters.py --page",
        "",
        (
            f"| class | parameter | value | what it is | "
            f"{' | '.join(f'{label}, /{factor} | {label}, x{factor}' for label in SETS)} |"
        ),
        f"|{'---|' * (4 + 2 * len(SETS))}",
    ]
    for one in parameters():
        changed = [max(1, one.value // factor), min(MOST, one.value * factor)]
        cells = [cell(found, f"{one.name}={value}") for found in sets.values() for value in changed]
        lines.append(
            f"| {one.classes} | `{one.name}` | {one.value} | {one.meaning} | {' | '.join(cells)} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--set", choices=(*SETS, "both"), default="named", help="of workloads (%(default)s)"
    )
    which.add_argument(
        "--workloads",
        help="instead of a set, with commas between them; numbers behind ':' with semicolons",
    )
    parser.add_argument(
        "--only", default="", help="parameters, or their classes' names, with commas between them"
    )
    parser.add_argument(
        "--factor",
        type=int,
        default=4,
        help="by which each is divided and multiplied (%(default)s)",
    )
    parser.add_argument("--machine", default="v100-16gb")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes; all cores by default")
    parser.add_argument(
        "--json",
        type=Path,
        default=FILE,
        metavar="FILE",
        help="what is kept (benchmarks/results/parameters.json)",
    )
    parser.add_argument(
        "--page", action="store_true", help="make the page of what is kept, instead"
    )
    options = parser.parse_args()
    if options.factor < 2:
        parser.error(f"--factor {options.factor}: changes nothing; give at least 2")
    kept: dict[str, Any] = (
        json.loads(options.json.read_text(encoding="utf-8")) if options.json.is_file() else {}
    )
    if options.page:
        if not kept:
            parser.error(f"--json {options.json}: there is no such file; run without --page first")
        PAGE.write_text(page(kept), encoding="utf-8")
        return 0
    wanted = variants([word for word in options.only.split(",") if word], options.factor)
    if not wanted:
        parser.error(
            f"--only {options.only}: no parameter has that name; there are "
            f"{', '.join(default_parameters())}"
        )
    if (
        kept.get("machine", options.machine) != options.machine
        or kept.get("factor", options.factor) != options.factor
    ):
        parser.error(
            f"--json {options.json}: is of {kept['machine']} and factor {kept['factor']}; "
            f"name another file"
        )
    given = options.workloads.split(",") if options.workloads else []
    names = [name.replace(";", ",") + wait for name in given for wait in ("", WAITS)]
    names = names or [
        name for label in SETS if options.set in (label, "both") for name in SETS[label]
    ]
    times: dict[str, Times] = kept.get("ms", {})
    jobs = options.jobs or cores()
    try:
        for name in names:
            now = dict(measure([Point(name, options.machine, (AS_IT_IS,))], 1)).get(name)
            if now is None:
                continue
            if times.get(name, {}).get(AS_IT_IS) != now[AS_IT_IS]:
                times[name] = now
            missing = [variant for variant in wanted if variant not in times[name]]
            # A part of the variants for each core, since workloads differ more than variants do.
            parts = [
                Point(name, options.machine, tuple(missing[i::jobs]))
                for i in range(min(jobs, len(missing)))
            ]
            for _, found in measure(parts, jobs) if parts else ():
                times[name] |= found
            document = {
                "machine": options.machine,
                "factor": options.factor,
                "ms": dict(sorted(times.items())),
            }
            options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            print(f"{name}: {times[name][AS_IT_IS]:.1f} ms", flush=True)
            for variant in wanted:
                ratio = times[name].get(variant, times[name][AS_IT_IS]) / times[name][AS_IT_IS]
                if abs(ratio - 1) > MATTERS:
                    print(f"  {variant:<36} {ratio:.3f}", flush=True)
    except DeepumError as error:
        print(error.line, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
