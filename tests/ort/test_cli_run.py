"""The command line on a trained detector and real photos, and on every kind of bad input."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

import trtpatch
from tests.command import invoke
from tests.tiny_model import save_tiny
from trtpatch.errors import InputError

PHOTO = "000000007281.jpg"
EXPECTED = {  # of the model's own post-processing, by the assets' README
    "person": [(391, 134, 453, 294), (452, 119, 543, 280)],
    "horse": [(471, 173, 549, 358), (340, 185, 430, 359)],
}


@pytest.fixture
def folder(assets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The README's smallest pipeline file beside its model, and a photo."""
    shutil.copy(assets / "models/yolox_nano_416.onnx", tmp_path)
    shutil.copy(assets / "models/coco80.names", tmp_path)
    shutil.copy(assets / "images" / PHOTO, tmp_path / "photo.jpg")
    (tmp_path / "small.yaml").write_text("engine: {path: yolox_nano_416.onnx}\n")
    (tmp_path / "named.yaml").write_text(
        "engine: {path: yolox_nano_416.onnx}\nlabels: coco80.names\nexecutor: cpu\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def iou(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    inside = max(0.0, width) * max(0.0, height)
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return inside / (sum(areas) - inside)


def test_the_smallest_pipeline_finds_people_and_horses(folder: Path) -> None:
    text = invoke("run", "small.yaml", "photo.jpg", "--executor", "cpu", "--json", "-").stdout
    (one,) = json.loads(text)
    assert (one["image"], one["width"], one["height"]) == ("photo.jpg", 640, 361)
    labels = {"person": 0, "horse": 17}
    for name, boxes in EXPECTED.items():
        found = [o["box"] for o in one["detections"] if o["label"] == labels[name]]
        for box in boxes:
            assert max(iou(box, other) for other in found) > 0.9, (name, box)
    assert {o["name"] for o in one["detections"]} == {None}
    assert one["counters"]["kept"] == len(one["detections"])


def test_names_pictures_and_files(folder: Path) -> None:
    said = invoke(
        "run", "named.yaml", "photo.jpg", "--save", "out.png", "--json", "out.json"
    ).stdout
    (one,) = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert {o["name"] for o in one["detections"]} == {"person", "horse"}
    assert "person" in said
    assert "out.png" in said
    with Image.open("out.png") as drawn, Image.open("photo.jpg") as photo:
        difference = np.abs(np.asarray(drawn, int) - np.asarray(photo, int)).max(axis=2)
    left, top, right, bottom = (round(side) for side in one["detections"][0]["box"])
    assert difference[bottom - 3 : bottom + 2, left:right].max(axis=0).mean() > 50
    assert difference[top + 40 : bottom - 40, left + 20 : right - 20].min() == 0


def test_a_sideways_photo_is_turned_upright(folder: Path) -> None:
    with Image.open("photo.jpg") as photo:
        exif = photo.getexif()
        exif[0x0112] = 6
        photo.rotate(90, expand=True).save("turned.png", exif=exif)
    texts = [
        invoke("run", "named.yaml", name, "--jsonl", "-").stdout
        for name in ("photo.jpg", "turned.png")
    ]
    upright, turned = map(json.loads, texts)
    assert turned["detections"] == upright["detections"]


@pytest.mark.parametrize("size", [(1, 1), (20000, 1), (1, 20000), (3, 2)])
def test_pictures_of_odd_sizes_are_run(folder: Path, size: tuple[int, int]) -> None:
    Image.new("RGB", size, (200, 10, 10)).save("odd.png")
    invoke("run", "small.yaml", "odd.png", "--executor", "cpu", "--save", "drawn.png")
    with Image.open("drawn.png") as drawn:
        assert drawn.size == size


def bad(folder: Path, kind: str) -> Path:
    path = folder / f"{kind}.jpg"
    if kind == "empty":
        path.touch()
    elif kind == "text":
        path.write_text("not a picture")
    elif kind == "truncated":
        path.write_bytes((folder / "photo.jpg").read_bytes()[:9000])
    elif kind == "onnx":
        shutil.copy(folder / "yolox_nano_416.onnx", path)
    return path


BAD = {
    "missing": "no such file",
    "empty": "the file is empty",
    "text": "not an image",
    "truncated": "truncated",
    "onnx": "not an image",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_picture_that_is_none_is_named(folder: Path, kind: str) -> None:
    path = bad(folder, kind)
    result = invoke("run", "named.yaml", path.name, "--json", "out.json", code=2)
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("error: "))
    assert line.startswith(f"error: {path.name}: ")
    assert BAD[kind] in line


def test_bad_pictures_among_good_ones(folder: Path) -> None:
    names = ["photo.jpg", *(bad(folder, kind).name for kind in BAD)]
    result = invoke("run", "named.yaml", *names, "--save", "out/", "--json", "out.json", code=2)
    assert f"{len(BAD)} of {len(names)} pictures cannot be used" in result.stderr
    assert all(f"{kind}.jpg: " in result.stderr for kind in BAD)
    (one,) = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert one["image"] == "photo.jpg"
    assert [path.name for path in (folder / "out").iterdir()] == ["photo.png"]


@pytest.mark.parametrize(
    ("shape", "dtype"), [((20, 30), "uint8"), ((20, 30, 4), "uint8"), ((20, 30, 3), "float32")]
)
def test_wrong_channels_by_the_python_interface(
    folder: Path, shape: tuple[int, ...], dtype: str
) -> None:
    with trtpatch.load("small.yaml", executor="cpu") as pipeline:
        with pytest.raises(InputError, match=r"expected \[height, width, 3\] uint8, found"):
            pipeline(np.zeros(shape, dtype))
        assert len(pipeline(np.zeros((20, 30, 3), np.uint8))) == 1


def test_the_wrong_engine_names_both_shapes(folder: Path, assets: Path) -> None:
    shutil.copy(assets / "models/nanodet_m_416.onnx", folder)
    chain = "chain: [resize_letterbox, engine, decode_yolox, select_nms]"
    for more in ("rule: yolox", chain):
        (folder / "wrong.yaml").write_text(f"engine: {{path: nanodet_m_416.onnx}}\n{more}\n")
        said = invoke("run", "wrong.yaml", "photo.jpg", "--executor", "cpu", code=2).stderr
        assert "792 float32 [1, 2704, 80]" in said
        assert "[N, A, 5 + C]" in said


def test_typo_in_the_parameters(folder: Path) -> None:
    (folder / "typo.yaml").write_text(
        "engine: {path: yolox_nano_416.onnx}\nexecutor: cpu\n"
        "params:\n  select_nms: {iou_treshold: 0.3}\n  decode_yolo: {}\n"
    )
    said = invoke("check", "typo.yaml", code=2).stderr
    assert "typo.yaml:4:16: " in said
    assert "Did you mean 'iou_threshold'?" in said
    assert "Did you mean 'decode_yolox'?" in said


def test_record_and_replay(folder: Path) -> None:
    invoke("record", "named.yaml", "photo.jpg", "-o", "frames.npz", "--executor", "cpu")
    (folder / "replay.yaml").write_text(
        "engine: {path: frames.npz}\nlabels: coco80.names\nexecutor: cpu\n"
    )
    ran, replayed = (
        json.loads(invoke("run", name, "photo.jpg", "--json", "-").stdout)
        for name in ("named.yaml", "replay.yaml")
    )
    assert ran == replayed


def test_inspect_an_onnx_file(folder: Path) -> None:
    text = invoke("inspect", "yolox_nano_416.onnx").stdout
    for part in ("onnx opset 11", "images float32 [1, 3, 416, 416]", "output float32", "yolox"):
        assert part in text
    assert "JPEG picture" in invoke("inspect", "photo.jpg", code=2).stderr
    assert "no such file" in invoke("inspect", "none.onnx", code=2).stderr


def test_inspect_an_onnx_file_with_metadata(assets: Path) -> None:
    report = json.loads(invoke("inspect", str(assets / "graphs/yolov8n.onnx"), "--json").stdout)
    assert report["rule"]["name"] == "yolov8"
    assert len(report["engine"]["metadata"]["names"]) == 80
    assert report["engine"]["metadata"]["stride"] == 32


def test_inspect_says_whose_sizes_are_open(tmp_path: Path) -> None:
    model = str(save_tiny(tmp_path / "tiny.onnx"))
    open_input = "sizes are left open by input images float32 [1, 3, -1, -1]; a pipeline file can"
    assert open_input in invoke("inspect", model).stdout
    fixed = onnx.load(save_tiny(tmp_path / "tiny.onnx", batch=1, size=(64, 96)))
    fixed.graph.output[0].type.tensor_type.shape.dim[2].dim_param = "anchors"
    onnx.save(fixed, model)
    text = invoke("inspect", model).stdout
    assert "does not tell all sizes of output head float32 [1, 7, -1]; 'trtpatch check'" in text
    assert "input_shape" not in text
