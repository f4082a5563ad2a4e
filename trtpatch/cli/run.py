"""`trtpatch run`: find objects in pictures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trtpatch.pipeline import Pipeline


@click.command()
@click.argument("pipeline", type=click.Path(path_type=Path))
@click.argument("images", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--save",
    metavar="PATH",
    help="Write annotated pictures: PATH is a file for one picture; for several it is a folder, or"
    " a pattern with {name} in it.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write a list of results; - prints it.")
@click.option("--jsonl", "jsonl_file", metavar="FILE", help="Write one result a line; - prints it.")
@click.option(
    "--executor",
    type=click.Choice(["auto", "gpu", "cpu", "host"]),
    help="Instead of the one that the file names.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Change a runtime parameter, such as score_threshold=0.4.",
)
@click.option("--time", "timed", is_flag=True, help="Print the time of each stage.")
def command(
    pipeline: Path,
    images: tuple[Path, ...],
    save: str | None,
    json_file: str | None,
    jsonl_file: str | None,
    executor: str | None,
    settings: tuple[str, ...],
    timed: bool,
) -> None:
    """Find objects in IMAGES with PIPELINE.

    A folder stands for the pictures in it. A picture that cannot be used is reported at the end;
    the others are looked at all the same.
    """
    from trtpatch.cli.results import Output, show_times
    from trtpatch.errors import InputError
    from trtpatch.loaded import Loaded
    from trtpatch.pictures import find_pictures, plan_copies
    from trtpatch.pipeline import Pipeline

    pictures = find_pictures(images)
    copies = plan_copies(save, pictures) if save else {}
    values = dict(map(_setting, settings))
    output = Output(copies, json_file=json_file, jsonl_file=jsonl_file)
    loaded = Loaded(pipeline, executor=executor)
    engine = loaded.engine
    replayed = engine.info.kind == "recorded"
    broken: list[InputError] = []
    times: list[dict[str, float]] = []
    with closing(engine), Pipeline(loaded) as runner, output:
        output.announce(loaded)
        runner.set(**values)
        for start in range(0, len(pictures), runner.plan.batch):
            chunk = pictures[start : start + runner.plan.batch]
            times.append({})
            read = _read(chunk, runner, times[-1], broken)
            if broken and replayed:  # the recorded outputs would go to the wrong pictures
                raise broken[0]
            if read:
                found = runner([pixels for _, pixels in read], timings=times[-1])
                for (path, pixels), one in zip(read, found, strict=True):
                    rgb = pixels[:, :, ::-1] if runner.plan.frame_bgr else pixels
                    output.add(path, rgb, one)
    if timed:
        show_times(times, batch=runner.plan.batch, err=output.uses_stdout)
    if broken:
        lines = [str(error) for error in broken]
        if len(pictures) > 1:
            lines.insert(0, f"{len(broken)} of {len(pictures)} pictures cannot be used:")
        raise InputError("\n".join(lines))


def _setting(text: str) -> tuple[str, float]:
    """`name=0.4` as name and number."""
    from trtpatch.errors import InputError

    name, equals, number = (part.strip() for part in text.partition("="))
    for read in (int, float):
        try:
            if name and equals:
                return name, read(number)
        except ValueError:
            continue
    raise InputError(f"--set {text}: expected a name and a number, such as score_threshold=0.4")


def _read(
    paths: Sequence[Path], runner: Pipeline, timings: dict[str, float], broken: list[Any]
) -> list[tuple[Path, Any]]:
    """Read files in the pipeline's channel order; the errors of those that fail go to `broken`."""
    from trtpatch.errors import InputError
    from trtpatch.frame import Color, read_image

    color: Color = "bgr" if runner.plan.frame_bgr else "rgb"
    start = time.perf_counter()
    read = []
    for path in paths:
        try:
            read.append((path, read_image(path, color=color)))
        except InputError as error:
            broken.append(error)
    timings["read files"] = (time.perf_counter() - start) * 1e3
    return read
