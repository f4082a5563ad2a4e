"""YAML 1.2 with the place of every value, and what is not read."""

from pathlib import Path

import pytest
import yaml

from trtpatch.catalog import Catalog
from trtpatch.errors import SpecError
from trtpatch.spec import yamlfile
from trtpatch.spec.pipeline import PipelineSpec
from trtpatch.spec.registry import RegistrySpec
from trtpatch.spec.validate import validate


def problems(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        yamlfile.parse(text, file="a.yaml")
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),  # PyYAML reads a text
        ("1.0e-2", 0.01),
        ("-3", -3),
        ("012", 12),  # PyYAML reads octal
        ("0x10", 16),
        ("1_000", "1_000"),
        ("no", "no"),  # PyYAML reads false
        ("on", "on"),
        ("true", True),
        ("'true'", "true"),
        ("'1'", "1"),
        ("~", None),
        (".inf", float("inf")),
        ("2026-11-30", "2026-11-30"),  # PyYAML reads a date
        ("12:30:45", "12:30:45"),  # PyYAML reads a number in base 60
        ("'<<'", "<<"),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    assert yamlfile.parse(f"a: {text}", file="a.yaml").data == {"a": value}


@pytest.mark.parametrize(
    "text",
    ["a: [1, {b: c}]", "- x\n- {y: 2.5}\n", "a: &x [1, 2]\nb: *x", "a: |\n  two\n  lines\n", ""],
)
def test_where_yaml_1_1_and_1_2_agree_so_do_we(text: str) -> None:
    assert yamlfile.parse(text, file="a.yaml").data == yaml.safe_load(text)


def test_every_value_has_its_place() -> None:
    document = yamlfile.parse("a:\n  - b\n  - {c: d}\n", file="f.yaml")
    assert document.values[("a", 1, "c")] == (3, 9)
    assert document.keys[("a", 1, "c")] == (3, 6)
    assert str(document.problem(("a", 1, "nowhere"), "oh")) == "f.yaml:3:5: oh"


def test_a_key_that_stands_twice_names_both_lines() -> None:
    assert problems("a: 1\nb: 2\na: 3\n") == [
        "a.yaml:3:1: key 'a' stands twice; the first is in line 1"
    ]


@pytest.mark.parametrize(
    "text", ["a: !!python/object/apply:os.system [ls]", "a: !mine x", "a: !!set {b}"]
)
def test_a_tag_runs_nothing(text: str) -> None:
    with pytest.raises(SpecError):
        yamlfile.parse(text, file="a.yaml")


def test_text_that_is_no_yaml_says_where() -> None:
    assert problems("a: [1,\nb: 2")[0].startswith("a.yaml:2:5: not valid YAML")


def test_aliases_that_multiply_are_stopped() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
    )
    assert "more than 50000 values" in problems(bomb)[0]


def test_an_alias_to_itself_is_stopped() -> None:
    assert "nested deeper" in problems("a: &a [*a]")[0]


def test_deep_nesting_is_stopped() -> None:
    assert "nested deeper" in problems("[" * 5000)[0]


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as stream:
        stream.truncate(100 << 20)
    with pytest.raises(SpecError, match="larger than 1048576 bytes"):
        yamlfile.load(path)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a: \xe9"])
def test_bytes_that_are_no_text(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bytes.yaml"
    path.write_bytes(content)
    with pytest.raises(SpecError, match="not text in UTF-8"):
        yamlfile.load(path)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(SpecError, match="cannot be read"):
            yamlfile.load(path)


def outcome(text: str) -> object:
    try:
        return yamlfile.parse(text, file="a.yaml")
    except SpecError as error:
        return error.problems


ROOT = Path(__file__).parents[2]
FILES = [
    path.read_text(encoding="utf-8")
    for folder in ("patches", "examples", ".")
    for path in sorted((ROOT / folder).glob("*.yaml" if folder == "." else "**/*.yaml"))
]


@pytest.mark.skipif(yamlfile._FAST is None, reason="PyYAML has no libyaml here")
@pytest.mark.parametrize(
    "text",
    [
        *FILES,
        "größe: 検出\nb: {emoji: 😀, c: 1}\n😀: [x, y]\n",
        "\ufeffa: 1\n",
        "a: 1\r\nb:\r\n  - c\r\n",
        "a: |\n  two\n  lines\nb: >-\n  folded\n  text\nc: 'it''s'\nd: \"\\u00e9\\n\"\n",
        "{a: 1, b: [c, {d: e}], 'f': g}",
        "{a:1, b: http://x:80/y}",
        "a: &x {b: 1}\nc: *x\n",
        "? a\n: b\n? [c]\n: d\n",
        "%YAML 1.1\n---\na: 1\n",
        "a: 1\n---\nb: 2\n",
        "a: 1 # one\n# two\nb: x#y\n",
        "a: [1,\nb: 2",
        "a: 'open",
        "a: *none",
        "\ta: 1",
        "a: @b",
        "a: !!python/object:os.system x",
        "- a\n -b\n",
        "a: \0",
        "",
        "# nothing\n",
    ],
)
def test_libyaml_and_pyyaml_read_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = outcome(text)
    monkeypatch.setattr(yamlfile, "_FAST", None)
    assert fast == outcome(text)


@pytest.mark.parametrize("text", [r'a: "x\0y"', r'a: "\ud800"', r'"\0": 1'])
def test_texts_that_no_file_name_and_no_terminal_takes(text: str) -> None:
    assert "half a surrogate pair" in problems(text)[0]


def test_a_thousand_mistakes_are_shown_as_some(tmp_path: Path) -> None:
    text = "".join(f"unknown_{i}: 1\n" for i in range(1000))
    with pytest.raises(SpecError) as caught:
        validate(RegistrySpec, yamlfile.parse(text, file="a.yaml"))
    lines = str(caught.value).splitlines()
    assert len(lines) == SpecError.MOST_SHOWN + 1
    assert lines[0].startswith("a.yaml:1:1: unknown key 'unknown_0'")
    assert lines[-1] == "and more mistakes"


def test_what_was_found_is_shortened() -> None:
    document = yamlfile.parse(f"engine: {{path: x}}\nexecutor: {'g' * 9999}\n", file="a.yaml")
    with pytest.raises(SpecError, match=r"expected 'auto', .* found 'g{56}\.\.\.\.$"):
        validate(PipelineSpec, document)


@pytest.mark.parametrize("folder", ["n" * 300, "a.yaml/below"])
def test_a_folder_of_patches_that_cannot_be_there(tmp_path: Path, folder: str) -> None:
    (tmp_path / "a.yaml").write_text(f"patches: [{folder}]\n")
    with pytest.raises(SpecError, match=r"a\.yaml:1:11: folder of patches .* is not there"):
        Catalog([tmp_path / "a.yaml"])
