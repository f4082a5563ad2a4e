"""Whole pipelines that nothing but the engine's own outputs chose, on trained models and photos."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.utils import Extractor

import trtpatch
from tests.graphs import infer, noise, with_random_weights

PHOTOS = ("000000000165.jpg", "000000005001.jpg")


def pipeline(folder: Path, model: Path, **more: Any) -> trtpatch.Pipeline:
    path = folder / "pipeline.yaml"
    engine = {"path": str(model), "kind": "ort"}
    path.write_text(json.dumps({"engine": engine, **more}), encoding="utf-8")
    return trtpatch.load(path, executor="cpu")


@pytest.mark.parametrize(
    ("name", "threshold", "more"),
    [
        ("nanodet_m_416", 0.3, {}),
        ("yolo_fastest_1.1_xl_320", 0.3, {}),
        ("fastestdet_352", 0.65, {}),
        ("face_detection_yunet_2023mar", 0.6, {}),
        ("ulfd_rfb_320_raw", 0.7, {"rule": "ulfd"}),
        ("ulfd_rfb_320_decoded", 0.7, {"rule": "ulfd_decoded"}),
    ],
)
def test_the_published_objects(
    tmp_path: Path, assets: Path, name: str, threshold: float, more: dict[str, str]
) -> None:
    text = (assets / "models/expected_detections.json").read_text(encoding="utf-8")
    published = json.loads(text)["detections"][name.replace("_decoded", "_raw")]
    with pipeline(tmp_path, assets / f"models/{name}.onnx", **more) as run:
        run.set(score_threshold=threshold)
        for photo in PHOTOS:
            found = run(assets / f"images/{photo}")[0]
            expected = published.get(photo, [])
            limits = [found.width, found.height] * 2
            boxes = np.clip(np.reshape([row[2:] for row in expected], (-1, 4)), 0, limits)
            np.testing.assert_allclose(found.scores, [row[1] for row in expected], atol=3e-3)
            np.testing.assert_allclose(found.boxes, boxes, atol=0.6)


def test_key_points_come_with_their_detections(tmp_path: Path, assets: Path) -> None:
    with pipeline(tmp_path, assets / "models/face_detection_yunet_2023mar.onnx") as run:
        found = run(assets / "images/000000000165.jpg")[0]
    assert found.keypoints.shape == (len(found), 5, 3)
    assert len(found) >= 2
    for (x1, y1, x2, y2), points in zip(found.boxes, found.keypoints, strict=True):
        right_eye, left_eye, nose, right_mouth, left_mouth = points[:, :2]
        assert x1 < right_eye[0] < left_eye[0] < x2
        assert right_mouth[0] < left_mouth[0]
        assert y1 < right_eye[1] < nose[1] < left_mouth[1] < y2
        assert (points[:, 2] == 1).all()
    rows = found.to_dict()["detections"]
    np.testing.assert_array_equal([row["keypoints"] for row in rows], found.keypoints)


def test_a_detr_that_was_cut(tmp_path: Path, assets: Path) -> None:
    whole = assets / "models/deimv2_atto_320_dequant.onnx"
    raw = ["/decoder/Gather_5_output_0", "/decoder/Gather_6_output_0"]
    model = onnx.shape_inference.infer_shapes(onnx.load(whole))
    onnx.save(Extractor(model).extract_model(["images"], raw), tmp_path / "cut.onnx")
    with pipeline(tmp_path, tmp_path / "cut.onnx") as run:
        run.set(score_threshold=0.3)
        found = run(assets / "images/000000007281.jpg")[0]
    text = (assets / "models/expected_detections.json").read_text(encoding="utf-8")
    expected = json.loads(text)["detections"]["deimv2_atto_320_dequant"]["000000007281.jpg"]
    np.testing.assert_allclose(found.scores, [row[1] for row in expected], atol=3e-3)
    np.testing.assert_allclose(found.boxes, [row[2:] for row in expected], atol=0.6)


@pytest.mark.parametrize(
    ("graph", "module", "head"), [("yolov8n", "22", "cv"), ("yolo26s-e2e", "23", "one2one_cv")]
)
def test_a_yolo_that_was_cut_finds_what_the_whole_one_does(
    tmp_path: Path, assets: Path, graph: str, module: str, head: str
) -> None:
    """With weights of chance, the last ones enlarged until some anchors stand out."""
    model = with_random_weights(assets / f"graphs/{graph}.onnx")
    levels = [(k, i) for k in (2, 3) for i in range(3)]
    names = [f"/model.{module}/{head}{k}.{i}/{head}{k}.{i}.2/Conv_output_0" for k, i in levels]
    enlarge(model, names)
    onnx.save(model, tmp_path / "whole.onnx")
    inferred = onnx.shape_inference.infer_shapes(model)
    onnx.save(Extractor(inferred).extract_model(["images"], names), tmp_path / "cut.onnx")
    found = {}
    for which in ("whole", "cut"):
        with pipeline(tmp_path, tmp_path / f"{which}.onnx") as run:
            run.set(score_threshold=0.4)
            found[which] = run(assets / "images/000000005001.jpg")[0]
    whole, cut = found["whole"], found["cut"]
    assert len(whole) > 5
    assert len(cut) == len(np.unique(whole.boxes, axis=0))  # an end-to-end head repeats some
    gaps = np.abs(cut.boxes[:, None] - whole.boxes[None]).max(axis=2)
    first = gaps.argmin(axis=1)
    assert len(set(first)) == len(first)
    np.testing.assert_allclose(cut.boxes, whole.boxes[first], atol=1e-3)
    np.testing.assert_allclose(cut.scores, whole.scores[first], atol=2e-6)
    np.testing.assert_array_equal(cut.labels, whole.labels[first])


def enlarge(model: onnx.ModelProto, names: list[str]) -> None:
    """Multiply the last convolutions' weights so that what they give varies by about 2."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    out = infer(copy, {"images": noise(640, 640)}, *names)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.output[0] in names:
            tensor = weights[node.input[1]]
            spread = out[node.output[0]].std(axis=(2, 3)).mean()
            values = numpy_helper.to_array(tensor) * np.float32(2 / spread)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
