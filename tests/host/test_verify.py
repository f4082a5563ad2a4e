"""`trtpatch verify` finds what is planted in a patch, and counts what it could not run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import Result

from tests.command import invoke
from trtpatch import builtin
from trtpatch.catalog import Patch
from trtpatch.compiler.cubins import Cubins
from trtpatch.scaffold import kinds, make_patch
from trtpatch.verify import Effort, Outcome, load_cases, verify

TEMPLATES = builtin.patches_folder() / "_template"
QUICK = Effort(shuffles=3, generated=0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TEMPLATES / "decode_example", tmp_path / "mine/decode_example"))


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, old
    file.write_text(text.replace(old, new))


def outcomes(folder: Path, cubins: Cubins, effort: Effort = QUICK) -> list[Outcome]:
    return list(verify([Patch.read(folder)], ["host"], effort=effort, cubins=cubins))


def wrong(folder: Path, cubins: Cubins, effort: Effort = QUICK) -> str:
    found = [one for one in outcomes(folder, cubins, effort) if one.status == "failed"]
    assert found
    return "\n".join(line for one in found for line in one.wrong)


@pytest.mark.parametrize("template", sorted(TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_templates_verify_under_sanitizers_too(template: Path, cubins: Cubins) -> None:
    found = outcomes(template, cubins, Effort(generated=8, sanitize=True))
    assert {one.executor for one in found} == {"host", "host sanitized"}
    assert not [(one.case, one.wrong) for one in found if not one.passed]


@pytest.mark.parametrize("kind", kinds())
def test_a_new_patch_of_each_kind_verifies_at_once(
    kind: str, tmp_path: Path, cubins: Cubins
) -> None:
    made = make_patch(f"{kind}_mine", kind=kind, patches=tmp_path / "patches")
    first = load_cases(Patch.read(made.folder))[0].name
    found = outcomes(made.folder, cubins, Effort(shuffles=1, generated=0, only=first))
    assert found
    assert not [(one.case, one.wrong) for one in found if not one.passed]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("load(head + 1), load", "load(head + 1) + 1, load", "elements are wrong, [0, "),
        ("best.index, anchor", "best.index, anchor + threadIdx.x % 2", "candidates_anchors"),
        ("above && !nan", "above && !nan && clock_of_nobody()", "does not compile on the host"),
        (
            "append(args, image,",
            "if (exists) args.candidates_nans[image] = threadIdx.x + anchor; append(args, image,",
            "depends on the order of blocks and threads",
        ),
        ("blockIdx.y, anchor", "blockIdx.y + (1 << 28), anchor", "ended with SIGSEGV"),
        (
            "const bool above",
            "args.candidates_nans[args.N] = 1;\n    const bool above",
            "writes out of bounds, 0 bytes behind the end of candidates_nans; --sanitize says",
        ),
        (
            "const bool above",
            "args.candidates_nans[-1] = 1;\n    const bool above",
            "writes out of bounds, 0 bytes before the beginning of candidates_nans; --sanitize",
        ),
    ],
    ids=["value", "integer", "compile", "order", "crash", "one too far", "one too early"],
)
def test_a_wrong_kernel(old: str, new: str, message: str, folder: Path, cubins: Cubins) -> None:
    edit(folder / "kernel.cu", old, new)
    assert message in wrong(folder, cubins)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('extern "C" __global__', "__global__", 'is not extern "C"'),
        ('extern "C" __global__', "", "kernel.cu has no kernel 'decode_example'"),
        ("Best best;", "extern __shared__ int x[]; Best best; x[0] = 1;", "in 'shared'"),
    ],
    ids=["C", "global", "shared"],
)
def test_a_kernel_that_no_gpu_could_start(
    old: str, new: str, message: str, folder: Path, cubins: Cubins
) -> None:
    edit(folder / "kernel.cu", old, new)
    first = outcomes(folder, cubins, Effort(shuffles=0, generated=0, only="one anchor"))[0]
    assert (first.case, first.status) == ("trtpatch check", "failed")
    assert message in "\n".join(first.wrong)


def test_what_is_left_from_one_walk_to_the_next(folder: Path, cubins: Cubins) -> None:
    edit(folder / "patch.yaml", "where: [C >= 1]", "scratch: {seen: {dtype: int32, shape: [N]}}")
    edit(folder / "kernel.cu", "const bool above", "if (anchor == 0) args.seen[image] += 1;\n"
         "    const bool above")  # fmt: skip
    edit(folder / "kernel.cu", "best.score, best.index", "best.score, args.seen[image]")
    assert "differs in a second walk: candidates_classes" in wrong(folder, cubins)


def test_a_wrong_reference(folder: Path, cubins: Cubins) -> None:
    edit(folder / "reference.py", "scores.max(axis=1)", "scores.max(axis=7)")
    assert "reference.py:20: AxisError" in wrong(folder, cubins)
    edit(folder / "reference.py", "scores.max(axis=7)", "scores.max(axis=1)")
    edit(folder / "reference.py", "    for n in range(args.N):", "    for n in range(args.N - 1):")
    assert "elements are wrong" in wrong(folder, cubins)
    (folder / "reference.py").unlink()
    assert "has no reference" in wrong(folder, cubins)


def test_wrong_cases(folder: Path, cubins: Cubins) -> None:
    edit(folder / "cases.py", '{"score_threshold": 1.0}', '{"treshold": 1.0}')
    found = outcomes(folder, cubins)
    (failed,) = [one for one in found if one.status == "failed"]
    assert (failed.case, failed.executor) == ("no candidate", "all")
    assert "sets no parameter 'treshold'" in failed.wrong[0]
    assert all(one.passed for one in found if one is not failed)
    (folder / "cases.py").write_text("def cases():\n    return 1 / 0\n")
    assert f"{folder / 'cases.py'}:2: ZeroDivisionError: " in wrong(folder, cubins)


def test_a_kernel_that_hangs(folder: Path, cubins: Cubins) -> None:
    edit(folder / "kernel.cu", "const bool above",
         "while (*(volatile int*)args.candidates_nans == 0) {}\n    const bool above")  # fmt: skip
    effort = Effort(shuffles=0, generated=0, workers=1, timeout_s=5)
    late, *others = outcomes(folder, cubins, effort)
    assert "was not at its end after 5 s: it loops without end, or waits" in late.wrong[0]
    assert late.seconds > 4
    assert {one.skipped for one in others} == {
        "another case of the patch was not at its end in time"
    }


def test_what_does_not_compile_is_told_once(folder: Path, cubins: Cubins) -> None:
    edit(folder / "kernel.cu", "Best best;", "Best best = nothing;")
    effort = Effort(shuffles=0, generated=8, workers=1, sanitize=True)
    found, *others = outcomes(folder, cubins, effort)
    assert "does not compile on the host" in found.wrong[0]
    assert len(others) > 10
    assert {one.skipped for one in others} == {"the patch does not compile"}


def test_the_smallest_made_up_case_is_looked_for(folder: Path, cubins: Cubins) -> None:
    """One that no case of the patch shows: the kernel is right for their shapes alone."""
    own = " || ".join(f"args.A == {a} && args.C == {c}" for a, c in ((300, 80), (35, 3), (1, 1)))
    edit(folder / "kernel.cu", "label < args.C", f"label < ({own} ? args.C : 0)")
    found = outcomes(folder, cubins, Effort(shuffles=0, generated=32))
    assert all(one.passed for one in found if not one.case.startswith("generated"))
    smallest = found[-1]
    assert smallest.case.startswith("generated 0: ")
    assert re.search(r"\b[AC] = ", smallest.case)
    assert smallest.status == "failed"


def test_what_an_author_prints_disturbs_nothing(folder: Path, cubins: Cubins) -> None:
    edit(folder / "reference.py", "    for n in", "    print('hello')\n    for n in")
    assert all(one.passed for one in outcomes(folder, cubins))


def said_by(*arguments: object, code: int) -> Result:
    return invoke("verify", *map(str, arguments), code=code)


def test_the_command_says_it_as_a_table_as_json_and_as_junit(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRTPATCH_CACHE", str(tmp_path / "cache"))
    arguments = [folder, "--generate", 0, "--shuffle", 1]
    table = said_by(*arguments, "--junit", tmp_path / "good.xml", code=0).stdout
    assert "7 passed, 0 failed, 7 skipped" in table
    assert "skipped 7 on gpu: no GPU" in table
    assert table.count("decode_example") == 1
    assert (
        "not looked for: races, reads out of bounds, and writes far outside (--sanitize)" in table
    )
    root = ElementTree.parse(tmp_path / "good.xml").getroot()
    assert [suite.get("name") for suite in root] == [
        "decode_example on host",
        "decode_example on gpu",
    ]
    assert len(root.findall(".//testcase")) == 14
    assert len(root.findall(".//skipped")) == 7
    table = said_by(*arguments, "--sanitize", "--executor", "gpu", code=2).stdout
    assert "skipped 1 on gpu sanitized: no GPU" in table
    edit(folder / "kernel.cu", "load(head + 1), load", "load(head + 1) + 1, load")
    arguments += ["--executor", "host"]
    table = said_by(*arguments, "--junit", tmp_path / "bad.xml", code=1).stdout
    assert "candidates_boxes: " in table
    assert "the largest difference is 1" in table
    root = ElementTree.parse(tmp_path / "bad.xml").getroot()
    failures = root.findall(".//failure")
    assert len(failures) == int(root[0].get("failures", "")) > 0
    said = json.loads(said_by(*arguments, "--json", code=1).stdout)
    assert len(said["outcomes"]) == said["summary"][0]["passed"] + said["summary"][0]["failed"]
    assert sum(one["status"] == "failed" for one in said["outcomes"]) == len(failures)


def test_a_fault_is_said_once_with_its_cases(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRTPATCH_CACHE", str(tmp_path / "cache"))
    edit(folder / "kernel.cu", "Best best;", "Best best; if (anchor == 0) __trap();")
    said = said_by(folder, "--generate", 0, "--shuffle", 0, "--executor", "host", code=1).stdout
    assert len(re.findall("kernel.cu:.*stopped itself", said)) == 1
    assert "in '80 classes', and 6 more cases" in said


def test_nothing_to_run_is_an_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    said = said_by(folder, "--executor", "host", "--generate", 0, code=2)
    assert "0 passed, 0 failed, 7 skipped" in said.stdout
    assert "error: nothing was run" in said.stderr
    assert "no-such-compiler" in said.stderr
    assert "cannot be written" in said_by(folder, "--junit", tmp_path / "no/x.xml", code=2).stderr
    assert "no patch is called 'decode_noone'" in said_by("decode_noone", code=2).stderr
    said = said_by(folder, "--case", "nosuch", code=2).stderr
    assert "error: no case has 'nosuch' in its name; there are:\n  decode_example: '80 " in said
