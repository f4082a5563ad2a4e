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
        text = str(value)
        if param is not None and text.startswith("-") and text != "-":
            raise click.UsageError(
                f"{max(param.opts, key=len)} takes {self._wanted}; found {text!r}. A file of that"
                f" name is './{text}'",
                ctx,
            )
        return super().convert(value, param, ctx)


class Word(click.types.StringParamType):
    """A text; what begins with `-` is taken for an option."""

    def __init__(self, wanted: str) -> None:
        """Say in `wanted` what the option takes."""
        self._wanted = wanted

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text, or a usage error."""
        if param is not None and str(value).startswith("-"):
            option = max(param.opts, key=len)
            raise click.UsageError(f"{option} takes {self._wanted}; found {value!r}", ctx)
        return super().convert(value, param, ctx)


PRINTABLE = File(str, wanted="a file, or - to print")
