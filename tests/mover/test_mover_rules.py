"""The mover's rules on a backend that writes down what they ask of it: no driver, no threads, no
clock. Rules and cases are C++; each case is one claim about one behaviour.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "native"
SOURCES = sorted(HERE.glob("*.cpp"))
CASES = sorted(
    case
    for source in SOURCES
    for case in re.findall(r"^CASE\((\w+)\)", source.read_text(), re.MULTILINE)
)


@pytest.fixture(scope="session")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled cases, with all of the mover, in one translation unit."""
    compiler = shutil.which("g++")
    assert compiler, "g++: apt-get install g++"
    folder = tmp_path_factory.mktemp("mover")
    unit = folder / "all.cpp"
    unit.write_text(
        "".join(
            f'#include "{source}"\n'
            for source in [*sorted((NATIVE / "mover").glob("*.cpp")), *SOURCES]
        )
    )
    program = folder / "rules"
    checks = (
        "-Wall",
        "-Wextra",
        "-Werror",
        "-D_GLIBCXX_ASSERTIONS",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    )
    includes = (f"-I{NATIVE / 'mover'}", f"-I{NATIVE / 'wire'}", f"-I{HERE}")
    subprocess.run(
        [compiler, "-std=c++20", "-g1", *checks, *includes, unit, "-o", program], check=True
    )
    return program


def test_all_cases_are_run(rules: Path) -> None:
    assert (
        sorted(subprocess.run([rules], check=True, capture_output=True, text=True).stdout.split())
        == CASES
    )


@pytest.mark.parametrize("case", CASES)
def test_the_mover_keeps_its_rules(rules: Path, case: str) -> None:
    done = subprocess.run([rules, case], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
