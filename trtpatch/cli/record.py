"""`trtpatch record`: an engine's outputs for some pictures, kept for tests and bug reports."""

from __future__ import annotations

from pathlib import Path

import click

from trtpatch.cli.files import File


@click.command()
@click.argument("pipeline", type=click.Path(path_type=Path))
@click.argument("images", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=File(),
    metavar="FILE",
    required=True,
    help="The recording, a .npz file.",
)
@click.option(
    "--executor",
    type=click.Choice(["auto", "gpu", "cpu", "host"]),
    help="Instead of the one that the file names.",
)
def command(pipeline: Path, images: tuple[Path, ...], output: Path, executor: str | None) -> None:
    """Record what the engine of PIPELINE gives for IMAGES.

    The recording takes the engine's place anywhere: 'engine: {path: frames.npz}' gives the same
    detections for the same pictures, in the same order, without the engine. A folder stands for
    the pictures in it.
    """
    from trtpatch.errors import InputError
    from trtpatch.loaded import Loaded
    from trtpatch.pictures import find_pictures
    from trtpatch.record import record
    from trtpatch.targets import free

    if output.suffix != ".npz":
        raise InputError(f"{output}: a recording is a .npz file; give it that ending")
    pictures = find_pictures(images)
    free(output, [pipeline, *pictures])
    loaded = Loaded(pipeline, executor=executor)
    try:
        free(output, [loaded.engine.info.path])
        info = record(loaded, pictures, output)
    finally:
        loaded.engine.close()
    outputs = ", ".join(map(str, info.outputs))
    click.echo(f"{output}: pictures: {len(pictures)}, outputs: {outputs}")
