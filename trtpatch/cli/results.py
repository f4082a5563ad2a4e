"""Where the results of `trtpatch run` go: tables, JSON and annotated pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from trtpatch.errors import InputError
from trtpatch.targets import free, writing

if TYPE_CHECKING:
    import numpy as np

    from trtpatch.detections import Counters, Detections
    from trtpatch.labels import Classification, Segmentation
    from trtpatch.loaded import Loaded

_STDOUT = "-"
_OFF_GPU = {"cpu": "the NumPy references", "host": "the kernels as C++ on the CPU"}


class Output:
    """Takes one picture's result after the other; a context, so that files are finished."""

    def __init__(
        self,
        copies: Mapping[Path, Path],
        *,
        json_file: str | None,
        jsonl_file: str | None,
        inputs: Collection[Path] = (),
        tables: bool,
    ) -> None:
        """Check the targets before anything else is done.

        Args:
            copies: where the annotated copy of each picture goes; empty for none.
            json_file, jsonl_file: files, `-` for standard output.
            inputs: files that are read, which no target may be.
            tables: whether to print all that is found, and not a line a picture, where standard
                output is free.

        Raises:
            InputError: a target cannot be written, or would overwrite another file of the run.
        """
        from trtpatch.cli.tables import stdout_is_unicode

        targets = [one for one in (json_file, jsonl_file) if one is not None]
        self.uses_stdout = _STDOUT in targets
        if targets == [_STDOUT, _STDOUT]:
            raise InputError("--json and --jsonl cannot both print; give one of them a file")
        self._copies = copies
        self._json_file = json_file
        self._jsonl_file = jsonl_file
        self._tables = tables and not self.uses_stdout
        self._rows: list[str] = []
        self._lines: IO[str] | None = None
        self._ascii = self.uses_stdout and not stdout_is_unicode()
        self._files = [target for target in targets if target != _STDOUT]
        taken: list[str | Path] = [*inputs, *copies.values()]
        for target in self._files:
            taken.append(free(target, taken))

    def __enter__(self) -> Output:
        if self._jsonl_file not in (None, _STDOUT):
            with writing(str(self._jsonl_file)):
                self._lines = _open(str(self._jsonl_file))
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._lines is not None:
            with writing(str(self._jsonl_file)):
                self._lines.close()
        if kind is not None or self._json_file is None:
            return
        text = "[\n" + ",\n".join(self._rows) + "\n]"
        if self._json_file == _STDOUT:
            click.echo(text)
            return
        with writing(self._json_file), _open(self._json_file) as file:
            file.write(text + "\n")

    def announce(self, loaded: Loaded) -> None:
        """Say who runs the pipeline.

        Raises:
            InputError: a target would overwrite a file that belongs to it.
        """
        info = loaded.engine.info
        for target in self._files:
            free(target, (info.path, *loaded.sources))
        who = f"executor {loaded.executor_name}, engine {info.flavour} {info.version}"
        click.echo(f"{loaded.path}: {who}", err=self.uses_stdout)

    def add(
        self,
        path: Path,
        pixels: np.ndarray[Any, Any],
        found: Detections | Classification | Segmentation,
    ) -> None:
        """Take the result of one picture.

        Args:
            path: the picture's file.
            pixels: `[H, W, 3]` uint8 RGB.
            found: what is in it.
        """
        from trtpatch.cli.tables import as_json
        from trtpatch.outputs import in_words

        row = as_json({"image": str(path), **found.to_dict()}, ascii_only=self._ascii)
        if self._json_file is not None:
            self._rows.append(row)
        if self._lines is not None:
            with writing(str(self._jsonl_file)):
                click.echo(row, file=self._lines)
        elif self._jsonl_file is not None:
            click.echo(row)
        copy = self._copies.get(path)
        if copy is not None:
            from trtpatch.drawing import draw
            from trtpatch.pictures import save_picture

            save_picture(draw(pixels, found), copy)
        drawn = f" -> {copy}" if copy else ""
        if self._tables:
            _show_table(path, found, drawn)
        else:
            click.echo(f"{path}: {_in_words(found)}{drawn}", err=self.uses_stdout)
        for name, array in found.outputs.items():
            click.echo(f"  {in_words(name, array)}", err=self.uses_stdout)


def show_times(
    times: Sequence[Mapping[str, float]], *, batch: int, executor: str, err: bool
) -> None:
    """Print milliseconds a step: of the first batch, and the mean of those after it.

    Args:
        times: of each batch, step to milliseconds.
        batch: most pictures in a batch.
        executor: who ran the patches.
        err: print on standard error.
    """
    from trtpatch.cli import tables

    first, later = times[0], times[1:]
    steps = list(dict.fromkeys(step for one in times for step in one))
    columns = ["step", ">first, ms"] + ([f">mean of {len(later)} more, ms"] if later else [])
    rows = []
    for step in steps:
        means = [sum(one.get(step, 0.0) for one in later) / len(later)] if later else []
        rows.append([step, *(f"{ms:.2f}" for ms in (first.get(step, 0.0), *means))])
    totals = [sum(float(row[i]) for row in rows) for i in range(1, len(columns))]
    rows.append(["all", *(f"{ms:.2f}" for ms in totals)])
    what = f"a batch of up to {batch}" if batch > 1 else "a picture"
    title = f"Time of {what} on {executor}; the first one sets things up"
    tables.echo_table(columns, rows, title=f"\n{title}", err=err)
    if executor != "gpu":
        click.echo(f"Not what a GPU takes: executor {executor} runs {_OFF_GPU[executor]}", err=err)


def _show_table(path: Path, found: Detections | Classification | Segmentation, drawn: str) -> None:
    from trtpatch.cli import tables
    from trtpatch.detections import Detections

    number = f", {len(found)} found" if isinstance(found, Detections) else ""
    tables.echo_title(f"\n{path}  {found.width} x {found.height} px{number}{drawn}")
    columns, rows = _table(found)
    if rows:
        tables.echo_table(columns, rows)
    if isinstance(found, Detections):
        click.echo(_counted(found.counters))


def _table(
    found: Detections | Classification | Segmentation,
) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Columns and rows; numbers go to the right."""
    from trtpatch.detections import Detections
    from trtpatch.labels import Classification

    if isinstance(found, Detections):
        objects = zip(found.names, found.scores.tolist(), found.boxes.tolist(), strict=True)
        return ("name", ">score", ">x1", ">y1", ">x2", ">y2"), [
            (name, f"{score:.3f}", *(f"{side:.1f}" for side in box)) for name, score, box in objects
        ]
    if isinstance(found, Classification):
        classes = zip(found.names, found.scores.tolist(), strict=True)
        return ("name", ">score"), [(name, f"{score:.3f}") for name, score in classes]
    return ("name", ">pixels"), [(_named(area), str(area["pixels"])) for area in found.areas()]


def _in_words(found: Detections | Classification | Segmentation) -> str:
    from trtpatch.detections import Detections
    from trtpatch.labels import Classification

    if isinstance(found, Detections):
        named = Counter(found.names) if found.class_names else {}
        what = ", ".join(f"{number} {name}" for name, number in named.items())
        return f"{what or f'{len(found)} found'} ({_counted(found.counters)})"
    if isinstance(found, Classification):
        return f"{found.names[0]} ({found.scores[0]:.3f})"
    return ", ".join(map(_named, found.areas()))


def _named(area: Mapping[str, Any]) -> str:
    return str(area["label"] if area["name"] is None else area["name"])


def _counted(counters: Counters) -> str:
    """What became of the candidates; what dropped none is left out."""
    dropped = [
        f"{number} {why}"
        for number, why in (
            (counters.dropped_topk, "by top-k"),
            (counters.dropped_max, "by the maximum"),
            (counters.dropped_nan, "not a number"),
        )
        if number
    ]
    kept = f"{counters.candidates} candidates, {counters.kept} kept"
    return "; ".join([kept, *([f"dropped: {', '.join(dropped)}"] if dropped else [])])


def _open(path: str) -> IO[str]:
    return Path(path).open("w", encoding="utf-8", errors="backslashreplace")
