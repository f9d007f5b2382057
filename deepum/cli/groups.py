"""A command whose help shows its options in groups, each below a heading and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click


@dataclass(frozen=True)
class Group:
    """A heading, a sentence on what the options below it are for, and their names as the command's
    function takes them.
    """

    heading: str
    sentence: str
    names: tuple[str, ...]


class GroupedCommand(click.Command):
    """Takes `groups`; options that none of them names, such as --help, are shown in the last."""

    def __init__(self, *arguments: Any, groups: Sequence[Group] = (), **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.groups = tuple(groups)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        options = [
            option for option in self.get_params(context) if isinstance(option, click.Option)
        ]
        records = {
            option.name: record
            for option in options
            if (record := option.get_help_record(context)) is not None
        }
        for group in self.groups:
            rows = [records.pop(name) for name in group.names]
            with formatter.section(group.heading):
                formatter.write_text(group.sentence)
                formatter.write_dl([*rows, *records.values()] if group is self.groups[-1] else rows)
