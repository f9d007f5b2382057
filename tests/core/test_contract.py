"""Every EvictionPolicy and every LaunchPredictor keeps the contract of its interface, a new one as
well as those that the core has (tests/core/policies). The seams are C++, and so is what uses them
here.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "native" / "core"
POLICIES = Path(__file__).resolve().parent / "policies"
ORDERS = ("furthest-next-use", "least-recently-migrated", "oldest-last-use", "random")
CASES = (
    *(f"order-alone-{name}" for name in ORDERS),
    *(f"order-in-a-core-{name}" for name in ORDERS),
    *(f"predictor-{name}" for name in ("history", "nothing", "tables")),
)
# Sources whose own names others have, too (deepum_alone in CMakeLists.txt).
ALONE = ("pace_trial.cpp", "remote_trial.cpp")


@pytest.fixture(scope="session")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled contract.cpp, with the whole core in one translation unit."""
    compiler = shutil.which("g++")
    assert compiler, "g++: apt-get install g++"
    folder = tmp_path_factory.mktemp("contract")
    sources = sorted(CORE.rglob("*.cpp"))
    unit = folder / "core.cpp"
    unit.write_text(
        "".join(f'#include "{source}"\n' for source in sources if source.name not in ALONE)
    )
    alone = [source for source in sources if source.name in ALONE]
    program = folder / "contract"
    warnings = ("-Wall", "-Wextra", "-Werror", "-D_GLIBCXX_ASSERTIONS")
    includes = (f"-I{CORE}", f"-I{ROOT / 'native' / 'wire'}", f"-I{POLICIES}")
    command: list[str | Path] = [
        compiler,
        "-std=c++20",
        "-O1",
        *warnings,
        *includes,
        POLICIES / "contract.cpp",
        unit,
        *alone,
        "-o",
        program,
    ]
    subprocess.run(command, check=True)
    return program


def test_all_cases_are_run(contract: Path) -> None:
    assert subprocess.run(
        [contract], check=True, capture_output=True, text=True
    ).stdout.split() == sorted(CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_contract_holds(contract: Path, case: str) -> None:
    done = subprocess.run([contract, case], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_new_order_takes_less_than_60_lines() -> None:
    assert len((POLICIES / "random_order.hpp").read_text().splitlines()) < 60
