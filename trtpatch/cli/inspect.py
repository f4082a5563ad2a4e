"""`trtpatch inspect`: what an engine file is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtpatch.cli.registries import registries

if TYPE_CHECKING:
    from trtpatch.engines import EngineInfo


_KINDS = {"trt": "TensorRT plan", "ort": "ONNX file", "recorded": "recording"}


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@registries
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
def command(file: Path, registries: tuple[Path, ...], as_json: bool) -> None:
    """Show what FILE is: a TensorRT plan, an ONNX file, or a recording.

    Shows its inputs and outputs, the flavour and version of a plan, what its exporter wrote into
    it, and the rule that fits it.
    """
    from trtpatch.cli import tables
    from trtpatch.engines.inspection import inspect
    from trtpatch.errors import InputError
    from trtpatch.listing import find_rule

    if file.suffix in (".yaml", ".yml"):
        raise InputError(f"{file}: no engine; 'trtpatch check {file}' shows a pipeline file")
    info = inspect(file)
    rule, why_none = find_rule(info, registries)
    if as_json:
        tables.echo_json({"engine": info, "rule": rule, "why_no_rule": why_none})
    else:
        _show(info, f"{rule.name} ({tables.path(rule.place)})" if rule else f"none: {why_none}")


def _show(info: EngineInfo, rule: str) -> None:
    from trtpatch.cli import tables

    names = info.metadata.names
    rows = [
        ("file", info.path),
        ("kind", f"{_KINDS[info.kind]}, {info.flavour} {info.version}"),
        *(("note", note) for note in info.notes),
        *(("in", str(tensor)) for tensor in info.inputs),
        *(("out", str(tensor)) for tensor in info.outputs),
        ("rule", rule),
    ]
    if names:
        rows.append(("classes", f"{len(names)}: {_shortened(', '.join(names))}"))
    if info.metadata.stride is not None:
        rows.append(("stride", f"{info.metadata.stride} px"))
    rows += [(f"  {key}", _shortened(text)) for key, text in info.metadata.extra.items()]
    tables.echo_table(("", ""), rows, headed=False)


def _shortened(text: str, most: int = 110) -> str:
    return text if len(text) <= most else f"{text[: most - 4]} ..."
