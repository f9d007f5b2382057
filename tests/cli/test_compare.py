"""`deepum compare`: what is refused, what is said of runs that fail. These programs use no GPU."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from deepum.cli.compare import command
from deepum.configuration.settings import OPTIONS
from deepum.launcher.compare import OWN

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
SIM = ("compare", "--device", "sim")


def test_options_of_run_are_its_own() -> None:
    names = {option.name for option in command.params if isinstance(option, click.Option)}
    assert {setting.name for setting in OPTIONS} - set(OWN) <= names
    assert not names & set(OWN)


def test_a_program_without_a_gpu_has_nothing_to_compare(deepum: Deepum) -> None:
    result = deepum(*SIM, "--", "echo", "out")
    assert (result.returncode, result.stdout) == (0, "out\n" * 3)
    assert result.stderr.splitlines()[-1] == (
        "deepum: the program used no GPU: there is nothing to compare"
    )
    assert "[3/3] unlimited: no GPU used" in result.stderr


def test_the_first_failure_ends_it_with_its_code(deepum: Deepum, tmp_path: Path) -> None:
    script = "[ ! -e once ] || exit 7; touch once"
    result = deepum(*SIM, "--", "sh", "-c", script)
    assert (result.returncode, result.stdout) == (7, "")
    assert result.stderr.splitlines()[-1] == (
        "deepum: run deepum: the program exited with code 7; not run: unlimited"
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSEGV])
def test_a_signal_that_ends_a_run_ends_it_alike(deepum: Deepum, number: signal.Signals) -> None:
    result = deepum(*SIM, "--policies", "deepum", "--", "sh", "-c", f"kill -{int(number)} $$")
    assert result.returncode == -number
    last = result.stderr.splitlines()[-1]
    assert last == f"deepum: run deepum: the program was ended by {number.name}"


def test_without_words_the_table_alone_is_left(deepum: Deepum) -> None:
    result = deepum(*SIM, "--log", "0", "--", "true")
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == "deepum: the program used no GPU: there is nothing to compare\n"


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ((), "COMMAND: is missing; say what to run"),
        (("--policies", "luck", "true"), "policy 'luck': is unknown; choose of on-demand, deepum"),
        (("--policies", ",", "true"), "--policies: names none; choose of on-demand, deepum"),
        (("--output", "no/out.html", "true"), "--output "),
        (("--json", "no/out.json", "true"), "--json "),
        (("--stats", "s.json", "true"), "--stats: is an option of `deepum run`; leave it out here"),
        (("--policy", "planned", "true"), "--policy: is an option of `deepum run`"),
        (("--host-memory", "much", "true"), "--host-memory"),
        (("--device", "cpu", "--remat", "1GiB", "true"), "device cpu: "),
        (("--no-such", "true"), "No such option"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    deepum: Deepum, tmp_path: Path, arguments: tuple[str, ...], cause: str
) -> None:
    result = deepum(*SIM, *arguments)
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert result.stderr.startswith("deepum: error: ") and cause in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_is_not_there_is_said_before_any_run(deepum: Deepum) -> None:
    result = deepum(*SIM, "--", "no-such-program")
    assert (result.returncode, len(result.stderr.splitlines())) == (127, 1)
