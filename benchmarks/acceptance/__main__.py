"""`scripts/gpu_acceptance`: builds, asks, measures, writes down. Sections are processes with a time
limit; the file is whole after each.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from acceptance import build, processes, traces
from acceptance.place import ROOT, Place
from acceptance.preset import preset
from acceptance.report import lines
from acceptance.results import Results, ResultsError, folder_for

WHOLE_S = 585.0  # of it all: ten minutes, and some to end in
_BUILD_S = 200.0
_PREDICTING_S = 90.0
_ENDING_S = 7.0  # that a section has to end what it runs, before it is ended itself
# Name, most seconds, what it needs. The rest of the time goes to the budgets; correctness keeps
# what is set aside for it.
SECTIONS = (
    ("doctor", 40.0, ()),
    ("questions", 130.0, ()),
    ("overhead", 120.0, ("deepum", "torch")),
    ("budgets", 300.0, ("deepum", "torch")),
    ("correctness", 60.0, ("deepum",)),
)
# Of the card's free memory: the most that managed memory may be asked for, all programs together.
_SHARE = 0.6
_FACTS = """
import json
from deepum.doctor.driver import Cuda
cuda = Cuda({ordinal})
name = cuda("cuDeviceGetName", 256, cuda.device).split(b"\\0")[0].decode()
arch = "sm_%d%d" % tuple(
    cuda.attribute("COMPUTE_CAPABILITY_" + part) for part in ("MAJOR", "MINOR")
)
print(json.dumps([name, cuda.free_bytes(), int(cuda("cuDriverGetVersion")), arch]))
"""


def say(line: str) -> None:
    """What goes on, on standard error."""
    print(f"acceptance: {line}", file=sys.stderr, flush=True)


def stop(text: str, code: int = 2) -> None:
    """One line, and the end."""
    print(f"deepum: error: {text}", file=sys.stderr)
    sys.exit(code)


def _driver() -> str:
    from deepum import host

    driver = host.kernel_driver()
    return (
        f"{driver.text} ({'open' if driver.open else 'proprietary'})"
        if driver is not None
        else "unknown"
    )


class Acceptance:
    """One run: its place, its time, its file."""

    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self.end = time.monotonic() + given.seconds
        self.given = given
        self.folder = folder
        (folder / "runtime").mkdir(mode=0o700)
        self.place = Place(given.device, str(folder), given.short, 0)
        if given.models:
            self.place = replace(self.place, models=tuple(given.models))
        if given.shares:
            self.place = replace(self.place, shares=tuple(given.shares))
        self.results: Results | None = None

    @property
    def left(self) -> float:
        """Seconds."""
        return float(self.end - time.monotonic())

    def prepare(self) -> dict[str, Any]:
        """Builds, and finds out what there is. What the build told."""
        outcome: dict[str, Any] = {"built": False, "found": build.usable()}
        if self.given.build == "always" or (self.given.build == "auto" and not outcome["found"]):
            say("building")
            outcome = build.build(ROOT / "build" / "acceptance", min(_BUILD_S, self.left))
        usable = build.usable()
        if self.place.simulated and not usable:
            stop(f"simulated GPU: is not built: {outcome.get('error', 'run scripts/build')}")
        include = build.cuda_include()
        loops = build.compile_loops(self.folder)
        has_torch = importlib.util.find_spec("torch") is not None
        self.place = replace(
            self.place,
            cuda_include=str(include) if include else None,
            loops=str(loops) if loops else None,
            deepum=usable,
            torch=has_torch,
        )
        return outcome

    def facts(self) -> tuple[str, int, int, str]:
        """The card's name, free bytes, the driver's CUDA version, nvcc's name of its kind. Ends the
        program where there is none.
        """
        ran = processes.run(
            [sys.executable, "-P", "-c", _FACTS.format(ordinal=0)],
            self.place.driver_environment(),
            min(60, self.left),
        )
        if ran.trouble is not None:
            stop(
                f"GPU: none that answers: {ran.trouble}; see `deepum doctor`, or try --device sim",
                1,
            )
        name, free, version, arch = json.loads(ran.out)
        # By LD_LIBRARY_PATH, say: its results must not be taken for measurements.
        if not self.place.simulated and "(simulated)" in name:
            stop(
                (
                    "GPU: the driver that was found is the simulated one; leave it out of "
                    "LD_LIBRARY_PATH, or give --device sim"
                ),
                1,
            )
        return str(name), int(free), int(version), str(arch)

    def run(self) -> int:
        """All sections. 0 if each said something, 1 if one failed or was cut off whole."""
        built = self.prepare()
        name, free, version, arch = self.facts()
        self.place = replace(self.place, managed_limit=int(_SHARE * free), capability=arch)
        date = datetime.datetime.now(datetime.UTC)
        head = {
            "simulated": self.place.simulated,
            "device": self.place.device,
            "gpu": name,
            "driver": "simulated" if self.place.simulated else _driver(),
            "cuda_version": version,
            "free_bytes": free,
            "managed_limit_bytes": self.place.managed_limit,
            "short": self.place.short,
            "date": date.strftime("%Y-%m-%d %H:%M:%S UTC"),
            "host": {
                "machine": platform.machine(),
                "kernel": platform.release(),
                "cpus": os.cpu_count(),
                "python": platform.python_version(),
            },
            "torch": _version("torch"),
        }
        label = "".join(letter if letter.isalnum() else "-" for letter in name.lower()).strip("-")
        while "--" in label:
            label = label.replace("--", "-")
        folder = folder_for(self.place.simulated, self.given.results)
        self.results = Results(folder, f"{label}-{date:%Y%m%d-%H%M%S}", head)
        self.results.keep("build", built)
        say(f"{name}; results go to {self.results.path}")
        self.place.write(self.folder / "place.json")
        failed = [name for name, *_ in self.chosen() if not self.section(name)]
        if "questions" in self.results.content["sections"]:
            self.results.keep("preset", preset(self.results.content["sections"]["questions"]))
        self.predict()
        if failed:
            say(f"nothing came of: {', '.join(failed)}")
        print("\n".join(lines(self.results.content)))
        return 1 if failed or "error" in built else 0

    def predict(self) -> None:
        """What the model says of the trainings, where there are traces of them and time is left;
        else the command can be given later.
        """
        assert self.results is not None
        sections = self.results.content["sections"]
        if not sections.get("budgets", {}).get("traces"):
            return
        if left := traces.pack(self.folder, self.results.path):
            say(f"traces: no room for {', '.join(left)}")
        if "preset" not in sections:
            say("prediction: left out: the questions were not asked")
            return
        say(f"prediction, {min(_PREDICTING_S, self.left):.0f} s at most")
        command = [sys.executable, "-P", "-m", "acceptance.predict", str(self.results.path)]
        ran = processes.run(command, self.place.environment(), min(_PREDICTING_S, self.left))
        self.results.read_again()
        outcome = (
            "done"
            if ran.code in (0, 1)
            else f"{ran.trouble}; see python -m acceptance.predict {self.results.path}"
        )
        say(f"prediction: {outcome}, {ran.seconds:.0f} s")

    def chosen(self) -> list[tuple[str, float, tuple[str, ...]]]:
        """The sections asked for."""
        return [
            section for section in SECTIONS if not self.given.only or section[0] in self.given.only
        ]

    def section(self, name: str) -> bool:
        """Runs one; keeps what it told. False if that is nothing."""
        assert self.results is not None
        most, needs = next((seconds, needs) for known, seconds, needs in SECTIONS if known == name)
        later = [known for known, *_ in self.chosen()]
        reserved = 60.0 if name != "correctness" and "correctness" in later else 0.0
        seconds = min(most, self.left - min(reserved, self.left / 3))
        lacking = [need for need in needs if not getattr(self.place, need)]
        if lacking or seconds < 2 * _ENDING_S:
            self.results.keep(
                name,
                {
                    "error": (
                        "left out: "
                        f"{'no ' + ' and no '.join(lacking) if lacking else 'no time left'}"
                    )
                },
            )
            return False
        say(f"{name}, {seconds:.0f} s at most")
        out = self.folder / f"{name}.json"
        command = [
            sys.executable,
            "-P",
            "-m",
            "acceptance.section",
            name,
            str(self.folder / "place.json"),
            str(out),
            str(seconds - _ENDING_S),
        ]
        ran = processes.run(command, self.place.environment(), seconds)
        content = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        if ran.trouble is not None:
            content["error"] = ran.trouble
        self.results.keep(
            name, content | {"seconds": round(ran.seconds, 1)} if name != "questions" else content
        )
        say(f"{name}: {content.get('error', 'done')}, {ran.seconds:.0f} s")
        return "error" not in content


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="gpu_acceptance",
        description="Turns a machine with a GPU into evidence; docs/acceptance.md.",
    )
    parser.add_argument(
        "--device",
        default="cuda",
        help="cuda (the default), sim or sim:MACHINE, whose results are marked and kept apart",
    )
    parser.add_argument(
        "--short", action="store_true", help="small models and memories: to see that all of it runs"
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=[name for name, *_ in SECTIONS],
        help="a section; may be given again",
    )
    parser.add_argument(
        "--model",
        dest="models",
        action="append",
        choices=("gpt2", "bert", "resnet", "dlrm"),
        help="of those trained",
    )
    parser.add_argument(
        "--share",
        dest="shares",
        action="append",
        type=int,
        choices=(25, 50, 75),
        help="of the budgets, per cent",
    )
    parser.add_argument("--results", type=Path, help="folder; benchmarks/results unless simulated")
    parser.add_argument(
        "--build",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto: only if no deepum is built",
    )
    parser.add_argument("--seconds", type=float, default=WHOLE_S, help="for all of it")
    given = parser.parse_args()
    if given.device == "sim":
        given.device = "sim:v100-16gb"
    if given.device != "cuda" and not given.device.startswith("sim:"):
        stop(f"device '{given.device}': is unknown; choose cuda, sim or sim:MACHINE")
    try:
        folder_for(given.device != "cuda", given.results)
    except ResultsError as error:
        stop(str(error))
    # With what was started, and leaving nothing behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="deepum-a-"))
    try:
        code = Acceptance(given, folder).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
