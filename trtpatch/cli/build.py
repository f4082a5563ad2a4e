"""`trtpatch build`: an ONNX file to a TensorRT plan, ahead of time."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="The plan's file."
)
@click.option(
    "--flavour",
    default="auto",
    type=click.Choice(["auto", "tensorrt", "tensorrt_rtx"]),
    help="Which TensorRT builds; the first that is installed when not given.",
)
@click.option(
    "--input-shape",
    metavar="N,C,H,W",
    help="Shape of the picture input, instead of the one that the file declares.",
)
@click.option("--no-tf32", is_flag=True, help="Full float32 in the matrix units.")
@click.option("--float16", is_flag=True, help="Half precision, where the flavour can choose.")
@click.option("--device", default=0, help="Which GPU to build on, for a flavour that needs one.")
def command(
    model: Path,
    output: Path,
    flavour: str,
    input_shape: str | None,
    no_tf32: bool,
    float16: bool,
    device: int,
) -> None:
    """Build the ONNX file MODEL to a TensorRT engine.

    TensorRT-RTX builds on any machine. The other flavours build on the GPU that will run the
    engine.
    """
    from trtpatch.cli.tables import amount
    from trtpatch.engines.build import build
    from trtpatch.engines.options import BuildOptions
    from trtpatch.errors import InputError
    from trtpatch.keep import keep

    if not output.absolute().parent.is_dir():
        raise InputError(f"{output}: cannot be written: there is no such folder")
    options = BuildOptions(
        flavour=flavour,
        tf32=not no_tf32,
        float16=float16,
        input_shape=_shape(input_shape) if input_shape else None,
    )
    plan = build(model, options, device=device)
    try:
        keep(output, plan)
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror or error}") from None
    click.echo(f"{output}: {amount(len(plan))}")


def _shape(text: str) -> tuple[int, ...]:
    """`1,3,640,640`, also with x or blanks between, as numbers."""
    from trtpatch.errors import InputError

    parts = text.strip("[]").replace("x", " ").replace(",", " ").split()
    if not parts or not all(part.isdecimal() for part in parts):
        raise InputError(f"--input-shape {text}: expected whole numbers, such as 1,3,640,640")
    return tuple(map(int, parts))
