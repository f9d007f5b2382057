"""`deepum run`: its help shows the options that people use; research sets tunables with --tune or
in the table [tune] of a file.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deepum.cli.run_options import GROUPS
from deepum.configuration.resolve import from_file
from deepum.configuration.settings import BY_NAME, OPTIONS, TUNABLES
from deepum.configuration.tuning import tuned
from deepum.errors import UsageError

Deepum = Callable[..., subprocess.CompletedProcess[str]]


def test_help_shows_the_options_in_groups_and_no_tunable(deepum: Deepum) -> None:
    grouped = [name for group in GROUPS for name in group.names]
    assert sorted(grouped) == sorted([*(setting.name for setting in OPTIONS), "tune", "config"])
    text = deepum("run", "--help").stdout
    expected = [
        name
        for group in GROUPS
        for name in (
            group.heading,
            *(BY_NAME[n].option if n in BY_NAME else f"--{n}" for n in group.names),
        )
    ]
    found = re.findall(r"^  (?:-h, )?(--[a-z-]+)|^(\w[\w ]+):$", text, re.MULTILINE)
    assert [option or heading for option, heading in found] == [*expected, "--help"]
    assert len(grouped) <= 16 and "--tune help" in text
    assert all(group.sentence in " ".join(text.split()) for group in GROUPS)


def test_tune_help_lists_each_tunable_on_a_line(deepum: Deepum) -> None:
    result = deepum("run", "--tune", "help")
    assert result.returncode == 0 and result.stderr == ""
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert list(lines) == [setting.name for setting in TUNABLES]
    for setting in TUNABLES:
        assert (
            lines[setting.name]
            == f"{setting.help}  [default: {setting.default_text}; {setting.range_text}]"
        )


def test_tunables_are_given_apart_or_with_commas_and_the_last_holds() -> None:
    given = ["gates=0, prefetch-degree = 8", "moves=host", "prefetch_degree=9"]
    assert tuned(given) == {"gates": 0, "prefetch_degree": 9, "moves": "host"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "prefetch_degre=3",
            (
                "--tune prefetch_degre: there is no such tunable; did you mean prefetch_degree? "
                "`deepum run --tune help`"
            ),
        ),
        ("colour=blue", "--tune colour: there is no such tunable; `deepum run --tune help`"),
        ("gates", "--tune gates: has no value; write gates=VALUE with 0 or 1"),
        ("gates=2", "--tune gates: '2' is out of range; give 0 or 1"),
        ("moves=never", "--tune moves: 'never' is unknown; choose one of auto, stream, host"),
        ("advice=", "--tune advice: '' is unknown"),
        ("=1", "--tune '=1': names no tunable; write NAME=VALUE"),
        ("gates=1,", "--tune '': names no tunable"),
        ("policy=on-demand", "--tune policy: is no tunable; it is the option --policy"),
        ("marker_interval=1", "--tune marker_interval: there is no such tunable"),
    ],
)
def test_what_is_no_tunable_is_one_line_with_the_next_step(
    deepum: Deepum, given: str, message: str
) -> None:
    result = deepum("run", "--device", "sim", "--tune", given, "--", "true")
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith(f"deepum: error: {message}") and result.stderr.count("\n") == 1


@pytest.mark.parametrize("setting", TUNABLES, ids=lambda setting: setting.name)
def test_a_tunable_is_no_option_of_its_own(deepum: Deepum, setting: object) -> None:
    option, name = setting.option, setting.name  # type: ignore[attr-defined]
    result = deepum("run", option, "1", "--", "true")
    assert result.returncode == 2
    assert result.stderr == f"deepum: error: {option}: is a tunable; write --tune {name}=VALUE\n"


def test_a_setting_that_is_a_variable_alone_is_named_as_one(deepum: Deepum) -> None:
    result = deepum("run", "--sim-devices=2", "--", "true")
    assert result.returncode == 2
    assert result.stderr == (
        "deepum: error: --sim-devices: is no option; set the environment variable "
        "DEEPUM_SIM_DEVICES\n"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("gates = 0\n", r"gates: is a tunable; move it to the table \[tune\]"),
        ("prefetch-degree = 9\n", r"prefetch-degree: is a tunable; move it to the table \[tune\]"),
        ("tune = 3\n", r"tune: is no table; write a line \[tune\]"),
        ("[tune]\ngate = 0\n", r"\[tune\] gate: there is no such tunable; did you mean gates\?"),
        ("[tune]\nlog = 0\n", r"\[tune\] log: is no tunable; it is the option --log"),
        ("[tune]\ngates = [1]\n", r"gates: is more than one value"),
        ("polisy = 'on-demand'\n", r"polisy: is no setting; did you mean policy\?"),
        ("[colours]\n", r"colours: is no setting; see docs/configuration.md"),
        ("marker_interval = 8\n", r"marker_interval: is no setting"),
    ],
)
def test_what_is_out_of_place_in_a_file_is_said(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(content)
    with pytest.raises(UsageError, match=message) as raised:
        from_file(file)
    assert str(file) in raised.value.line
