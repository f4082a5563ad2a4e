"""`trtpatch cache`: what is kept on disk between runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trtpatch.compiler.caches import Cache, Kept

_which = click.argument("caches", nargs=-1, type=click.Choice(["kernels", "engines"]))


@click.group()
def command() -> None:
    """List, clear or fill the caches of kernels and built engines."""


@command.command("list")
@_which
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
def list_command(caches: Sequence[Cache], as_json: bool) -> None:
    """List what is kept, of all CACHES or of one.

    What was used last stands first.
    """
    from trtpatch.cli import tables
    from trtpatch.compiler.caches import CACHES, kept

    files = kept(caches or CACHES)
    if as_json:
        tables.echo_json(files)
        return
    if files:
        tables.echo_table(
            ("name", "for", "made by", ">size", "last used", "cache"),
            [
                (one.name, one.target, one.made_by, tables.amount(one.size_bytes), when, one.cache)
                for one in files
                for when in [f"{datetime.fromtimestamp(one.used):%Y-%m-%d %H:%M}"]
            ],
        )
        click.echo()
    click.echo(f"{_root()}: {_counted(files)}")


@command.command()
@_which
def clear(caches: Sequence[Cache]) -> None:
    """Remove what is kept, of all CACHES or of one.

    It is made again when it is wanted.
    """
    from trtpatch.compiler.caches import CACHES
    from trtpatch.compiler.caches import clear as clear_caches

    click.echo(f"{_root()}: removed {_counted(clear_caches(caches or CACHES))}")


@command.command()
@click.argument("pipeline", type=click.Path(path_type=Path))
@click.option(
    "--arch",
    "archs",
    metavar="SM,...",
    help="GPU architectures, such as sm_86,sm_90; this machine's GPU when not given.",
)
def warm(pipeline: Path, archs: str | None) -> None:
    """Compile the kernels of PIPELINE into the cache.

    It starts without NVRTC then.
    """
    from trtpatch.ahead import plan_ahead, units_of
    from trtpatch.cli.compile import show, split_archs
    from trtpatch.compiler.compile import cubin_for
    from trtpatch.compiler.cubins import Cubins

    wanted = split_archs(archs) if archs is not None else [_this_gpu()]
    loaded = plan_ahead(pipeline)
    cubins = Cubins()
    try:
        units = list(dict.fromkeys(units_of(loaded)))
    finally:
        loaded.engine.close()
    show([cubin_for(unit, arch=arch, cubins=cubins) for unit in units for arch in wanted])
    click.echo(f"\n{cubins.folder}: {cubins.misses} compiled, {cubins.hits} were there")


def _this_gpu() -> str:
    from trtpatch.engines.device import find_gpu
    from trtpatch.errors import EngineError, InputError

    try:
        return find_gpu().arch
    except EngineError as error:
        raise InputError(f"{error}; give --arch, such as --arch sm_86,sm_90") from None


def _root() -> Path:
    from trtpatch.compiler.cubins import cache_root

    return cache_root()


def _counted(files: Sequence[Kept]) -> str:
    from trtpatch.cli import tables

    return f"{len(files)} files, {tables.amount(sum(one.size_bytes for one in files))}"
