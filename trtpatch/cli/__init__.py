"""The command line: one file a command, found by its name and imported when it is wanted.

A command's file defines `command` and imports click and the standard library at its top; all else
is imported when the command runs, so that `trtpatch --help` stays quick.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from functools import cache
from typing import Any

import click

from trtpatch import __version__
from trtpatch.errors import TrtpatchError

_SHARED = ("files", "logs", "registries", "results", "tables")
_DEBUG, _VERBOSE = "trtpatch.debug", "trtpatch.verbose"
USER_ERROR, BUG, INTERRUPTED = 2, 1, 130


@cache
def _names() -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _SHARED)


class _Commands(click.Group):
    """The files of this folder as commands, and every error as the user should see it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the files that are commands."""
        return _names()

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import one command's file; None where there is no such command."""
        if name not in _names():
            return None
        command: click.Command = importlib.import_module(f"{__name__}.{name}").command
        for one in (command, *getattr(command, "commands", {}).values()):
            one.params += [option for option in _anywhere if option not in one.params]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for a name that is none, the nearest is shown."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            import difflib

            close = difflib.get_close_matches(args[0], _names(), n=1, cutoff=0.5)
            hint = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(_names())}."
            ctx.fail(f"no command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; errors become a message and an exit code."""
        if sys.stdout is None:
            click.echo("error: standard output is closed; send it to a file or /dev/null", err=True)
            ctx.exit(USER_ERROR)
        if hasattr(sys.stdout, "reconfigure"):  # names that it cannot encode are no mistake
            sys.stdout.reconfigure(errors="backslashreplace")
        from trtpatch.cli.logs import logs_on_stderr

        try:
            with logs_on_stderr(lambda: bool(ctx.meta.get(_VERBOSE))):
                return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except TrtpatchError as error:
            self._explain(ctx, f"error: {error}")
            ctx.exit(USER_ERROR)
        except (KeyboardInterrupt, BrokenPipeError):
            _forget_stdout()
            ctx.exit(INTERRUPTED)
        except OSError as error:  # a full disk, a folder that this user may not enter
            if error.filename is None:
                _forget_stdout()
            where = error.filename or "standard output"
            self._explain(ctx, f"error: {where}: {error.strerror or error}")
            ctx.exit(USER_ERROR)
        except MemoryError as error:
            self._explain(ctx, f"error: there is not enough memory. {error}".rstrip())
            ctx.exit(USER_ERROR)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            shown = ctx.meta.get(_DEBUG)
            how = "" if shown else " Run again with --debug and send what it prints along."
            self._explain(ctx, f"error: a bug in trtpatch: {what}\nPlease report it.{how}")
            ctx.exit(BUG)

    def _explain(self, ctx: click.Context, message: str) -> None:
        if ctx.meta.get(_DEBUG):
            import traceback

            click.echo(traceback.format_exc(), err=True)
        click.echo(message, err=True)


def _forget_stdout() -> None:
    """Send what is still to be flushed nowhere, so that a closed pipe makes no noise at the end."""
    import os

    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _remember(key: str) -> Any:
    def callback(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[key] = True

    return callback


_anywhere = [
    click.Option(
        ["--debug"],
        is_flag=True,
        envvar="TRTPATCH_DEBUG",
        expose_value=False,
        callback=_remember(_DEBUG),
        help="Show the traceback of an error.",
    ),
    click.Option(
        ["-v", "--verbose"],
        is_flag=True,
        expose_value=False,
        callback=_remember(_VERBOSE),
        help="Say more about what is done.",
    ),
]
"""Options that may stand before or after the command's name."""


@click.group(
    cls=_Commands,
    params=[*_anywhere],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def main() -> None:
    """CUDA patches around a TensorRT engine, chosen and chained by YAML."""
