"""`trtpatch check`: a pipeline file bound to its engine and shown, or the lint of a patch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtpatch.cli.registries import registries

if TYPE_CHECKING:
    from trtpatch.catalog import Catalog
    from trtpatch.report import PipelineReport, StepReport

_ERRORS = 1
_FROM = {"in": "<-", "out": "->", "scratch": "--"}


@click.command()
@click.argument("target", metavar="PIPELINE|PATCH")
@click.option(
    "--executor",
    type=click.Choice(["auto", "gpu", "cpu", "host"]),
    help="Of a pipeline: instead of the one that the file names.",
)
@click.option("--memory", is_flag=True, help="Of a pipeline: list every buffer.")
@registries
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    executor: str | None,
    memory: bool,
    registries: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Check a pipeline file, or a patch, without running it.

    Of a PIPELINE, which may be an engine file: shows the engine, the rule that fits it, what each
    patch's tensors are bound to, its sizes, parameters and launches, and the memory that all of it
    takes.

    Of a PATCH, which is a name or a folder: compares contract, kernel, reference and cases, and
    compiles the kernel with what is at hand. Ends with code 1 where there are errors.
    """
    from trtpatch.catalog import Catalog
    from trtpatch.cli.registries import is_patch_folder

    path = Path(target)
    if path.is_file():
        _check_pipeline(path, executor, memory, as_json)
        return
    catalog = Catalog(registries)
    if not is_patch_folder(target) and target not in catalog.names and path.suffix:
        _check_pipeline(path, executor, memory, as_json)  # which says that there is no such file
    elif _check_patch(catalog, target, as_json):
        ctx.exit(_ERRORS)


def _check_patch(catalog: Catalog, target: str, as_json: bool) -> int:
    """Print what the lint says; gives the number of errors."""
    from trtpatch.cli import tables
    from trtpatch.cli.registries import find_patch
    from trtpatch.lint import lint

    linted = lint(find_patch(catalog, target), catalog)
    if as_json:
        tables.echo_json(linted)
        return linted.errors
    for remark in linted.remarks:
        click.echo(str(remark))
    for one in linted.untold:
        click.echo(f"note: {one}")
    warnings = len(linted.remarks) - linted.errors
    click.echo(f"{linted.patch}: errors {linted.errors}, warnings {warnings}")
    return linted.errors


def _check_pipeline(path: Path, executor: str | None, memory: bool, as_json: bool) -> None:
    from trtpatch.cli import tables
    from trtpatch.loaded import Loaded
    from trtpatch.report import describe_pipeline

    loaded = Loaded(path, executor=executor)
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
    rule = f"{report.rule} ({place})" if report.rule else "none"
    rule += f"; the chain of {report.pipeline}" if report.own_chain else ""
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
    from trtpatch.executors.gpu import DEPTH
    from trtpatch.plan import BATCH_REGIONS

    total = sum(report.region_bytes.values())
    parts = ", ".join(f"{name} {tables.amount(n)}" for name, n in report.region_bytes.items())
    click.echo()
    rows = [("memory", f"{tables.amount(total)}: {parts}")]
    if report.engine.scratch_bytes:
        rows.append(("", f"{tables.amount(report.engine.scratch_bytes)} more for the engine"))
    if report.executor == "gpu":
        more = (DEPTH - 1) * sum(report.region_bytes[region] for region in BATCH_REGIONS)
        rows.append(("", f"{tables.amount(more)} more for {DEPTH} batches under way"))
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
