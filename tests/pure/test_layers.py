"""The house: imports go one way, heavy ones wait, and no framework file knows a patch's name."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import trtpatch
from trtpatch import builtin

PACKAGE = Path(trtpatch.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
HEAVY = {"cupy", "cupy_backends", "tensorrt", "tensorrt_rtx", "onnxruntime", "onnx", "PIL", "rich"}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_at_load(path: Path) -> set[str]:
    """Modules imported when the file is, `if TYPE_CHECKING` left out."""
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_no_import_cycles() -> None:
    modules = {name_of(path): path for path in FILES}
    graph = {
        name: {one for one in imports_at_load(path) if one in modules and one != name}
        for name, path in modules.items()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name not in done:
            for needed in graph[name]:
                visit(needed, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    tops = {name.split(".")[0] for name in imports_at_load(path)}
    allowed = {"rich"} if path.name == "tables.py" else set()
    assert not tops & HEAVY - allowed


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_framework_file_knows_a_patch(path: Path) -> None:
    names = [folder.name for folder in builtin.patches_folder().iterdir() if folder.is_dir()]
    assert names
    text = path.read_text(encoding="utf-8")
    known = [name for name in names if re.search(rf"\b{name}\b", text) and "_" in name[1:]]
    assert not known


def test_import_trtpatch_loads_nothing_heavy() -> None:
    code = "import sys, trtpatch; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert not loaded & (HEAVY | {"numpy", "pydantic", "yaml", "click"})
