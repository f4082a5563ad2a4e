"""Includes of an author's own files become one text, and every line keeps its file and number."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtpatch.compiler.includes import inline_includes, place, stray_includes
from trtpatch.errors import CompileError

LABEL = "patches/mine/kernel.cu"


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    folder = tmp_path / "patches" / "mine"
    folder.mkdir(parents=True)
    return folder


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.cuh").write_text(text, encoding="utf-8")


def inline(text: str, folder: Path, **options: object) -> str:
    return inline_includes(text, folder=folder, file_label=LABEL, **options)  # type: ignore[arg-type]


def where(text: str, word: str) -> str:
    return "{}:{}:{}".format(*place(text, text.index(word), label="?"))


def problems(text: str, folder: Path) -> list[str]:
    with pytest.raises(CompileError) as caught:
        inline(text, folder)
    return [str(problem) for problem in caught.value.problems]


def test_a_text_without_includes_gets_its_first_line_named(patch: Path) -> None:
    assert inline("int a;\n", patch) == f'#line 1 "{LABEL}"\nint a;\n'


def test_every_line_keeps_its_file_and_number(patch: Path) -> None:
    (patch / "deep").mkdir()
    write(patch, near='\n#include "deep/far.cuh"\nint after_far;\n')
    write(patch / "deep", far='int far;\n#include "beside.cuh"', beside="\n\n  int beside;")
    text = inline('int first;\n#include "near.cuh"\nint second; int third;\n', patch)

    assert where(text, "first") == f"{LABEL}:1:5"
    assert where(text, "far;") == "patches/mine/deep/far.cuh:1:5"
    assert where(text, "beside;") == "patches/mine/deep/beside.cuh:3:7"
    assert where(text, "after_far") == "patches/mine/near.cuh:3:5"
    assert where(text, "second") == f"{LABEL}:3:5"
    assert where(text, "third") == f"{LABEL}:3:17"
    assert "#include" not in text


def test_an_edited_file_edits_the_text(patch: Path) -> None:
    write(patch, near="int a;")
    before = inline('#include "near.cuh"\n', patch)
    write(patch, near="int b;")
    assert inline('#include "near.cuh"\n', patch) != before


def test_the_text_does_not_depend_on_where_the_folder_is(tmp_path: Path) -> None:
    texts = set()
    for home in ("one", "two"):
        folder = tmp_path / home / "mine"
        folder.mkdir(parents=True)
        write(folder, near="int a;")
        texts.add(inline('#include "near.cuh"\n', folder))
    assert len(texts) == 1


def test_a_file_of_the_patch_beside_may_be_used(patch: Path) -> None:
    (patch.parent / "other").mkdir()
    write(patch.parent / "other", shared="int shared;")
    text = inline('#include "../other/shared.cuh"\n', patch)
    assert where(text, "shared;") == "patches/other/shared.cuh:1:5"


def test_what_the_unit_has_already_vanishes(patch: Path) -> None:
    write(patch.parent, common="int common;")
    text = inline(
        '#include "../common.cuh" // for editors\nint a;\n',
        patch,
        present=[patch.parent / "common.cuh"],
    )
    assert "int common" not in text
    assert where(text, "int a") == f"{LABEL}:2:1"


COMMENTS = """\
// #include "no.cuh"
/* #include "no.cuh"
#include "no.cuh" */
const char* a = "#include \\"no.cuh\\"";
const char* b = R"x(
#include "no.cuh"
)x";
int million = 1'000'000;
"""


def test_comments_and_strings_are_left_alone(patch: Path) -> None:
    assert inline(COMMENTS, patch) == f'#line 1 "{LABEL}"\n{COMMENTS}'
    assert not list(stray_includes(COMMENTS, label=LABEL))


def test_what_stands_behind_an_include_stays(patch: Path) -> None:
    write(patch, near="int a;")
    text = inline('/* x */ #include "near.cuh" /* goes\non */ int b;\n', patch)
    assert where(text, "int b") == f"{LABEL}:2:7"
    assert "/* goes\non */" in text


def test_files_with_marks_of_windows_and_their_own_guards(patch: Path) -> None:
    (patch / "near.cuh").write_bytes(b"\xef\xbb\xbf#pragma once\r\nint a;\r\n")
    text = inline('#pragma once\n#include "near.cuh"\n', patch)
    assert "once" not in text
    assert "\ufeff" not in text
    assert where(text, "int a") == "patches/mine/near.cuh:2:1"


def test_every_mistake_is_told_with_its_place(patch: Path) -> None:
    write(patch, near='#include "absent.cuh"\n', circle='#include "circle.cuh"\n')
    (patch / "latin.cuh").write_bytes(b"// \xe9")
    text = (
        '#include "naer.cuh"\n'
        '  #include "near.cuh"\n'
        "#include <cuda_fp16.h>\n"
        '#include "circle.cuh"\n'
        '#include "../../../etc/passwd"\n'
        '#include "/etc/passwd"\n'
        '#include "latin.cuh"\n'
        "#include NAME\n"
    )
    found = problems(text, patch)
    expected = [
        (f"{LABEL}:1:1: ", "no file", "Did you mean 'near.cuh'?"),
        ("patches/mine/near.cuh:1:1: ", "no file", "absent.cuh"),
        (f"{LABEL}:3:1: ", "#include <cuda_fp16.h>", "float16"),
        ("patches/mine/circle.cuh:1:1: ", "patches/mine/circle.cuh -> patches/mine/circle.cuh", ""),
        (f"{LABEL}:5:1: ", "outside the folder of patches", str(patch.parent)),
        (f"{LABEL}:6:1: ", "'/etc/passwd' is outside the folder of patches", ""),
        (f"{LABEL}:7:1: ", "latin.cuh cannot be read", "utf-8"),
        (f"{LABEL}:8:1: ", "#include", "no headers"),
    ]
    assert len(found) == len(expected)
    for message, (start, *parts) in zip(found, expected, strict=True):
        assert message.startswith(start), message
        assert all(part in message for part in parts), message


def test_a_link_that_leads_outside_is_outside(patch: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.cuh").write_text("int a;")
    (patch / "near.cuh").symlink_to(tmp_path / "secret.cuh")
    (message,) = problems('#include "near.cuh"\n', patch)
    assert "outside the folder of patches" in message


@pytest.mark.parametrize(
    "line",
    [
        '#include "x.cuh"',
        "#include <x>",
        "#include X",
        '  #  include "x.cuh"',
        '#/* */include "x.cuh"',
        '#\\\ninclude "x.cuh"',
        '%:include "x.cuh"',
        '#include_next "x.cuh"',
        '#import "x.cuh"',
        '#embed "x.bin"',
        '#if __has_include("x.cuh")',
    ],
)
def test_whatever_would_make_a_compiler_look_for_a_file_is_found(line: str) -> None:
    text = f'#line 7 "{LABEL}"\nint a;\n{line}\n'
    (problem,) = stray_includes(text, label="?")
    assert (problem.file, problem.line) == (LABEL, 8)


@pytest.mark.parametrize("name", ["loop.cuh", f"{'n' * 300}.cuh", "deep.cuh/below.cuh"])
def test_a_name_behind_which_no_file_can_be(patch: Path, name: str) -> None:
    (patch / "loop.cuh").symlink_to("loop.cuh")
    write(patch, deep="")
    (problem,) = problems(f'#include "{name}"', patch)
    assert problem.startswith(f"{LABEL}:1:1: ")
    assert "cannot be read" in problem
