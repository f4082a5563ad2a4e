"""A mistake that is planted in a patch is told, with its rule, file and line; a good one is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.patch_runs import PATCHES, read
from trtpatch import builtin
from trtpatch.catalog import Catalog, Patch
from trtpatch.lint import Remark, lint
from trtpatch.lint.kernel_text import KernelText

TEMPLATES = builtin.patches_folder() / "_template"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TEMPLATES / "decode_example", tmp_path / "mine/decode_example"))


def remarks(folder: Path, catalog: Catalog) -> list[Remark]:
    return list(lint(Patch.read(folder), catalog, compiled=False).remarks)


def edit(file: Path, old: str, new: str) -> int:
    """Replace a text that stands there once; gives the line of what is new."""
    text = file.read_text()
    assert text.count(old) == 1, old
    file.write_text(text.replace(old, new))
    return text[: text.index(old)].count("\n") + 1


@pytest.mark.parametrize("name", PATCHES)
def test_no_patch_has_a_remark(name: str, catalog: Catalog) -> None:
    assert not [str(one) for one in lint(read(name), catalog, compiled=False).remarks]


@pytest.mark.parametrize("path", sorted(TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_no_template_has_a_remark(path: Path, catalog: Catalog) -> None:
    assert not remarks(path, catalog)


MISTAKES = [
    ("kernel.cu", "*args.score_threshold", "*args.score_treshold", "unknown-field",
     "Args has no field 'score_treshold'. Did you mean 'score_threshold'?"),
    ("kernel.cu", "*args.score_threshold", "0.25f", "unused",
     "never uses parameter score_threshold"),
    ("kernel.cu", "args.head +", "(const float*)0 +", "unread-input", "never reads head"),
    ("kernel.cu", "append(args, image, {", "(void(Candidate{", "unwritten-output",
     "never writes candidates_boxes nor candidates_scores"),
    ("kernel.cu", 'extern "C" ', "", "entry", 'is not extern "C"'),
    ("kernel.cu", "image = blockIdx.y", "image = 0", "cover", "'N' goes along y"),
    ("kernel.cu", "anchor < args.A", "anchor < 9999", "cover", "never compares"),
    ("kernel.cu", "void decode", "void __launch_bounds__(64) decode", "cover", "64 threads"),
    ("kernel.cu", "Best best;", "float4 wide = *reinterpret_cast<const float4*>(head); Best best;",
     "alignment", "float4 needs 16 bytes of alignment, and of head 2"),
    ("kernel.cu", "    Best best;", "    extern __shared__ float row[];\n    Best best;", "shared",
     "say how many bytes in 'shared'"),
    ("patch.yaml", "entry: decode_example", "entry: decode_exmple", "entry",
     "no kernel 'decode_exmple'. Did you mean 'decode_example'?"),
    ("patch.yaml", "block: 128", "block: [32, 4]", "cover", "never reads threadIdx.y"),
    ("patch.yaml", "block: 128", "per_thread: 7, block: 128", "cover", "the number 7 is nowhere"),
    ("patch.yaml", "block: 128", "block: 2048", "block", "a block of 2048 threads; at most 1024"),
    ("patch.yaml", "[N, A, 4 + C]", "[N, A, B + C]", "size", "leaves B and C open"),
    ("patch.yaml", "over: [N, A]", "over: [N, B]", "size", "nothing decides B"),
    ("patch.yaml", "candidates_boxes: exact, ", "", "tolerance",
     "candidates_boxes has no tolerance"),
    ("patch.yaml", "kind: decode", "kind: decoed", "kind", "Did you mean 'decode'?"),
    ("patch.yaml", "kind: decode", "kind: select", "kind", "take the port candidates and geometry"),
    ("patch.yaml", "min: 0.0", "min: 0.125", "untried", "at 0.125"),
    ("reference.py", "def decode_example", "def decode_exmple", "reference",
     "no function decode_example(args)"),
    ("reference.py", "args.head[n]", "args.haed[n]", "unknown-field", "Did you mean 'head'?"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "rule", "message"), MISTAKES)
def test_a_mistake_is_told_with_its_place(
    file: str, old: str, new: str, rule: str, message: str, folder: Path, catalog: Catalog
) -> None:
    line = edit(folder / file, old, new)
    every = [one for one in remarks(folder, catalog) if one.rule == rule]
    found = [one for one in every if message in one.message]
    assert found, [str(one) for one in every]
    assert Path(found[0].file).is_file()
    assert found[0].line
    if Path(found[0].file).name == file and rule not in ("tolerance", "reference", "untried"):
        assert abs(found[0].line - line) <= 1


CASES = [
    ('{"score_threshold": 1.0}', '{"score_treshold": 1.0}',
     "case 'no candidate': there is no parameter 'score_treshold'. Did you mean 'score_thr"),
    ('"80 classes", {"head": ', '"80 classes", {"haed": ',
     "case '80 classes': there is no input 'haed'. Did you mean 'head'?"),
    ('{"score_threshold": 0.0}', '{"score_threshold": 0.0}, {"modle": (3, 3)}',
     "case 'all pass': there is no output 'modle'. Did you mean 'model'?"),
    ('{"score_threshold": 0.0}', '{"score_threshold": 2.0}',
     "case 'all pass': score_threshold: expected 0.0 to 1.0, found 2.0"),
    ('{"score_threshold": 1.0}', '{"score_threshold": 1.0}, {"model": (64, 64)}',
     "case '80 classes' and 5 more: model_W is known only where a case gives shapes={"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), CASES)
def test_a_case_that_does_not_fit_is_told_at_its_name(
    old: str, new: str, message: str, folder: Path, catalog: Catalog
) -> None:
    edit(folder / "cases.py", old, new)
    if '"model"' in new:
        edit(folder / "reference.py", "args.head[n]", "args.head[n] + 0 * args.model_W")
    found = [one for one in remarks(folder, catalog) if one.rule == "case"]
    assert message in found[0].message
    name = message.split("'")[1]
    assert f'"{name}"' in (folder / "cases.py").read_text().splitlines()[found[0].line - 1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("over: [N, A]", "over: [N, B]"),
        ("block: 128", "block: 2048"),
        ("shape: [N, A, 4 + C]", "shape: [N, Q, 4 + C]"),
    ],
)
def test_cases_do_not_repeat_what_is_wrong_with_the_contract(
    old: str, new: str, folder: Path, catalog: Catalog
) -> None:
    line = edit(folder / "patch.yaml", old, new)
    every = remarks(folder, catalog)
    assert not [str(one) for one in every if one.rule == "case"]
    assert Path(every[0].file).name == "patch.yaml"
    assert every[0].rule in ("size", "block")
    assert abs(every[0].line - line) <= 2  # an axis of an output is told there


def test_what_all_cases_share_is_told_once(folder: Path, catalog: Catalog) -> None:
    edit(folder / "patch.yaml", "where: [C >= 1]", "where: [A == 7]")
    (found,) = remarks(folder, catalog)
    assert found.message.startswith(
        "case '80 classes' and all others: 'A == 7' does not hold: A = 300"
    )


@pytest.mark.parametrize("file", ["reference.py", "cases.py", "kernel.cu", "README.md"])
def test_a_missing_file_is_told(file: str, folder: Path, catalog: Catalog) -> None:
    (folder / file).unlink()
    (found,) = [one for one in remarks(folder, catalog) if one.rule == "missing-file"]
    assert Path(found.file).name == file


def test_values_that_no_case_tries(catalog: Catalog, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(TEMPLATES / "resize_example", tmp_path / "mine/resize_example"))
    edit(folder / "cases.py", '{"color": "bgr", "scale": 1.0}', '{"scale": 1.0}')
    edit(folder / "cases.py", ', frame="bgr"', "")
    edit(folder / "cases.py", '("float32", "float16")', '("float32",)')
    told = " ".join(one.message for one in remarks(folder, catalog) if one.rule == "untried")
    assert "color at bgr" in told
    assert "image as float16" in told
    assert "frames in bgr" in told


def test_what_is_in_comments_and_strings_does_not_count(folder: Path, catalog: Catalog) -> None:
    edit(
        folder / "kernel.cu", "    Best best;", "    // args.nothing\n    /* args.no */ Best best;"
    )
    assert not remarks(folder, catalog)


def test_functions_are_told_apart() -> None:
    text = KernelText.read(read("select_nms"))
    entries = [launch.entry for launch in read("select_nms").spec.launch]
    assert set(entries) <= text.kernels.keys()
    reached = {function.name for function in text.reached(entries)}
    assert {"", *entries} <= reached
    assert reached < {"", *text.functions}
    for many in text.functions.values():
        for one in many:
            assert one.body[0] + one.body[-1] == "{}"
            assert one.body.count("{") == one.body.count("}")


def test_places_are_those_of_the_files() -> None:
    patch = read("decode_yolox")
    text = KernelText.read(patch)
    (kernel,) = text.kernels.values()
    file, line, _ = text.place(kernel.body_start)
    assert Path(file) == patch.kernel
    assert patch.kernel.read_text().splitlines()[line - 1].strip() == "{"


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("kernel.cu", b"\xff\xfe", "no readable kernel file"),
        ("reference.py", b"\0", "is no Python"),
        ("reference.py", b"\xff\xfe", "is no Python"),
        ("cases.py", b"def cases():\n    return [5]", "cases() gives 5; expected Case(...)"),
        ("cases.py", b"def cases():\n    return 5", "TypeError: 'int' object is not iterable"),
    ],
)
def test_files_that_are_something_else(
    folder: Path, catalog: Catalog, file: str, content: bytes, said: str
) -> None:
    (folder / file).write_bytes(content)
    (found,) = [one for one in remarks(folder, catalog) if one.severity == "error"]
    assert found.file == str(folder / file)
    assert said in found.message


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ("x = 1\nraise SystemExit(3)", 2, "SystemExit: 3"),
        ("def cases():\n    return {}['head']", 2, "KeyError: 'head'"),
        ("import json\n\n\ndef cases():\n    yield json.loads('')\n", 5, "JSONDecodeError: "),
        ("x = 1\ndef cases(:\n", 2, "SyntaxError: invalid syntax"),
        ("import nowhere\n", 1, "ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_cases_that_do_not_run_have_a_line(
    folder: Path, catalog: Catalog, content: str, line: int, said: str
) -> None:
    (folder / "cases.py").write_text(content)
    (found,) = [one for one in remarks(folder, catalog) if one.severity == "error"]
    assert (found.file, found.line) == (str(folder / "cases.py"), line)
    assert found.message.startswith(said)
