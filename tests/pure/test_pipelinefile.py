"""Engine files in the place of a pipeline file, and what is told with its line in one."""

from pathlib import Path

import pytest

from tests.command import invoke
from tests.recorded import write_recording
from trtpatch.errors import EngineError, MatchError, SpecError, TrtpatchError
from trtpatch.loaded import Loaded


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_recording(tmp_path)


def refused(text: str, kind: type[TrtpatchError] = EngineError) -> str:
    Path("p.yaml").write_text(text)
    with pytest.raises(kind) as caught:
        Loaded(Path("p.yaml"), executor="cpu")
    return str(caught.value)


def test_an_engine_file_does_where_a_pipeline_file_is_expected(folder: Path) -> None:
    assert "a.png  64 x 32 px, 1 found" in invoke("run", "tiny.npz", "a.png").stdout
    assert "rule      yolov8 (built-in registry.yaml:" in invoke("check", "tiny.npz").stdout
    invoke("record", "tiny.npz", "a.png", "-o", "again.npz")
    assert folder / "tiny.npz" not in Loaded(folder / "tiny.npz").sources  # it stays open


def test_an_engine_file_that_is_none_is_told_as_one(folder: Path) -> None:
    for name in ("none.onnx", "none.engine", "none.plan", "none.trt"):
        assert invoke("run", name, "a.png", code=2).stderr == f"error: {name}: no such file\n"
    (folder / "damaged.onnx").write_bytes(b"\xff" * (1 << 21))
    assert "damaged.onnx: not an engine" in invoke("run", "damaged.onnx", "a.png", code=2).stderr


def test_the_path_of_an_engine_may_stand_alone(folder: Path) -> None:
    (folder / "p.yaml").write_text("engine: tiny.npz\nexecutor: cpu\n")
    assert Loaded(folder / "p.yaml").spec.engine.path == "tiny.npz"
    assert "p.yaml:1:9: expected a mapping with the keys path" in refused("engine: 3", SpecError)


def test_a_wrong_engine_has_its_place_and_the_nearest_name(folder: Path) -> None:
    message = refused("batch: 1\nengine: {kind: auto, path: tin.npz}\n")
    assert message == "p.yaml:2:28: tin.npz: no such file. Did you mean 'tiny.npz'?"
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff" + bytes(30))
    message = refused("executor: cpu\nengine: {path: photo.jpg}\n")
    assert message.startswith("p.yaml:2:16: photo.jpg: not an engine")
    assert message.endswith("it is a JPEG picture")


REGISTRY = """\
rules:
  - name: mine
    inputs: {image: [N, 3, H, W]}
    outputs: {head: [N, 4 + C, A]}
    chain: [resize_letterbox, engine, decode_yolov8, select_nms]
"""


def test_a_wrong_registry_has_its_place_and_the_nearest_name(folder: Path) -> None:
    (folder / "registry.yaml").write_text(REGISTRY)
    message = refused("engine: tiny.npz\nregistry:\n  - registry.yaml\n  - regisry.yaml", SpecError)
    assert (
        message == "p.yaml:4:5: registry 'regisry.yaml' is not there. Did you mean 'registry.yaml'?"
    )


def test_a_registry_beside_the_file_that_has_what_is_missing(folder: Path) -> None:
    (folder / "registry.yaml").write_text(REGISTRY)
    hint = "registry.yaml beside p.yaml has what is missing: write 'registry: [registry.yaml]'"
    message = refused("engine: tiny.npz\nrule: mine\n", MatchError)
    assert message.startswith("p.yaml:2:7: no rule is called 'mine'.")
    assert hint in message
    assert hint not in refused("engine: tiny.npz\nrule: other\n", MatchError)

    invoke("new", "select_mine", "--kind", "select")
    chain = "chain: [resize_letterbox, engine, decode_yolov8, select_mine]\n"
    (folder / "registry.yaml").write_text("patches: [patches]\n")
    assert hint in refused(f"engine: tiny.npz\n{chain}", MatchError)
    registry = "registry: [registry.yaml]\n"
    (folder / "p.yaml").write_text(f"engine: tiny.npz\n{registry}{chain}")
    assert Loaded(folder / "p.yaml", executor="cpu").plan.steps[-1].name == "select_mine"


def test_inspect_sends_a_pipeline_file_to_check(folder: Path) -> None:
    assert "'trtpatch check p.yaml' shows" in invoke("inspect", "p.yaml", code=2).stderr
