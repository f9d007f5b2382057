"""Settings: one definition, which the documentation, the core and the flags follow."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepum.configuration.resolve import from_environment, resolve
from deepum.configuration.setting import Setting
from deepum.configuration.settings import (
    BY_NAME,
    OPTIONS,
    SETTINGS,
    TUNABLES,
    VARIABLES,
    VARIED_BY_TESTS,
)
from deepum.configuration.variables import unknown_variables
from deepum.core import Core, CoreSettings
from deepum.daemon.sources import core_settings
from deepum.errors import UsageError
from deepum.sizes import format_size, parse_size

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GiB", 8 << 30),
        ("8G", 8 << 30),
        ("8gb", 8 << 30),
        ("512MiB", 512 << 20),
        ("1.5 GiB", 3 << 29),
        ("4096", 4096),
        ("0", 0),
        ("1k", 1024),
        ("2TiB", 2 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "x", "-1", "1..5G", "8 parsecs", "GiB", "99999999999999999999", "1e9", "nan", "0x10"],
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError):
        parse_size(text)


@given(st.integers(min_value=0, max_value=(1 << 63) - 1))
def test_sizes_written_are_read_back(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.sampled_from(SETTINGS), st.text(max_size=30))
def test_any_text_is_a_value_or_a_usage_error(setting: Setting, text: str) -> None:
    try:
        value = setting.parse(text, "here")
    except UsageError as error:
        assert "\n" not in error.line
        assert error.line.startswith("deepum: error: here: ")
    else:
        assert setting.parse(setting.text(value), "here") == value


def test_option_then_environment_then_file_then_default(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(
        "log = 3\n[tune]\nprefetch-degree = 30\nlaunch_queue = 30\nheadroom_blocks = 30\n"
    )
    values = resolve(
        {"prefetch_degree": 10}, {"DEEPUM_PREFETCH_DEGREE": "20", "DEEPUM_LAUNCH_QUEUE": "20"}, file
    )
    assert (
        values["prefetch_degree"],
        values["launch_queue"],
        values["headroom_blocks"],
        values["log"],
    ) == (10, 20, 30, 3)
    assert values["table_mebibytes"] == BY_NAME["table_mebibytes"].default


def test_each_setting_is_in_one_place() -> None:
    assert len(BY_NAME) == len(SETTINGS)


def test_an_empty_variable_is_not_set() -> None:
    assert from_environment({"DEEPUM_GPU_MEMORY": "", "DEEPUM_POLICY": ""}) == {}


def test_the_defaults_are_those_of_the_core() -> None:
    assert core_settings(resolve({}, {})) == CoreSettings.default()


@pytest.mark.parametrize(
    "name", [field.name for field in fields(CoreSettings) if field.name in BY_NAME]
)
def test_the_core_takes_both_ends_of_each_range(name: str) -> None:
    setting = BY_NAME[name]
    for value in setting.choices or (setting.low, setting.high):
        Core(core_settings(resolve({name: value}, {})))


def test_the_policy_that_plans_is_correlation_to_the_core() -> None:
    made = {
        name: core_settings(resolve({"policy": name}, {})) for name in BY_NAME["policy"].choices
    }
    assert made["planned"] == made["correlation"] == CoreSettings.default() != made["on-demand"]


def test_every_variable_that_is_read_is_known() -> None:
    read = {"DEEPUM_CUDA_INCLUDE", "DEEPUM_SANITIZE"}
    for folder, pattern in (
        ("native", "*.[ch]pp"),
        ("kernel_hooks", "*.[ch]pp"),
        ("deepum", "*.py"),
    ):
        for source in (ROOT / folder).rglob(pattern):
            read |= set(re.findall(r'"(DEEPUM_[A-Z_]*[A-Z])"', source.read_text(encoding="utf-8")))
    assert len(read) > 30
    assert unknown_variables(dict.fromkeys(read, "1")) == []


@pytest.mark.parametrize(
    ("heading", "settings"),
    [
        ("Options", OPTIONS),
        ("Tunables", TUNABLES),
        ("Variables", VARIABLES),
        ("Constants that tests vary", VARIED_BY_TESTS),
    ],
)
def test_the_documentation_lists_every_setting(heading: str, settings: tuple[Setting, ...]) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    (table,) = (part for part in section if part.startswith(f"{heading}\n"))
    named = {"Options": "option", "Tunables": "name"}.get(heading, "variable")

    def first(setting: Setting) -> str:
        return str(getattr(setting, named))

    expected = [
        f"| `{first(s)}` |{f' `{s.variable}` |' if first(s) != s.variable else ''} {s.help} | "
        f"{s.range_text} | {s.default_text} | {', '.join(s.readers)} |"
        for s in settings
    ]
    assert re.findall(r"^\| `.*\|$", table, re.MULTILINE) == expected


def test_the_documentation_lists_every_statistic(
    deepum: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    import json

    from deepum.statistics.keys import KEYS

    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `([a-z_0-9]+)` \| (.*) \|$", text, re.MULTILINE)) == KEYS
    assert deepum("run", "--device", "sim", "--stats", "s.json", "--", "true").returncode == 0
    assert list(json.loads((tmp_path / "s.json").read_text())) == list(KEYS)
