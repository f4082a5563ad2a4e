"""`trtpatch patches`: what is on offer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtpatch.cli.registries import registries

if TYPE_CHECKING:
    from trtpatch.catalog import Catalog
    from trtpatch.errors import Problem
    from trtpatch.listing import PatchReport, PortReport, RuleReport


@click.command()
@click.argument("name", required=False)
@registries
@click.option("--rules", is_flag=True, help="List the rules instead.")
@click.option("--ports", is_flag=True, help="Describe the ports at which patches meet instead.")
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
def command(
    name: str | None, registries: tuple[Path, ...], rules: bool, ports: bool, as_json: bool
) -> None:
    """List all patches, or show everything about NAME, a patch or a port.

    With --rules, list which chain of patches goes with which engine, or show the rule NAME.
    """
    from trtpatch.catalog import Catalog
    from trtpatch.cli import tables
    from trtpatch.spec.ports import PORTS

    catalog = Catalog(registries)
    if rules:
        _rules(catalog, name, as_json)
    elif ports or (name in PORTS and name not in catalog.names):
        _ports(catalog, name, as_json)
    elif name is None:
        patches = _read_all(catalog)
        tables.echo_json(patches) if as_json else _show_list(patches)
    else:
        from trtpatch.errors import MatchError
        from trtpatch.listing import describe_patch

        if name not in catalog.names and name in {rule.spec.name for rule in catalog.rules}:
            raise MatchError(f"{name!r} is a rule and no patch: trtpatch patches --rules {name}")
        patch = describe_patch(catalog.patch(name))
        tables.echo_json(patch) if as_json else _show_patch(patch)


def _read_all(catalog: Catalog) -> list[PatchReport]:
    """Every patch; the mistakes of all contracts at once."""
    from trtpatch.errors import SpecError
    from trtpatch.listing import describe_patch

    reports: list[PatchReport] = []
    problems: list[Problem] = []
    for name in catalog.names:
        try:
            reports.append(describe_patch(catalog.patch(name)))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(*problems)
    return reports


def _show_list(patches: list[PatchReport]) -> None:
    from trtpatch.cli import tables

    rows = sorted(patches, key=lambda patch: (patch.kind, patch.name))
    tables.echo_table(
        ("name", "kind", "summary"), [(patch.name, patch.kind, patch.summary) for patch in rows]
    )
    click.echo("\nInputs, outputs and parameters of one: trtpatch patches NAME")
    click.echo("What the ports are that they meet at: trtpatch patches --ports")


def _show_patch(patch: PatchReport) -> None:
    from trtpatch.cli import tables

    tables.echo_title(f"{patch.name}  {patch.kind}")
    click.echo(f"{patch.summary}\n{tables.path(patch.contract)}\n")
    rows = []
    for title, part in (("in", patch.inputs), ("out", patch.outputs), ("scratch", patch.scratch)):
        rows += [(title, name, form) for name, form in part.items()]
    rows += [("size", name, f"= {size}") for name, size in patch.sizes.items()]
    rows += [("where", condition, "") for condition in patch.where]
    rows += [("launch", launch, "") for launch in patch.launches]
    rows += [("tolerance", name, form) for name, form in patch.tolerance.items()]
    tables.echo_table(("", "", ""), rows, headed=False)
    if not patch.params:
        return
    click.echo()
    tables.echo_table(
        ("param", "type", "default", "range", "help"),
        [
            (
                param["name"],
                f"{param['type']}{', runtime' if param.get('runtime') else ''}",
                tables.value(param["default"]),
                _range(param),
                param["help"],
            )
            for param in patch.params
        ],
    )


def _ports(catalog: Catalog, name: str | None, as_json: bool) -> None:
    from trtpatch.cli import tables
    from trtpatch.errors import MatchError
    from trtpatch.listing import describe_ports
    from trtpatch.spec.ports import AXES, PORTS
    from trtpatch.spec.validate import choose

    if name is not None and name not in PORTS:
        raise MatchError(f"no port is called {name!r}.{choose(name, PORTS)}")
    patches = _read_all(catalog)
    reports = [one for one in describe_ports(patches) if name in (None, one.name)]
    if as_json:
        tables.echo_json(reports[0] if name else reports)
        return
    for report in reports:
        _show_port(report)
    axes = [(axis, text) for axis, text in AXES.items()]
    tables.echo_table(("axis", ""), axes)
    if name is None:
        click.echo()
        _show_kinds(patches)


def _show_port(port: PortReport) -> None:
    from trtpatch.cli import tables

    tables.echo_title(f"{port.name}{'  a result' if port.result else ''}")
    click.echo(port.help)
    rows = [(field, form, text) for field, (form, text) in port.tensors.items()]
    rows += [("given by", ", ".join(port.given_by), ""), ("taken by", ", ".join(port.taken_by), "")]
    tables.echo_table(("", "", ""), [row for row in rows if row[1]], headed=False, indent=2)
    click.echo()


def _show_kinds(patches: list[PatchReport]) -> None:
    """What patches of a kind have in common, for one to stand in for another."""
    from trtpatch.cli import tables

    kinds: dict[str, list[PatchReport]] = {}
    for patch in patches:
        kinds.setdefault(patch.kind, []).append(patch)
    rows = []
    for kind, members in sorted(kinds.items()):
        sides = (
            [_ports_of(one.inputs) for one in members],
            [_ports_of(one.outputs) for one in members],
        )
        shared = [
            ", ".join(name for name in side[0] if all(name in one for one in side))
            for side in sides
        ]
        rows.append((kind, *shared))
    tables.echo_table(("kind", "takes", "gives"), rows)


def _ports_of(tensors: Mapping[str, str]) -> list[str]:
    return [name for name, form in tensors.items() if form == "port"]


def _range(param: Mapping[str, Any]) -> str:
    if param.get("choices"):
        return " or ".join(map(str, param["choices"]))
    low, high = param.get("min"), param.get("max")
    if low is None and high is None:
        text = ""
    elif high is None:
        text = f"{low} or more"
    else:
        text = f"{low} to {high}" if low is not None else f"up to {high}"
    length = f"{param['length']} values" if param.get("length") else ""
    return ", ".join(part for part in (length, text) if part)


def _rules(catalog: Catalog, name: str | None, as_json: bool) -> None:
    from trtpatch.cli import tables
    from trtpatch.listing import describe_rule

    rules = [catalog.rule(name)] if name else catalog.rules
    reports = [describe_rule(rule) for rule in rules]
    if as_json:
        tables.echo_json(reports[0] if name else reports)
        return
    for report in reports:
        _show_rule(report)


def _show_rule(rule: RuleReport) -> None:
    from trtpatch.cli import tables

    tables.echo_title(f"{rule.name}  {tables.path(rule.place)}")
    rows = [("", rule.help)] if rule.help else []
    rows += [("in", f"{name} {form}") for name, form in rule.inputs.items()]
    rows += [("out", f"{name} {form}") for name, form in rule.outputs.items()]
    rows += [("where", condition) for condition in rule.where]
    rows += [("metadata", f"{key}: {text}") for key, text in rule.metadata.items()]
    rows += [("without them", f"{name} = {value}") for name, value in rule.usual.items()]
    rows.append(("chain", ", ".join(rule.chain)))
    for patch, params in rule.params.items():
        given = ", ".join(f"{name} = {tables.value(value)}" for name, value in params.items())
        rows.append(("params", f"{patch}: {given}"))
    tables.echo_table(("", ""), rows, headed=False, indent=2)
    click.echo()
