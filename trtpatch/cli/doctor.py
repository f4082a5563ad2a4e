"""`trtpatch doctor`: what this machine has, what it lacks, and how to install that."""

from __future__ import annotations

import click

_BROKEN = 2


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Tell what this machine has, lacks, and how to install that.

    Looks for a GPU, its driver, CUDA, NVRTC, CuPy, TensorRT, ONNX Runtime, a C++ compiler and the
    cache. Ends with code 2 where something that the CPU needs is broken.
    """
    from trtpatch.cli import tables
    from trtpatch.doctor import diagnose

    diagnosis = diagnose()
    if as_json:
        tables.echo_json(diagnosis)
    else:
        rows = [(f.topic, f.state, f"{f.found}\n{f.advice}".strip()) for f in diagnosis.findings]
        try:
            tables.echo_table(("", "", "found, and what to do"), rows)
        except ImportError:  # rich itself is what is broken
            for row in rows:
                click.echo("  ".join(row))
        click.echo(f"\n{diagnosis.summary}")
    if not diagnosis.healthy:
        ctx.exit(_BROKEN)
