"""`run` on recorded outputs whose boxes are known by hand."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import trtpatch
from tests.command import invoke
from tests.recorded import HEIGHT, WIDTH, deny, head, write_recording
from trtpatch.cli.tables import as_json
from trtpatch.engines import EngineInfo, Tensor
from trtpatch.engines.recorded import RecordedFrame, save_recording
from trtpatch.errors import EngineError
from trtpatch.executors import gpu_found

FOUND = {
    "width": WIDTH,
    "height": HEIGHT,
    "detections": [{"box": [24.0, 12.0, 40.0, 20.0], "score": 0.75, "label": 1, "name": "dog"}],
    "counters": {
        "candidates": 2,
        "kept": 1,
        "dropped_topk": 0,
        "dropped_max": 0,
        "dropped_nan": 1,
    },
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_recording(tmp_path)


def test_json_is_exactly_what_is_promised(folder: Path) -> None:
    text = invoke("run", "p.yaml", "a.png", "b.png", "--json", "-").stdout
    assert json.loads(text) == [{"image": "a.png", **FOUND}, {"image": "b.png", **FOUND}]
    first = json.loads(text)[0]
    assert list(first) == ["image", "width", "height", "detections", "counters"]
    assert list(first["detections"][0]) == ["box", "score", "label", "name"]


def test_json_lines_are_the_same_objects(folder: Path) -> None:
    invoke("run", "p.yaml", "a.png", "b.png", "--jsonl", "out.jsonl", "--json", "out.json")
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == json.loads((folder / "out.json").read_text())
    assert len(lines) == 2


def test_table_shows_boxes_and_what_was_dropped(folder: Path) -> None:
    text = invoke("run", "p.yaml", "a.png").stdout
    assert re.search(r"dog +0\.750 +24\.0 +12\.0 +40\.0 +20\.0", text)
    assert "2 candidates, 1 kept; dropped: 1 not a number\n" in text
    assert "executor cpu" in text


def test_a_runtime_parameter_is_set(folder: Path) -> None:
    text = invoke("run", "p.yaml", "a.png", "--set", "score_threshold=0.8", "--json", "-").stdout
    assert json.loads(text)[0]["counters"]["candidates"] == 0
    text = invoke("run", "p.yaml", "a.png", "--set", "iou_threshold=1", "--json", "-").stdout
    assert json.loads(text)[0]["counters"]["kept"] == 2
    both = ["--set", "iou_threshold=1", "--set", "max_detections=1"]
    counters = json.loads(invoke("run", "p.yaml", "a.png", *both, "--json", "-").stdout)[0][
        "counters"
    ]
    assert (counters["kept"], counters["dropped_max"]) == (1, 1)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("scor_threshold=0.4", "Did you mean 'score_threshold'?"),
        ("iou_threshold=4", "expected 0.0 to 1.0, found 4"),
        ("score_threshold=25", "expected 0.0 to 1.0, found 25"),
        ("iou_threshold=nan", "expected a finite number"),
        (f"iou_threshold={'9' * 400}", "expected a finite number"),
        ("max_detections=0", "expected 1 or more, found 0"),
        ("score_threshold=high", "expected a name and a number"),
        ("score_threshold", "expected a name and a number"),
        ("pre_nms_topk=1.5", "expected a whole number"),
        ("max_detections=301", "room for 300, found 301. Give 'max_detections: 301' in the pipel"),
        ("class_aware=1", "'class_aware': it is compiled in, so give it in the pipeline file. At"),
        ("self=1", "no runtime parameter 'self'"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(folder: Path, setting: str, said: str) -> None:
    assert said in invoke("run", "p.yaml", "a.png", "--set", setting, code=2).stderr


def test_a_division_by_zero(folder: Path) -> None:
    with (folder / "p.yaml").open("a") as file:
        file.write("params:\n  resize_letterbox: {std: [0, 0, 0]}\n")
    said = "p.yaml:4:27: resize_letterbox: std: expected 1e-06 or more, found 0"
    assert said in invoke("run", "p.yaml", "a.png", code=2).stderr


def test_a_threshold_in_percent(folder: Path) -> None:
    with (folder / "p.yaml").open("a") as file:
        file.write("params:\n  decode_yolov8: {score_threshold: 25}\n")
    said = "p.yaml:4:36: decode_yolov8: score_threshold: expected 0.0 to 1.0, found 25"
    assert said in invoke("run", "p.yaml", "a.png", code=2).stderr


def test_times_of_each_step(folder: Path) -> None:
    text = invoke("run", "p.yaml", "a.png", "b.png", "--time").stdout
    table = text.partition("step")[2]
    assert "mean of 1 more" in table
    for step in ("read files", "resize_letterbox", "engine", "decode_yolov8", "select_nms", "all"):
        assert re.search(rf"^{step} +\d+\.\d\d +\d+\.\d\d$", table, re.MULTILINE), step


def test_time_keeps_json_clean(folder: Path) -> None:
    result = invoke("run", "p.yaml", "a.png", "--time", "--json", "-")
    json.loads(result.stdout)
    assert "select_nms" in result.stderr


def test_a_folder_stands_for_its_pictures(folder: Path) -> None:
    text = invoke("run", "p.yaml", str(folder), "--jsonl", "-").stdout
    names = [Path(json.loads(line)["image"]).name for line in text.splitlines()]
    assert names == ["a.png", "b.png"]


def test_a_recording_is_never_played_to_the_wrong_picture(folder: Path) -> None:
    result = invoke("run", "p.yaml", "missing.png", "a.png", "--json", "out.json", code=2)
    assert "missing.png: no such file" in result.stderr
    assert not (folder / "out.json").exists()


def test_more_pictures_than_were_recorded(folder: Path) -> None:
    result = invoke("run", "p.yaml", "a.png", "b.png", "a.png", "b.png", code=2)
    assert "3 frames were recorded and all have been played" in result.stderr


def test_other_pictures_than_those_recorded(folder: Path) -> None:
    Image.new("RGB", (1920, 1080)).save("large.png")
    said = "tiny.npz: picture 1 of recorded frame 2 was 64 x 32 px, and this one is 1920 x 1080 px"
    assert said in invoke("run", "p.yaml", "a.png", "large.png", code=2).stderr
    with trtpatch.load("p.yaml") as pipeline:
        with pytest.raises(EngineError, match="recorded frame 1 was 64 x 32 px"):
            pipeline("large.png")
        assert len(pipeline("a.png")[0]) == 1  # nothing was played meanwhile


@pytest.mark.skipif(gpu_found(), reason="a GPU is here")
def test_executor_gpu_without_a_gpu(folder: Path) -> None:
    said = invoke("run", "p.yaml", "a.png", "--executor", "gpu", code=2).stderr
    assert "error: there is no" in said or "error: executor 'gpu' needs CuPy" in said


def test_numbers_that_json_does_not_have() -> None:
    assert as_json({"a": [float("nan"), -float("inf"), 1.5]}) == '{"a": [null, null, 1.5]}'


def test_a_picture_without_permission_keeps_no_other_from_being_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny("b.png", monkeypatch)
    assert "a.png" in invoke("run", "p.yaml", "a.png", "b.png").stdout  # reading it is what tells


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [2e38, 3e38, np.inf, -np.inf, np.nan])
def test_numbers_without_measure_make_no_noise(folder: Path, number: float) -> None:
    outputs = head()
    outputs[0, :4, 10:] = number
    outputs[0, 4:, 10:] = 0.6
    info = EngineInfo(
        "ort", "tiny.onnx", "onnxruntime", "1.0",
        inputs=(Tensor("images", "float32", (1, 3, 32, 32)),),
        outputs=(Tensor("output0", "float32", outputs.shape),),
    )  # fmt: skip
    frame = RecordedFrame({"output0": outputs}, np.array([[HEIGHT, WIDTH]], np.int32))
    save_recording(folder / "tiny.npz", info=info, frames=[frame])
    (found,) = json.loads(invoke("run", "p.yaml", "a.png", "--json", "-").stdout)
    corners = np.array([one["box"] for one in found["detections"]])
    assert (corners >= 0).all()
    assert (corners <= [WIDTH, HEIGHT] * 2).all()
