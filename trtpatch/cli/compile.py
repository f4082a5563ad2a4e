"""`trtpatch compile`: a pipeline's kernels for several architectures, on any machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtpatch.cli.files import File

if TYPE_CHECKING:
    from trtpatch.compiler.compile import Cubin


@click.command()
@click.argument("pipeline", type=click.Path(path_type=Path))
@click.option(
    "--arch",
    "archs",
    metavar="SM,...",
    required=True,
    help="GPU architectures, such as sm_75,sm_86,sm_90.",
)
@click.option(
    "-o",
    "--output",
    type=File(),
    metavar="FOLDER",
    required=True,
    help="The bundle's folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what each kernel uses as JSON.")
def command(pipeline: Path, archs: str, output: Path, as_json: bool) -> None:
    """Compile the kernels of PIPELINE into a bundle.

    Needs neither a GPU nor a driver. A pipeline file that says 'bundle: FOLDER' takes its kernels
    from there and needs no NVRTC; a bundle that was made for another GPU, or from a patch that has
    been edited since, is refused.
    """
    from functools import partial

    from trtpatch.ahead import plan_ahead, units_of
    from trtpatch.cli import tables
    from trtpatch.compiler.bundle import write_bundle
    from trtpatch.compiler.compile import cubin_for
    from trtpatch.compiler.cubins import Cubins

    loaded = plan_ahead(pipeline)
    try:
        info = loaded.binding.engine.info
        cubins = write_bundle(
            output,
            list(units_of(loaded)),
            archs=split_archs(archs),
            compile_unit=partial(cubin_for, cubins=Cubins()),
            pipeline=str(pipeline),
            plan={
                "engine": f"{info.flavour} {info.version}, {Path(info.path).name}",
                "inputs": [str(tensor) for tensor in info.inputs],
                "outputs": [str(tensor) for tensor in info.outputs],
                "chain": list(loaded.match.chain),
                "shapes": len(loaded.shapes.all()),
            },
        )
    finally:
        loaded.engine.close()
    if as_json:
        tables.echo_json([row(cubin) for cubin in cubins])
        return
    show(cubins)
    size = tables.amount(sum(len(cubin.code) for cubin in cubins))
    click.echo(f"\n{output}: {len(cubins)} cubins, {size}, by {cubins[0].compiler}")


def split_archs(text: str) -> list[str]:
    """`sm_75,sm_86` as a list; each stands once."""
    from trtpatch.errors import InputError

    archs = list(dict.fromkeys(text.replace(",", " ").split()))
    if not archs:
        raise InputError("--arch: expected architectures such as sm_75,sm_86,sm_90, found none")
    return archs


def row(cubin: Cubin) -> dict[str, object]:
    """A cubin without its code."""
    from dataclasses import asdict

    kernels = [asdict(kernel) for kernel in cubin.kernels]
    return {"patch": cubin.name, "arch": cubin.arch, "bytes": len(cubin.code), "kernels": kernels}


def show(cubins: Sequence[Cubin]) -> None:
    """Print what each kernel uses."""
    from trtpatch.cli import tables

    tables.echo_table(
        ("patch", "arch", "kernel", ">registers", ">shared bytes", ">spilled bytes"),
        [
            (c.name, c.arch, k.name, k.registers, k.shared_bytes, k.spill_bytes)
            for c in cubins
            for k in c.kernels
        ],
    )
