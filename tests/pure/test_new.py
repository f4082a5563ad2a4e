"""`trtpatch new`: a patch that is there at once, in a folder of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import invoke
from trtpatch.catalog import Catalog
from trtpatch.lint import lint
from trtpatch.scaffold import kinds
from trtpatch.verify import compare, load_cases, plan_case, run_case

FILES = {"patch.yaml", "kernel.cu", "reference.py", "cases.py", "README.md"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", kinds())
def test_it_is_listed_without_touching_anything_else(kind: str) -> None:
    name = f"{kind}_mine"
    said = invoke("new", name, "--kind", kind).stdout
    assert all(f"patches/{name}/{file}" in said for file in FILES)
    assert {path.name for path in Path("patches", name).iterdir()} == FILES
    assert "It is a copy of " in said
    listed = json.loads(invoke("patches", "--json").stdout)
    (mine,) = [one for one in listed if one["name"] == name]
    assert mine["kind"] == kind
    catalog = Catalog([Path("registry.yaml")])
    patch = catalog.patch(name)
    assert all(launch.entry.startswith(name) for launch in patch.spec.launch)
    assert not lint(patch, catalog, compiled=False).remarks
    for case in load_cases(patch):
        plan = plan_case(patch, case)
        once, again = (run_case(plan, case, "cpu") for _ in range(2))
        assert not any(one.wrong for one in compare(patch, once, again))


def test_there_is_one_of_each_kind() -> None:
    catalog = Catalog()
    built_in = {catalog.patch(name).spec.kind for name in catalog.names}
    assert set(kinds()) == built_in | {"count"}  # a template alone


def test_no_word_of_the_template_is_left() -> None:
    for kind in ("count", "decode", "resize", "select"):
        said = invoke("new", f"{kind}_mine", "--kind", kind).stdout
        assert f"It is a copy of {kind}_example" in said
    assert not [path for path in Path("patches").rglob("*.*") if "example" in path.read_text()]


def test_headers_come_along_once() -> None:
    said = invoke("new", "mask_mine", "--kind", "mask").stdout
    header = Path("patches/sampling.cuh")
    assert str(header) in said
    assert '#include "../sampling.cuh"' in Path("patches/mask_mine/kernel.cu").read_text()
    header.write_text(header.read_text() + "// mine\n")
    assert str(header) not in invoke("new", "mask_more", "--kind", "mask").stdout
    assert header.read_text().endswith("// mine\n")


def test_a_folder_elsewhere_and_a_registry_beside_it(tmp_path: Path) -> None:
    said = invoke("new", "decode_mine", "--kind", "decode", "--dir", "a/b/kernels").stdout
    assert Path("a/b/registry.yaml").read_text().startswith("patches: [kernels]")
    assert "trtpatch check decode_mine --registry a/b/registry.yaml" in said
    assert "decode_mine" in invoke("patches", "--registry", "a/b/registry.yaml").stdout
    assert "decode_mine" not in invoke("patches").stdout


def test_a_registry_that_is_there_is_left_alone() -> None:
    registry = Path("registry.yaml")
    registry.write_text("patches: [others] # mine\n")
    Path("others").mkdir()
    said = invoke("new", "decode_mine", "--kind", "decode").stdout
    assert "write there: patches: [others, patches]" in said
    assert registry.read_text() == "patches: [others] # mine\n"
    registry.write_text("patches: [others, patches]\n")
    assert "write there" not in invoke("new", "decode_more", "--kind", "decode").stdout


@pytest.mark.parametrize("folder", ["x, y", "x: y", "#h", "[", "123", "null", "ä 'b'"])
def test_a_registry_can_be_read_whatever_the_folder_is_called(folder: str) -> None:
    invoke("new", "decode_mine", "--kind", "decode", f"--dir={folder}")
    assert Catalog([Path("registry.yaml")]).patch("decode_mine").folder.parent.name == folder
    said = invoke("new", "decode_more", "--kind", "decode", "--dir=more").stdout
    line = said.split("write there: ")[1].splitlines()[0]
    Path("registry.yaml").write_text(line)
    Catalog([Path("registry.yaml")]).patch("decode_more")


def test_a_folder_whose_name_is_not_utf8() -> None:
    said = invoke("new", "mine", "--kind", "decode", "--dir", "\udcff\udcfe", code=2).stderr
    assert said == "error: '\\udcff\\udcfe' is no name for a folder: not UTF-8\n"
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("decode_mine", "decoed", "no kind 'decoed' of patches. Did you mean 'decode'?"),
        ("hist", "histogram", "kind of your own start from the nearest of these, and change"),
        ("hist", "histogram", "  count: takes detections; gives class_counts [N, classes]\n"),
        ("hist", "histogram", "  decode: takes head [N, A, 4 + C]; gives candidates\n"),
        ("Decode-Mine", "decode", "'Decode-Mine' is no name for a patch"),
        ("../mine", "decode", "is no name for a patch"),
        ("there", "decode", "is there already"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_made(name: str, kind: str, message: str) -> None:
    Path("patches/there").mkdir(parents=True)
    assert message in invoke("new", name, "--kind", kind, code=2).stderr
    assert not list(Path("patches").rglob("*.*"))
    assert not Path("registry.yaml").exists()


def test_a_broken_registry_is_told_before_anything_is_made() -> None:
    Path("registry.yaml").write_text("ptaches: [mine]\n")
    assert "registry.yaml:1:1" in invoke("new", "decode_mine", "--kind", "decode", code=2).stderr
    assert not Path("patches").exists()


@pytest.mark.parametrize("name", ["class", "engine", "a b", "../up", "Upper", "_x", ""])
def test_what_is_no_name(name: str) -> None:
    assert "is no name for a patch" in invoke("new", name, "--kind", "decode", code=2).output


@pytest.mark.parametrize("name", ["int", "namespace", "float", "float4", "dim3", "main", "exp"])
def test_what_means_something_else_in_cuda(name: str) -> None:
    said = invoke("new", name, "--kind", "decode", code=2).output
    assert "CUDA C++ has another meaning for it; decode_" in said
    assert not list(Path().iterdir())


def test_a_folder_that_is_a_link_to_itself() -> None:
    Path("registry.yaml").write_text("patches: [own]\n")
    Path("loop").symlink_to("loop")
    said = invoke("new", "mine", "--kind", "decode", "--dir", "loop", code=2).output
    assert said.startswith("error: loop/mine: cannot be written: ")
