"""A page for each subcommand of `deepum`, made of its own help, and the list of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import click
import tables

from deepum.cli.groups import Group, GroupedCommand
from deepum.errors import DeepumError

_MOST_GUIDES = 3


def _commands(group: click.Group) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Each subcommand with its name and its context. Raises DeepumError where a package that it
    needs is not installed, since its help is not known then.
    """
    above = click.Context(group, info_name="deepum")
    for name in group.list_commands(above):
        try:
            command = group.get_command(above, name)
        except ModuleNotFoundError as error:
            raise _unknown(name, str(error.name)) from None
        assert command is not None
        if (command.help or "").startswith("Needs the extra"):
            raise _unknown(name, "its extra")
        yield name, command, click.Context(command, info_name=name, parent=above)


def _unknown(name: str, package: str) -> DeepumError:
    return DeepumError(
        f"deepum {name}: its help is not known without {package}; run scripts/setup-venv test"
    )


_CODE = re.compile(r"(`[^`]*`)")
_NAMES = re.compile(r"(?<![\w-])(--[a-z][\w-]*|DEEPUM_[A-Z_]+)")


def _text(part: str) -> str:
    """What is no code yet: options and variables become code, the rest is no markup."""
    pieces = _NAMES.split(part)
    pieces[::2] = [re.sub(r"([*_<>\[\]])", r"\\\1", piece) for piece in pieces[::2]]
    pieces[1::2] = [f"`{name}`" for name in pieces[1::2]]
    return "".join(pieces)


def _prose(text: str) -> str:
    """Click's help text as Markdown; a paragraph that click does not wrap is one line."""
    paragraphs = [" ".join(part.split()) for part in text.replace("\b", "").split("\n\n")]
    parts = _CODE.split("\n\n".join(paragraphs))
    return "".join(part if part.startswith("`") else _text(part) for part in parts)


def summary(command: click.Command) -> str:
    """The first sentence of a command's help."""
    return _prose((command.help or "").split("\n\n")[0]).split(". ")[0].rstrip(".") + "."


def _records(command: click.Command, context: click.Context) -> dict[str, tuple[str, str]]:
    """Names and help of a command's options, by the option's name. All have --help, so it is left
    out.
    """
    return {
        str(option.name): record
        for option in command.get_params(context)
        if isinstance(option, click.Option)
        and "--help" not in option.opts
        and (record := option.get_help_record(context)) is not None
    }


def _listed(records: list[tuple[str, str]]) -> str:
    """A list of options. Raises DeepumError where one has no help."""
    if without := [names for names, text in records if not text]:
        raise DeepumError(f"option {without[0]}: has no help; write it where the option is made")
    return "\n\n".join(f"`{names}`\n: {_prose(text)}" for names, text in records)


def _options(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    records = _records(command, context)
    groups: tuple[Group, ...] = command.groups if isinstance(command, GroupedCommand) else ()
    for group in groups:
        yield f"{'#' * level} {group.heading}"
        yield _prose(group.sentence)
        yield _listed([records.pop(name) for name in group.names])
    if records:
        yield f"{'#' * level} Options"
        yield _listed(list(records.values()))


def _body(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    """Help, usage line, options, and the same of its own subcommands."""
    yield _prose(command.help or "")
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```"
    yield from _options(command, context, level)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield f"{'#' * level} deepum {context.info_name} {name}"
            yield from _body(below, click.Context(below, info_name=name, parent=context), level + 1)


def _guides(name: str, pages: Mapping[str, str]) -> list[str]:
    """The pages that name the command most often, those of results and decisions left out."""
    often = {
        page: len(re.findall(rf"\bdeepum {name}\b", text))
        for page, text in pages.items()
        if "/" not in page and page not in ("changelog.md", "contributing.md", "commands.md")
    }
    order = sorted(often, key=lambda page: (-often[page], page))
    return [page for page in order[:_MOST_GUIDES] if often[page]]


def pages(group: click.Group, others: Mapping[str, str]) -> dict[str, str]:
    """The text of each subcommand's page, by its path below docs/. `others` are the pages that may
    be named as guides to it.
    """
    made = {}
    for name, command, context in _commands(group):
        parts = [f"# deepum {name}", *_body(command, context, 2)]
        if guides := _guides(name, others):
            titles = [(others[page].splitlines()[0].lstrip("# "), page) for page in guides]
            links = ", ".join(f"[{title}](/{page})" for title, page in titles)
            parts += ["## See also", f"{links}; [exit codes](/usage.md#exit-codes)."]
        made[f"commands/{name}.md"] = "\n\n".join(parts) + "\n"
    return made


def written(text: str, group: click.Group) -> str:
    """The list of all commands as they are now, in the page that has it."""
    rows = [(f"`deepum {name}`", summary(command)) for name, command, _ in _commands(group)]
    return tables.replaced(text, "commands", tables.markdown(("command", "what it does"), rows))
