"""`trtpatch build`: an ONNX file to a TensorRT plan, ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from trtpatch.cli.files import File


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=File(), metavar="FILE", required=True, help="The plan's file.")
@click.option(
    "--flavour",
    default="auto",
    type=click.Choice(["auto", "tensorrt", "tensorrt_rtx"]),
    help="Which TensorRT builds; the first that is installed when not given.",
)
@click.option(
    "--batch",
    metavar="N",
    type=click.IntRange(min=1),
    help="Pictures at once, at most and best, where the file leaves that open.",
)
@click.option(
    "--shape",
    "shapes",
    metavar="[INPUT=]SHAPE",
    multiple=True,
    help="1x3x640x640, instead of what the file declares, -1 for a size that is open; or bounds of"
    " the open sizes, MIN:OPT:MAX, each such a shape. For several inputs, once for each by name.",
)
@click.option(
    "--no-tf32",
    is_flag=True,
    help="Full float32 in the matrix units; TensorRT-RTX 1.4 does not heed it.",
)
@click.option("--float16", is_flag=True, help="Half precision, where the flavour can choose.")
@click.option("--device", default=0, help="Which GPU to build on, for a flavour that needs one.")
def command(
    model: Path,
    output: Path,
    flavour: str,
    batch: int | None,
    shapes: tuple[str, ...],
    no_tf32: bool,
    float16: bool,
    device: int,
) -> None:
    """Build the ONNX file MODEL to a TensorRT engine.

    Where MODEL leaves sizes open, the engine takes those between bounds: trtexec's --minShapes,
    --optShapes and --maxShapes are --shape MIN:OPT:MAX here, as in
    images=1x3x320x320:8x3x640x640:16x3x640x640.

    TensorRT-RTX builds on any machine. The other flavours build on the GPU that will run the
    engine.
    """
    from trtpatch.cli.tables import amount
    from trtpatch.engines.build import build
    from trtpatch.engines.options import BuildOptions
    from trtpatch.errors import InputError
    from trtpatch.keep import keep
    from trtpatch.targets import free, writing

    free(output, [model])
    options = BuildOptions(
        flavour=flavour,
        tf32=not no_tf32,
        float16=float16,
        batch=batch,
        **_shapes(shapes),
    )
    if batch and options.profile:
        raise InputError(f"--batch {batch}: the bounds that --shape gives tell the batch already")
    plan = build(model, options, device=device)
    with writing(output):
        keep(output, plan)
    click.echo(f"{output}: {amount(len(plan))}")


def _shapes(texts: Sequence[str]) -> dict[str, Any]:
    """What is given as `--shape`, as `input_shape` and `profile` of the options."""
    from trtpatch.errors import InputError

    given: dict[str, dict[str, Any]] = {"input_shape": {}, "profile": {}}
    for text in texts:
        name, _, sizes = text.rpartition("=")
        shapes = tuple(_shape(text, part) for part in sizes.split(":"))
        if len(shapes) not in (1, 3):
            raise InputError(f"--shape {text}: expected one shape, or three as MIN:OPT:MAX")
        kind = given["profile" if len(shapes) == 3 else "input_shape"]
        if name in kind or (kind and "" in (name, *kind)):
            raise InputError(f"--shape {text}: there is another; say which input, as in images=...")
        kind[name] = shapes if len(shapes) == 3 else shapes[0]
    return {kind: named.get("", named) or None for kind, named in given.items()}


def _shape(option: str, text: str) -> tuple[int, ...]:
    """`1x3x640x640`, also with commas or blanks between, as numbers."""
    from trtpatch.errors import InputError

    parts = text.strip("[]").replace("x", " ").replace(",", " ").split()
    try:
        return tuple(map(int, parts or ["none"]))
    except ValueError:
        raise InputError(
            f"--shape {option}: expected whole numbers, such as 1x3x640x640, found {text!r}"
        ) from None
