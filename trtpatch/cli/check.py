"""`trtpatch check`: a pipeline file bound to its engine and shown, nothing compiled or run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trtpatch.report import PipelineReport, StepReport

_FROM = {"in": "<-", "out": "->", "scratch": "--"}


@click.command()
@click.argument("pipeline", type=click.Path(path_type=Path))
@click.option(
    "--executor",
    type=click.Choice(["auto", "gpu", "cpu", "host"]),
    help="Instead of the one that the file names.",
)
@click.option("--memory", is_flag=True, help="List every buffer.")
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
def command(pipeline: Path, executor: str | None, memory: bool, as_json: bool) -> None:
    """Check PIPELINE without running it.

    Shows the engine, the rule that fits it, what each patch's tensors are bound to, its sizes,
    parameters and launches, and the memory that all of it takes.
    """
    from trtpatch.cli import tables
    from trtpatch.loaded import Loaded
    from trtpatch.report import describe_pipeline

    loaded = Loaded(pipeline, executor=executor)
    try:
        report = describe_pipeline(loaded)
    finally:
        loaded.engine.close()
    if as_json:
        tables.echo_json(report)
        return
    _show_engine(report)
    for number, step in enumerate(report.steps, start=1):
        _show_step(number, step)
    _show_memory(report, memory)
    click.echo(f"\n{report.pipeline}: no mistakes found; nothing was compiled or run")


def _show_engine(report: PipelineReport) -> None:
    from trtpatch.cli import tables

    engine = report.engine
    tensors = [("in", t) for t in engine.inputs] + [("out", t) for t in engine.outputs]
    place = tables.path(report.rule_place)
    rule = f"{report.rule} ({place})" if report.rule else f"none; the chain of {place}"
    classes = f"{report.classes} with names" if report.classes else "without names"
    tables.echo_table(
        ("", ""),
        [
            ("engine", f"{engine.path}: {engine.kind}, {engine.flavour} {engine.version}"),
            *((f"  {side}", str(tensor)) for side, tensor in tensors),
            *(("note", note) for note in report.notes),
            ("rule", rule),
            ("executor", report.executor),
            ("frames", f"{report.batch} at once, {report.frame}"),
            ("classes", classes),
        ],
        headed=False,
    )


def _show_step(number: int, step: StepReport) -> None:
    from trtpatch.cli import tables

    where = f"  {tables.path(step.contract)}" if step.contract else ""
    tables.echo_title(f"\n{number} {step.name}{where}")
    tables.echo_table(
        ("field", "", "buffer", "type", "shape"),
        [
            (
                tensor.field,
                _FROM[tensor.role],
                "\n".join(tensor.buffers),
                tensor.dtype,
                "\n".join(map(tables.shape, tensor.shapes)),
            )
            for tensor in step.tensors
        ],
        headed=False,
        indent=2,
    )
    rows = []
    if step.sizes:
        rows.append(("sizes", ", ".join(f"{name} = {n}" for name, n in step.sizes.items())))
    for param in step.params:
        at_runtime = ", may change while running" if param.runtime else ""
        value = tables.value(param.value)
        rows.append(("param", f"{param.name} = {value}  ({tables.path(param.source)}{at_runtime})"))
    for launch in step.launches:
        shared = f", {launch.shared_bytes} bytes shared" if launch.shared_bytes else ""
        rows.append(("launch", f"{launch.entry} grid {launch.grid} block {launch.block}{shared}"))
    if rows:
        tables.echo_table(("", ""), rows, headed=False, indent=2)


def _show_memory(report: PipelineReport, every_buffer: bool) -> None:
    from trtpatch.cli import tables

    total = sum(report.region_bytes.values())
    parts = ", ".join(f"{name} {tables.amount(n)}" for name, n in report.region_bytes.items())
    click.echo()
    rows = [("memory", f"{tables.amount(total)}: {parts}")]
    if report.engine.scratch_bytes:
        rows.append(("", f"{tables.amount(report.engine.scratch_bytes)} more for the engine"))
    tables.echo_table(("", ""), rows, headed=False)
    if every_buffer:
        tables.echo_table(
            ("buffer", "region", "type", "shape", ">bytes"),
            [
                (b.name, b.region, b.dtype, tables.shape(b.shape), f"{b.size_bytes:,}")
                for b in report.buffers
            ],
            indent=2,
        )
