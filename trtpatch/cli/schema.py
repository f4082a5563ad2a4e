"""`trtpatch schema`: JSON Schema for editors."""

from __future__ import annotations

import click


@click.command()
@click.argument("which", type=click.Choice(["patch", "registry", "pipeline"]))
def command(which: str) -> None:
    """Print the JSON Schema of a kind of YAML file.

    Editors complete and check a file that begins with
    '# yaml-language-server: $schema=pipeline.schema.json'.
    """
    from trtpatch.cli.tables import echo_json
    from trtpatch.spec.schemas import json_schema

    echo_json(json_schema(which))
