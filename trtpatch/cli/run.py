"""`trtpatch run`: find objects in pictures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtpatch.cli.files import PRINTABLE, File, Word

if TYPE_CHECKING:
    from trtpatch.cli.results import Output
    from trtpatch.engines import OpenEngine
    from trtpatch.pipeline import Pipeline


@click.command()
@click.argument("path", metavar="PIPELINE", type=click.Path(path_type=Path))
@click.argument(
    "images", type=click.Path(readable=False, path_type=Path), nargs=-1, required=True
)  # one that cannot be read must not keep the others from being looked at
@click.option(
    "--save",
    type=File(str),
    metavar="PATH",
    help="Write annotated pictures: PATH is a file for one picture; for several it is a folder, or"
    " a pattern with {name} in it.",
)
@click.option(
    "--json",
    "json_file",
    type=PRINTABLE,
    metavar="FILE",
    help="Write a list of results; - prints it.",
)
@click.option(
    "--jsonl",
    "jsonl_file",
    type=PRINTABLE,
    metavar="FILE",
    help="Write one result a line; - prints it.",
)
@click.option(
    "--executor",
    type=click.Choice(["auto", "gpu", "cpu", "host"]),
    help="Instead of the one that the file names.",
)
@click.option(
    "--set",
    "settings",
    type=Word("a name and a number"),
    metavar="NAME=VALUE",
    multiple=True,
    help="Change a runtime parameter, such as score_threshold=0.4.",
)
@click.option("--time", "timed", is_flag=True, help="Print the time of each step.")
@click.option(
    "--watch",
    "watched",
    is_flag=True,
    help="Then wait, and run again whenever the pipeline file, a registry or a patch is edited; the"
    " engine stays loaded.",
)
def command(
    path: Path,
    images: tuple[Path, ...],
    save: str | None,
    json_file: str | None,
    jsonl_file: str | None,
    executor: str | None,
    settings: tuple[str, ...],
    timed: bool,
    watched: bool,
) -> None:
    """Find objects in IMAGES with PIPELINE, a pipeline file or an engine file.

    A folder stands for the pictures in it. Of one picture a table is printed, of several a line
    each. A picture that cannot be used is reported at the end; the others are looked at all the
    same.
    """
    from trtpatch.cli.results import Output
    from trtpatch.loaded import Loaded
    from trtpatch.pictures import find_pictures, plan_copies
    from trtpatch.pipeline import Pipeline
    from trtpatch.watch import needs_watchfiles

    pictures = find_pictures(images)
    copies = plan_copies(save, pictures) if save is not None else {}
    values = dict(map(_setting, settings))
    output = partial(
        Output,
        copies,
        json_file=json_file,
        jsonl_file=jsonl_file,
        inputs=(path, *pictures),
        tables=len(pictures) == 1,
    )
    first = output()
    since = time.time()
    if watched:
        needs_watchfiles()
    loaded = Loaded(path, executor=executor)
    with closing(loaded.engine), Pipeline(loaded) as pipeline:
        first.announce(loaded)
        pipeline.set(**values)
        run = partial(_run, pipeline, loaded.engine, pictures, timed=timed)
        if watched:
            _watch(pipeline, run, output, since=since)
        else:
            run(first)


def _run(
    pipeline: Pipeline, engine: OpenEngine, pictures: Sequence[Path], output: Output, *, timed: bool
) -> None:
    """Run all pictures once.

    Raises:
        InputError: some cannot be used; the others were.
    """
    from trtpatch.cli.results import show_times
    from trtpatch.engines.recorded import RecordedEngine
    from trtpatch.errors import InputError
    from trtpatch.frame import arrange

    broken: list[InputError] = []
    times: list[dict[str, float]] = []
    if isinstance(engine, RecordedEngine):
        engine.rewind()
    with output:
        for start in range(0, len(pictures), pipeline.plan.batch):
            chunk = pictures[start : start + pipeline.plan.batch]
            times.append({})
            read = _read(chunk, times[-1], broken)
            if broken and isinstance(engine, RecordedEngine):
                raise broken[0]  # the recorded outputs would go to the wrong pictures
            if read:
                layout = pipeline.plan.frame_layout
                frames = [arrange(pixels, layout) for _, pixels in read]
                found = pipeline(frames, timings=times[-1])
                for (path, pixels), one in zip(read, found, strict=True):
                    output.add(path, pixels, one)
    if timed:
        show_times(
            times, batch=pipeline.plan.batch, executor=pipeline.executor, err=output.uses_stdout
        )
    if broken:
        lines = [str(error) for error in broken]
        if len(pictures) > 1:
            lines.insert(0, f"{len(broken)} of {len(pictures)} pictures cannot be used:")
        raise InputError("\n".join(lines))


def _watch(
    pipeline: Pipeline, run: Callable[[Output], None], output: Callable[[], Output], *, since: float
) -> None:
    """Run now, and again after each edit, for ever; errors are told and do not end it."""
    from trtpatch.errors import TrtpatchError
    from trtpatch.watch import edits

    say = partial(click.echo, err=output().uses_stdout)
    waiting = edits(lambda: pipeline.sources, since=since)
    while True:
        try:
            run(output())
        except TrtpatchError as error:
            click.echo(f"error: {error}", err=True)
        reloaded = False
        while not reloaded:
            say("\nwaiting for edits; Ctrl-C ends this")
            say(f"edited: {', '.join(map(str, next(waiting)))}")
            start = time.perf_counter()
            try:
                pipeline.reload()
            except TrtpatchError as error:
                click.echo(f"error: {error}\nwhat was loaded before goes on", err=True)
            else:
                say(f"reloaded in {(time.perf_counter() - start) * 1e3:.0f} ms")
                reloaded = True


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
    paths: Sequence[Path], timings: dict[str, float], broken: list[Any]
) -> list[tuple[Path, Any]]:
    """Read files as RGB; the errors of those that fail go to `broken`."""
    from trtpatch.errors import InputError
    from trtpatch.frame import read_image

    start = time.perf_counter()
    read = []
    for path in paths:
        try:
            read.append((path, read_image(path)))
        except InputError as error:
            broken.append(error)
    timings["read files"] = (time.perf_counter() - start) * 1e3
    return read
