"""The one text of a unit: what it is made of, and what its author may include."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import copytree

import pytest

from trtpatch import builtin
from trtpatch.catalog import Patch
from trtpatch.compiler.includes import by_file
from trtpatch.errors import CompileError
from trtpatch.unit import Unit, make_unit
from trtpatch.verify import load_cases, plan_case

NAME = "decode_yolox"


@pytest.fixture
def patch(tmp_path: Path) -> Patch:
    """A copy of a built-in patch in a folder of the author's own."""
    return Patch.read(copytree(builtin.patches_folder() / NAME, tmp_path / "mine" / NAME))


def unit_of(patch: Patch) -> Unit:
    plan = plan_case(patch, load_cases(patch)[0])
    return make_unit(next(plan.patch_steps))


def begin(patch: Patch, line: str) -> None:
    patch.kernel.write_text(f"{line}\n{patch.kernel.read_text('utf-8')}", encoding="utf-8")


def test_a_text_says_which_file_each_part_is_from(patch: Patch) -> None:
    parts = by_file(unit_of(patch).text)
    common = (builtin.patches_folder() / "common.cuh").read_text("utf-8")
    assert parts["patches/common.cuh"].strip() == common.strip()
    assert "struct Args" in parts[f"Args of {NAME}"]
    assert parts[f"mine/{NAME}/kernel.cu"].strip() == patch.kernel.read_text("utf-8").strip()


@pytest.mark.parametrize("name", ["common.cuh", "../common.cuh"])
def test_including_what_the_text_begins_with_changes_nothing(patch: Patch, name: str) -> None:
    before = by_file(unit_of(patch).text)
    begin(patch, f'#include "{name}"  // for the editor')
    after = by_file(unit_of(patch).text)
    assert after.keys() == before.keys()
    assert after["patches/common.cuh"] == before["patches/common.cuh"]


def test_a_header_of_that_name_beside_the_kernel_is_the_authors(patch: Patch) -> None:
    (patch.folder / "common.cuh").write_text("constexpr int MINE = 1;\n")
    begin(patch, '#include "common.cuh"')
    assert by_file(unit_of(patch).text)[f"mine/{NAME}/common.cuh"].strip().startswith("constexpr")


@pytest.mark.parametrize("where", ["kernel.cu", "box.cuh", "../shared.cuh"])
def test_an_edit_of_any_file_is_an_edit_of_its_part_alone(patch: Patch, where: str) -> None:
    for name in ("box.cuh", "../shared.cuh"):
        (patch.folder / name).write_text("constexpr int SIZE = 4;\n".replace("SIZE", name[-8:-4]))
        begin(patch, f'#include "{name}"')
    before = by_file(unit_of(patch).text)
    file = patch.folder / where
    file.write_text(f"{file.read_text('utf-8')}// edited\n", encoding="utf-8")
    after = by_file(unit_of(patch).text)
    changed = [name for name in before if before[name] != after[name]]
    assert [name.rpartition("/")[2] for name in changed] == [where.rpartition("/")[2]]


def test_a_missing_kernel_file_is_named(patch: Patch) -> None:
    patch.kernel.unlink()
    with pytest.raises(CompileError, match=r"kernel\.cu: decode_yolox has no readable kernel file"):
        unit_of(patch)


def test_a_mark_of_utf_8_at_the_beginning_is_no_part_of_the_text(patch: Patch) -> None:
    before = unit_of(patch).text
    patch.kernel.write_bytes(b"\xef\xbb\xbf" + patch.kernel.read_bytes().replace(b"\n", b"\r\n"))
    assert unit_of(patch).text == before


@pytest.mark.parametrize("name", ['a "b"', "a\nb", "a\\b", "caf\udce9"])
def test_a_folder_whose_name_cannot_be_quoted(patch: Patch, tmp_path: Path, name: str) -> None:
    folder = copytree(patch.folder.parent, tmp_path / name) / NAME
    text = unit_of(Patch.read(folder)).text
    assert '#line 1 "' + re.sub(r'["\\\n\udce9]', "_", name) + f'/{NAME}/kernel.cu"\n' in text
    text.encode()
