"""Types of options that take a path or a word, so that one option does not swallow the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class File(click.Path):
    """A path; what begins with `-` is taken for an option, unless it is `-` alone."""

    def __init__(self, path_type: type = Path, *, wanted: str = "a path") -> None:
        """Say in `wanted` what the option takes."""
        super().__init__(path_type=path_type)
        self._wanted = wanted

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or a usage error."""
        if str(value) != "-":
            remedy = f". A file of that name is './{value}'"
            _refuse_option(value, self._wanted, param, ctx, remedy=remedy)
        return super().convert(value, param, ctx)


class Word(click.types.StringParamType):
    """A text; what begins with `-` is taken for an option."""

    def __init__(self, wanted: str) -> None:
        """Say in `wanted` what the option takes."""
        self._wanted = wanted

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text, or a usage error."""
        _refuse_option(value, self._wanted, param, ctx)
        return super().convert(value, param, ctx)


def _refuse_option(
    value: Any,
    wanted: str,
    param: click.Parameter | None,
    ctx: click.Context | None,
    *,
    remedy: str = "",
) -> None:
    if param is not None and str(value).startswith("-"):
        option = max(param.opts, key=len)
        raise click.UsageError(f"{option} takes {wanted}; found {str(value)!r}{remedy}", ctx)


PRINTABLE = File(str, wanted="a file, or - to print")
