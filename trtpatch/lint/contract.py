"""What a contract says that cannot be, looked at alone and beside the others of its kind."""

from __future__ import annotations

import ast
import difflib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from trtpatch import builtin
from trtpatch.catalog import Catalog, Patch
from trtpatch.errors import TrtpatchError
from trtpatch.launches import MAX_BLOCK_THREADS
from trtpatch.lint.remarks import Remark, Severity, at
from trtpatch.spec.expressions import Expression
from trtpatch.spec.patch import LaunchSpec, TensorSpec
from trtpatch.spec.ports import FRAMEWORK_SIZES, PORTS
from trtpatch.spec.validate import choose, nearest
from trtpatch.spec.yamlfile import Location

FILES = ("kernel.cu", "reference.py", "cases.py")


def lint_contract(patch: Patch, catalog: Catalog) -> Iterator[Remark]:
    """Files that are missing, sizes that nothing decides, outputs without a tolerance, ports."""
    yield from _files(patch)
    yield from _sizes(patch)
    yield from _blocks(patch)
    yield from _tolerances(patch)
    yield from _kind(patch, catalog)


def remark(
    patch: Patch, where: Location, rule: str, message: str, severity: Severity = "error"
) -> Remark:
    """A remark about a place of the contract."""
    return at(patch.document.problem(where, message, at_key=True), rule, severity)


def _files(patch: Patch) -> Iterator[Remark]:
    for name in FILES:
        if not (patch.folder / name).is_file():
            message = f"there is no {name}; a patch has one"
            yield Remark("missing-file", "error", str(patch.folder / name), 0, 0, message)
    if not (patch.folder / "README.md").is_file():
        message = "there is no README.md, which says what the numbers mean"
        place = str(patch.folder / "README.md")
        yield Remark("missing-file", "warning", place, 0, 0, message)
    if (patch.folder / "reference.py").is_file():
        yield from _reference(patch, patch.folder / "reference.py")


def _reference(patch: Patch, path: Path) -> Iterator[Remark]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:  # ValueError: not UTF-8, or a zero byte
        line, column = getattr(error, "lineno", 0) or 0, getattr(error, "offset", 0) or 0
        yield Remark("reference", "error", str(path), line, column, f"is no Python: {error}")
        return
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if patch.name not in [function.name for function in functions]:
        hint = nearest(patch.name, [function.name for function in functions])
        message = f"there is no function {patch.name}(args), the reference of {patch.name}.{hint}"
        yield Remark("reference", "error", str(path), 1, 1, message)
    known = {name for name in field_names(patch) if not name.endswith("_t")}
    for node in _read(tree):
        if node.attr not in known:
            message = f"args has no field {node.attr!r}.{choose(node.attr, known)}"
            place = str(path), node.lineno, node.col_offset + 1
            yield Remark("unknown-field", "error", *place, message)


def _read(tree: ast.Module) -> Iterator[ast.Attribute]:
    """Every `args.name`."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.value.id == "args":
            yield node


def reference_reads(patch: Patch) -> set[str]:
    """The fields of `args` that the reference names; none where it cannot be read."""
    try:
        tree = ast.parse((patch.folder / "reference.py").read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return set()
    return {node.attr for node in _read(tree)}


def field_names(patch: Patch) -> frozenset[str]:
    """Every member of the generated `Args`, and what `Args::` has beside them."""
    spec = patch.spec
    tensors = [*spec.fields(spec.inputs), *spec.fields(spec.outputs), *spec.scratch]
    names = {*tensors, *(f"{name}_t" for name in tensors), *spec.params, *spec.symbols(), "N"}
    groups = [*spec.inputs.values(), *spec.outputs.values()]
    if any(isinstance(one, TensorSpec) and one.levels for one in groups):
        names |= {f"{name}_count" for name in (*tensors, *spec.symbols())}
    for name, param in spec.params.items():
        names |= {f"{name}_count"} if "[" in param.type else set()
        names |= {f"{name}_{choice.replace('-', '_')}" for choice in param.choices}
    if "frame" in spec.inputs:
        names.add("frame_layout")
        names |= {f"frame_layout_{one.replace('-', '_')}" for one in spec.frames}
    return frozenset(names)


def _sizes(patch: Patch) -> Iterator[Remark]:
    """Names that no input and no parameter decides, in the order in which they are needed."""
    spec = patch.spec
    known = {"N", *FRAMEWORK_SIZES}
    known |= {name for name, param in spec.params.items() if param.type in ("int", "[int]")}
    known |= {f"{name}_count" for name, param in spec.params.items() if "[" in param.type}
    written: list[tuple[Location, Expression]] = []
    for side, tensors in (("inputs", spec.inputs), ("outputs", spec.outputs)):
        for name, tensor in tensors.items():
            if isinstance(tensor, TensorSpec):
                known |= {f"{name}_count"} if tensor.levels else set()
                written += [((side, name, "shape", i), dim) for i, dim in enumerate(tensor.shape)]
            elif side == "inputs":
                known |= _axes(name)
    given = [one for one in written if one[0][0] == "inputs"]
    left = _solve(given, known)
    for where, dim in left:
        message = _open(dim, known)
        yield remark(patch, where, "size", message)
        known |= dim.names
    for name, size in spec.sizes.items():
        yield from _unknown(patch, ("sizes", name), size, known)
        known.add(name)
    # What an output alone decides is known where the engine takes that output.
    outputs = [one for one in written if one[0][0] == "outputs"]
    for where, dim in _solve(outputs, known):
        yield remark(patch, where, "size", _open(dim, known))
        known |= dim.names
    for name in spec.outputs.keys() & PORTS.keys():
        for axis in sorted(_axes(name) - known):
            message = f"nothing decides axis {axis} of the port {name}: add it to 'sizes'"
            yield remark(patch, ("outputs", name), "size", message)
            known.add(axis)
    for index, condition in enumerate(spec.where):
        yield from _unknown(patch, ("where", index), condition, known)
    for name, tensor in spec.scratch.items():
        for index, dim in enumerate(tensor.shape):
            yield from _unknown(patch, ("scratch", name, "shape", index), dim, known)
    for index, launch in enumerate(spec.launch):
        for key, dims in _dims(launch):
            for position, dim in enumerate(dims):
                yield from _unknown(patch, ("launch", index, key, position), dim, known)


def _axes(port: str) -> set[str]:
    """The letters in the shapes of a port."""
    shapes = (one.shape for one in PORTS[port].tensors if not one.ragged)
    return {axis for shape in shapes for axis in shape if isinstance(axis, str)}


def _dims(launch: LaunchSpec) -> Iterator[tuple[str, Sequence[Expression]]]:
    yield "over", launch.over
    yield "grid", launch.grid
    yield "block", launch.block
    yield "per_thread", (launch.per_thread,)
    yield "shared", (launch.shared,)


def _solve(
    dims: Sequence[tuple[Location, Expression]], known: set[str]
) -> list[tuple[Location, Expression]]:
    """Add to `known` what the sizes of axes decide; gives the axes that stay open."""
    left = list(dims)
    while True:
        before = len(left)
        left = [one for one in left if not _settles(one[1], known)]
        if len(left) == before:
            return left


def _settles(dim: Expression, known: set[str]) -> bool:
    """Whether an axis has no unknown symbol, or one that its size decides."""
    unknown = dim.names - known
    if len(unknown) > 1:
        return False
    try:
        if unknown and dim.solve(0, dict.fromkeys(known, 1)) is None:
            return False
    except ValueError:  # of these numbers alone
        pass
    known |= unknown
    return True


def _open(dim: Expression, known: set[str]) -> str:
    names = sorted(dim.names - known)
    if len(names) > 1:
        return f"'{dim}' leaves {' and '.join(names)} open: one size cannot decide both"
    return f"'{dim}' does not decide {names[0]}: write it with +, - and * alone"


def _unknown(patch: Patch, where: Location, dim: Expression, known: set[str]) -> Iterator[Remark]:
    for name in sorted(dim.names - known):
        message = f"'{dim}': nothing decides {name}.{choose(name, known)}"
        yield remark(patch, where, "size", message)
        known.add(name)


def _blocks(patch: Patch) -> Iterator[Remark]:
    """Blocks that launch threads for axes that there are not."""
    for index, launch in enumerate(patch.spec.launch):
        axes = len(launch.over or launch.grid)
        if launch.over and len(launch.block) > axes:
            message = (
                f"the block has {len(launch.block)} axes and 'over' {axes}: threads along the"
                " others would do the same work again"
            )
            yield remark(patch, ("launch", index, "block"), "cover", message)
        threads = math.prod(int(dim.text) for dim in launch.block if dim.text.isdecimal())
        if threads > MAX_BLOCK_THREADS:
            message = f"a block of {threads} threads; at most {MAX_BLOCK_THREADS} are allowed"
            yield remark(patch, ("launch", index, "block"), "block", message)


def _tolerances(patch: Patch) -> Iterator[Remark]:
    spec = patch.spec
    dtypes = {name: one.dtype for port in PORTS.values() for name, one in port.fields()}
    for name in spec.fields(spec.outputs):
        own = spec.outputs.get(name)
        types = own.dtype if isinstance(own, TensorSpec) else (dtypes[name],)
        if name not in spec.tolerance and any(one.startswith("float") for one in types):
            message = f"{name} has no tolerance; write 'exact', or how far it may be from reference"
            yield remark(patch, ("tolerance",), "tolerance", message)


def _kind(patch: Patch, catalog: Catalog) -> Iterator[Remark]:
    others = [other for other in _patches(catalog) if other.name != patch.name]
    same = [other for other in others if other.spec.kind == patch.spec.kind]
    if not same:
        own = builtin.is_builtin(patch.folder)  # it may be the one of its kind
        kinds = set() if own else {other.spec.kind for other in others}
        for kind in difflib.get_close_matches(patch.spec.kind, kinds, n=1, cutoff=0.8):
            message = f"no other patch is of kind {patch.spec.kind!r}. Did you mean {kind!r}?"
            yield remark(patch, ("kind",), "kind", message, "warning")
        return
    sides: dict[str, Callable[[Patch], frozenset[str]]] = {
        "inputs": lambda one: frozenset(one.spec.inputs.keys() & PORTS.keys()),
        "outputs": lambda one: frozenset(one.spec.outputs.keys() & PORTS.keys()),
    }
    for side, ports in sides.items():
        meant = Counter(ports(other) for other in same).most_common(1)[0][0]
        missing = meant - ports(patch)
        if missing:
            verb = "take" if side == "inputs" else "give"
            example = next(other.name for other in same if ports(other) == meant)
            message = (
                f"patches of kind {patch.spec.kind!r} {verb} the port"
                f" {' and '.join(sorted(missing))} ({example} does); this one cannot stand in"
            )
            meets = any(ports(patch) for ports in sides.values())
            yield remark(patch, (side,), "kind", message, "error" if meets else "warning")


def _patches(catalog: Catalog) -> Iterator[Patch]:
    for name in catalog.names:
        try:
            yield catalog.patch(name)
        except TrtpatchError:  # another patch's mistakes are its own
            continue
