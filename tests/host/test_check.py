"""`trtpatch check PATCH` asks the compilers at hand, and says what it could not ask them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command import invoke
from trtpatch import builtin
from trtpatch.catalog import Catalog, Patch
from trtpatch.compiler.cubins import Cubins
from trtpatch.lint import Linted, lint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    template = builtin.patches_folder() / "_template/decode_example"
    return Path(shutil.copytree(template, tmp_path / "mine/decode_example"))


def edit(file: Path, old: str, new: str) -> int:
    """Replace a text that stands there once; gives its line."""
    text = file.read_text()
    assert text.count(old) == 1, old
    file.write_text(text.replace(old, new))
    return text[: text.index(old)].count("\n") + 1


def linted(folder: Path, cubins: Cubins) -> Linted:
    return lint(Patch.read(folder), Catalog(), cubins=cubins)


def test_a_good_patch_has_no_remark(folder: Path, cubins: Cubins) -> None:
    found = linted(folder, cubins)
    assert not found.remarks
    assert not found.untold


UNSET = "float sum;\n    if (anchor > 3) sum += 1.0f;\n    Best best;"


@pytest.mark.parametrize("compiler", ["g++", "clang++", "none"])
def test_a_variable_that_is_read_before_it_has_a_value(
    compiler: str, folder: Path, cubins: Cubins, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiler == "none":
        pytest.importorskip("cuda.pathfinder")
    elif not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    monkeypatch.setenv("CXX", compiler)
    line = edit(folder / "kernel.cu", "Best best;", UNSET) + 1
    edit(folder / "kernel.cu", "best.score, best.index", "best.score + sum, best.index")
    for _ in range(2):  # compiled, and from the cache
        (found,) = linted(folder, cubins).remarks
        assert (found.severity, found.rule) == ("warning", "compile")
        assert (found.file, found.line) == (str(folder / "kernel.cu"), line)
        assert "sum" in found.message


def test_errors_stand_before_warnings(folder: Path, cubins: Cubins) -> None:
    edit(folder / "patch.yaml", "min: 0.0", "min: 0.125")
    edit(folder / "kernel.cu", "Best best;", "Best best = nothing;")
    found = [one.severity for one in linted(folder, cubins).remarks]
    assert found == sorted(found)
    assert {*found} == {"error", "warning"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Best best;", "Best best = nothing;", "nothing"),
        (
            "> *args.score_threshold",
            "> args.score_threshold",
            "; score_threshold is a runtime parameter: read it as *args.score_threshold",
        ),
        ("Best best;", 'Best best; asm volatile("");', "inline PTX cannot be used on the host"),
    ],
)
def test_what_does_not_compile_is_told_once_with_its_place(
    old: str, new: str, said: str, folder: Path, cubins: Cubins
) -> None:
    line = edit(folder / "kernel.cu", old, new)
    found = [one for one in linted(folder, cubins).remarks if one.line == line]
    assert [one.rule for one in found] == ["compile"]
    assert found[0].file == str(folder / "kernel.cu")
    assert said in found[0].message


def test_a_compiler_that_is_not_there_is_told(
    folder: Path, cubins: Cubins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    found = linted(folder, cubins)
    assert not found.remarks
    (untold,) = found.untold
    assert untold.startswith("not compiled for the host: ")
    assert "no-such-compiler" in untold


def test_without_a_case_that_fits_nothing_is_compiled(folder: Path, cubins: Cubins) -> None:
    (folder / "cases.py").write_text("def cases():\n    return []\n")
    found = linted(folder, cubins)
    assert found.untold == ("not compiled: no case gives sizes to compile for",)


def test_the_command_ends_with_1_where_there_are_errors(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRTPATCH_CACHE", str(tmp_path / "cache"))
    assert "decode_example: errors 0, warnings 0" in invoke("check", str(folder)).stdout
    line = edit(folder / "kernel.cu", "Best best;", "Best best = nothing;")
    said = invoke("check", str(folder), code=1).stdout
    assert f"{folder / 'kernel.cu'}:{line}:" in said
    assert "errors 1, warnings 0" in said
    (remark,) = json.loads(invoke("check", str(folder), "--json", code=1).stdout)["remarks"]
    assert (remark["rule"], remark["severity"], remark["line"]) == ("compile", "error", line)
