"""`trtpatch new`: a patch of one's own, from a template that works."""

from __future__ import annotations

import os
from pathlib import Path

import click

from trtpatch.cli.files import File, Word


@click.command()
@click.argument("name")
@click.option(
    "--kind",
    type=Word("a kind of patches"),
    required=True,
    help="What it is to stand in for, such as decode; a word that is no kind lists them.",
)
@click.option(
    "--dir",
    "patches",
    type=File(),
    metavar="FOLDER",
    default=Path("patches"),
    show_default=True,
    help="The folder of patches to put it in.",
)
def command(name: str, kind: str, patches: Path) -> None:
    """Make the patch NAME.

    Writes a folder with contract, kernel, reference, cases and README, which works as it is, and a
    registry.yaml beside the folder of patches where there is none. It is a copy of the template of
    its kind, or of the shortest built-in patch where there is no template.
    """
    from trtpatch.scaffold import make_patch

    made = make_patch(name, kind=kind, patches=patches)
    for file in made.files:
        click.echo(file)
    registry = Path(os.path.relpath(made.registry))
    if made.new_registry:
        click.echo(registry)
    elif made.to_add:
        click.echo(f"\n{registry} does not name {patches} yet; write there: {made.to_add}")
    where = "" if registry == Path("registry.yaml") else f" --registry {registry}"
    click.echo(f"\nIt is a copy of {made.model}, for you to change.")
    click.echo(f"Next: trtpatch check {name}{where}, then trtpatch verify {name}{where}")
