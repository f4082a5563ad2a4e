"""Tables as text, and the same data as JSON: what every command prints with."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

_WIDTH_WITHOUT_TERMINAL = 400


def echo_json(data: Any) -> None:
    """Print a dataclass, or a list or mapping of them, as JSON."""
    click.echo(as_json(data, indent=2, ascii_only=not stdout_is_unicode()))


def as_json(data: Any, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """JSON that any reader takes: a number that is none, or infinite, becomes null."""

    def text(data: Any) -> str:
        return json.dumps(
            data, indent=indent, default=_plain, ensure_ascii=ascii_only, allow_nan=False
        )

    try:
        return text(data)
    except ValueError:
        usual = json.dumps(data, default=_plain)
        return text(json.loads(usual, parse_constant=lambda _: None))


def stdout_is_unicode() -> bool:
    """Whether standard output takes all letters."""
    return "utf" in (sys.stdout.encoding or "").lower()


def echo_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str = "",
    headed: bool = True,
    indent: int = 0,
    err: bool = False,
) -> None:
    """Print a table.

    Args:
        columns: the headings; one that begins with `>` is aligned to the right.
        rows: a cell is shown as text; markup is not interpreted.
        title: a line above it.
        headed: whether the headings are shown.
        indent: blanks before each row.
        err: print on standard error.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if title:
        echo_title(title, err=err)
    table = Table(
        box=box.SIMPLE_HEAD if headed else None,
        show_header=headed,
        show_edge=False,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for number, name in enumerate(columns):
        justify: Any = "right" if name.startswith(">") else "left"
        style = "bold" if number == 0 else ""
        table.add_column(name.lstrip(">"), justify=justify, style=style, overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    _echo(table, indent, err)


def echo_title(text: str, *, err: bool = False) -> None:
    """Print a line that stands above a table."""
    click.secho(text, bold=True, err=err)


def _echo(renderable: Any, indent: int, err: bool) -> None:
    from rich.console import Console
    from rich.padding import Padding

    terminal = (sys.stderr if err else sys.stdout).isatty()
    width = shutil.get_terminal_size().columns if terminal else _WIDTH_WITHOUT_TERMINAL
    console = Console(width=width, force_terminal=terminal, highlight=False)
    with console.capture() as capture:
        console.print(Padding(renderable, (0, 0, 0, indent), expand=False))
    lines = (line.rstrip() for line in capture.get().rstrip("\n").split("\n"))
    click.echo("\n".join(lines), err=err)


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: getattr(value, field.name) for field in fields}
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def shape(sizes: Iterable[object]) -> str:
    """`[1, 3, 416, 416]`."""
    return f"[{', '.join(map(str, sizes))}]"


def amount(count_bytes: int) -> str:
    """A number of bytes for people, such as `2.1 MiB`."""
    if count_bytes < 1024:
        return f"{count_bytes} B"
    value = count_bytes / 1024
    for unit in ("KiB", "MiB"):
        if value < 1024:
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def path(place: str) -> str:
    """See `builtin.shown`."""
    from trtpatch import builtin

    return builtin.shown(place)


def value(given: object) -> str:
    """A parameter's value as YAML has it."""
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, (tuple, list)):
        return shape(map(value, given))
    return f"{given:.7g}" if isinstance(given, float) else str(given)
