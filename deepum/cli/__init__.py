"""The `deepum` command: one module a subcommand, each with a click command named as the module."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys

import click

from deepum import __version__
from deepum.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, DeepumError

_COMMANDS = (
    "run",
    "compare",
    "path",
    "doctor",
    "machines",
    "ps",
    "top",
    "set",
    "stop",
    "daemon",
    "log",
    "record",
    "simulate",
    "plan",
    "swapadvisor",
    "arena",
    "workloads",
    "report",
    "trace",
    "version",
)
# By subcommand: what brings numpy.
_EXTRAS = {
    "simulate": "lab",
    "plan": "plan",
    "swapadvisor": "plan",
    "arena": "lab",
    "trace": "lab",
    "report": "report",
}


class _Commands(click.Group):
    """Loads a subcommand's module when it is asked for, so that `deepum path` does not wait for the
    native core.
    """

    def list_commands(self, _context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        try:
            command = importlib.import_module(f"deepum.cli.{name}").command
        except ModuleNotFoundError as error:
            if error.name != "numpy" or name not in _EXTRAS:
                raise
            return _without_numpy(name, _EXTRAS[name])
        assert isinstance(command, click.Command)
        return command


def _missing_numpy(where: str, extra: str) -> DeepumError:
    return DeepumError(f"{where}: needs numpy; install it with `pip install deepum[{extra}]`")


def _without_numpy(name: str, extra: str) -> click.Command:
    """A subcommand of which the extra has a part: refused, whatever its arguments are."""

    def refuse() -> None:
        raise _missing_numpy(f"deepum {name}", extra)

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(
        name,
        context_settings=settings,
        callback=refuse,
        add_help_option=False,
        help=f"Needs the extra `{extra}`.",
    )


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    no_args_is_help=False,
)
@click.version_option(__version__, message="deepum %(version)s")
def deepum() -> None:
    """Run CUDA programs that need more memory than the GPU has, without changing them.

    Start with: deepum run -- python train.py

    \b Exit codes: that of the program; 2 unusable arguments; 125 deepum itself failed or refuses to
    run here; 126 the program cannot be executed; 127 there is no such program.
    """


def _one_line(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    where = context.command_path if isinstance(context, click.Context) else "deepum"
    return (
        f"deepum: error: {' '.join(error.format_message().split()).rstrip('.')}; see `{where} "
        f"--help`"
    )


def main() -> None:
    """Runs the command line; every failure is one line on standard error and a documented exit
    code.
    """
    code = 0
    try:
        code = deepum.main(prog_name="deepum", standalone_mode=False) or 0
    except DeepumError as error:
        click.echo(error.line, err=True)
        code = error.exit_code
    except click.ClickException as error:
        click.echo(_one_line(error), err=True)
        code = EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        code = EXIT_FAILED
    except (ImportError, OSError) as error:
        without_numpy = isinstance(error, ImportError) and error.name == "numpy"
        text = f"deepum: error: {' '.join(str(error).split())}; reinstall deepum if this persists"
        click.echo(_missing_numpy("this command", "lab").line if without_numpy else text, err=True)
        code = EXIT_FAILED
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    if code == EXIT_FAILED:
        # What a closed pipe did not take cannot be complained about again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
