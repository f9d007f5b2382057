"""Help in groups: each option of a command is in one of them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import click
import pytest

from deepum.cli import compare, simulate
from deepum.cli import run as run_command
from deepum.cli.groups import GroupedCommand
from deepum.cli.run_options import GROUPS


@pytest.mark.parametrize(
    "command",
    [run_command.command, compare.command, simulate.command],
    ids=lambda command: command.name,
)
def test_each_option_is_in_one_group(command: click.Command) -> None:
    assert isinstance(command, GroupedCommand)
    grouped = [name for group in command.groups for name in group.names]
    assert sorted(grouped) == sorted(
        option.name for option in command.params if isinstance(option, click.Option) and option.name
    )


@pytest.mark.parametrize("name", ["run", "compare", "simulate"])
def test_a_group_has_a_heading_and_a_sentence(
    deepum: Callable[..., subprocess.CompletedProcess[str]], name: str
) -> None:
    text = deepum(name, "--help").stdout
    for group in {"run": GROUPS, "compare": compare.GROUPS, "simulate": simulate.GROUPS}[name]:
        assert re.search(rf"^{group.heading}:$", text, re.MULTILINE)
        assert group.sentence in " ".join(text.split())
    assert text.rstrip().splitlines()[-1].split()[:2] == ["-h,", "--help"]
