"""The decoders on trained models and photos, against the models' published results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.graphs import Arrays, infer
from tests.patch_runs import run

PHOTOS = ("000000007281", "000000000165", "000000005001", "000000000127", "000000001268")
UNIT = 0.00392156862745098


@pytest.fixture(scope="module")
def photos(assets: Path) -> dict[str, np.ndarray]:
    paths = (assets / f"images/{name}.jpg" for name in PHOTOS)
    return {path.name: np.asarray(Image.open(path).convert("RGB")) for path in paths}


@pytest.fixture(scope="module")
def published(assets: Path) -> dict[str, dict[str, list[list[Any]]]]:
    return json.loads((assets / "models/expected_detections.json").read_text())["detections"]


@pytest.fixture(scope="module")
def names(assets: Path) -> list[str]:
    truth = json.loads((assets / "images/gt_val2017_cc.json").read_text(encoding="utf-8"))
    return [one["name"] for one in sorted(truth["categories"], key=lambda one: one["id"])]


def resized(photo: np.ndarray, height: int, width: int, **params: Any) -> tuple[np.ndarray, ...]:
    """The model's picture and the geometry."""
    shapes = {"image": (1, 3, height, width)}
    out = run("resize_letterbox", {"frame_images": [photo]}, params, shapes)
    return out["image"], out["geometry"]


def agree(found: Arrays, expected: list[list[Any]], photo: np.ndarray, classes: list[str]) -> None:
    """Detections against rows of name, score, x1, y1, x2, y2."""
    count = len(expected)
    assert found["detections_count"] == [count]
    height, width = photo.shape[:2]
    boxes = np.float64([row[2:] for row in expected]).reshape(count, 4)
    labels = [classes[c] for c in found["detections_classes"][0, :count]]
    assert labels == [row[0] for row in expected]
    scores = [row[1] for row in expected]
    np.testing.assert_allclose(found["detections_scores"][0, :count], scores, atol=3e-3)
    boxes = np.clip(boxes, 0, [width, height] * 2)
    np.testing.assert_allclose(found["detections_boxes"][0, :count], boxes, atol=0.6)


def test_nanodet_finds_the_published_objects(assets, photos, published, names):
    normal = {"mean": [103.53, 116.28, 123.675], "std": [57.375, 57.12, 58.395]}
    for name, photo in photos.items():
        image, geometry = resized(photo, 416, 416, color="bgr", scale=1.0, pad_value=0, **normal)
        out = infer(assets / "models/nanodet_m_416.onnx", {"input.1": image})
        levels = {
            "classes": [out[one] for one in ("792", "814", "836")],
            "boxes": [out[one] for one in ("795", "817", "839")],
        }
        params, shapes = {"score_threshold": 0.3}, {"model": (416, 416)}
        port = run("decode_nanodet", levels, params, shapes)
        found = run("select_nms", {**port, "geometry": geometry}, {"iou_threshold": 0.6})
        agree(found, published["nanodet_m_416"][name], photo, names)


def test_nanodet_cut_before_its_reshapes(assets, photos):
    """The same network's convolutions, 80 class and 32 distance maps a level."""
    normal = {"mean": [103.53, 116.28, 123.675], "std": [57.375, 57.12, 58.395]}
    photo = photos["000000007281.jpg"]
    image, _ = resized(photo, 416, 416, color="bgr", scale=1.0, pad_value=0, **normal)
    maps = "786", "808", "830"
    out = infer(assets / "models/nanodet_m_416.onnx", {"input.1": image}, *maps)
    rows = {
        "classes": [out[one] for one in ("792", "814", "836")],
        "boxes": [out[one] for one in ("795", "817", "839")],
    }
    planes = {
        "classes": [out[one][:, :80] for one in maps],
        "boxes": [out[one][:, 80:] for one in maps],
    }
    plus = np.concatenate([np.concatenate(rows[one], axis=1) for one in ("classes", "boxes")], 2)
    point = {"offset": 0.5, "shift": -0.5, "score_threshold": 0.1}
    shapes = {"model": (416, 416)}
    expected = run("decode_nanodet", rows, {"score_threshold": 0.1}, shapes)
    assert expected["candidates_count"][0] > 20
    for name, inputs, params in (
        ("decode_rtmdet", planes, {"distances": "strides", **point}),
        ("decode_nanodet_plus", {"head": plus}, {"strides": [8, 16, 32], **point}),
    ):
        found = run(name, inputs, params, shapes)
        for field, array in expected.items():
            count = expected["candidates_count"][0] if array.ndim > 1 else 1
            a, b = (one[:, :count] if array.ndim > 1 else one for one in (found[field], array))
            np.testing.assert_allclose(a, b, atol=1e-4, err_msg=f"{name}: {field}")


def test_yolo_fastest_finds_the_published_objects(assets, photos, published, names):
    anchors = [12, 18, 37, 49, 52, 132, 115, 73, 119, 199, 242, 238]
    for name, photo in photos.items():
        image, geometry = resized(photo, 320, 320, fit="stretch", scale=UNIT)
        out = infer(assets / "models/yolo_fastest_1.1_xl_320.onnx", {"images": image})
        head = [out["head_stride16"], out["head_stride32"]]
        params = {"form": "yolov3", "anchors": anchors, "score_threshold": 0.3}
        port = run("decode_yolov5_raw", {"head": head}, params, {"model": (320, 320)})
        found = run("select_nms", {**port, "geometry": geometry}, {"iou_threshold": 0.45})
        agree(found, published["yolo_fastest_1.1_xl_320"][name], photo, names)


def test_fastestdet_finds_the_published_objects(assets, photos, published, names):
    for name, photo in photos.items():
        image, geometry = resized(photo, 352, 352, fit="stretch", color="bgr", scale=UNIT)
        (head,) = infer(assets / "models/fastestdet_352.onnx", {"input.1": image}).values()
        port = run("decode_fastestdet", {"head": [head]}, {}, {"model": (352, 352)})
        found = run("select_nms", {**port, "geometry": geometry}, {"iou_threshold": 0.45})
        agree(found, published["fastestdet_352"][name], photo, names)


def test_ulfd_as_the_model_that_decodes_inside(assets, photos):
    for name, photo in photos.items():
        normal = {"scale": 1 / 128, "mean": [127 / 128] * 3}
        image, _ = resized(photo, 240, 320, fit="stretch", **normal)
        raw = infer(assets / "models/ulfd_rfb_320_raw.onnx", {"input": image})
        whole = infer(assets / "models/ulfd_rfb_320_decoded.onnx", {"input": image})
        params, shapes = {"score_threshold": 0.02}, {"model": (240, 320)}
        port = run("decode_ssd", raw, params, shapes)
        faces = whole["scores"][0, :, 1]
        anchors = np.flatnonzero(faces > 0.02)
        count = len(anchors)
        assert port["candidates_count"] == [count], name
        np.testing.assert_array_equal(port["candidates_anchors"][0, :count], anchors)
        np.testing.assert_array_equal(port["candidates_scores"][0, :count], faces[anchors])
        boxes = whole["boxes"][0, anchors] * [320, 240, 320, 240]
        np.testing.assert_allclose(port["candidates_boxes"][0, :count], boxes, atol=1e-3)


def test_deim_as_the_model_with_its_postprocessor(assets, photos):
    logits, boxes = "/decoder/Gather_5_output_0", "/decoder/Gather_6_output_0"
    for photo in photos.values():
        image, geometry = resized(photo, 320, 320, fit="stretch", scale=UNIT)
        height, width = photo.shape[:2]
        inputs = {"images": image, "orig_target_sizes": np.int64([[width, height]])}
        out = infer(assets / "models/deimv2_atto_320_dequant.onnx", inputs, logits, boxes)
        queries = {"logits": out[logits], "boxes": out[boxes]}
        port = run("decode_detr", queries, {"score_threshold": 0.0}, {"model": (320, 320)})
        found = run("select_topk", {**port, "geometry": geometry}, {"max_detections": 300})
        whole = {name: out[name].reshape(300, -1).squeeze() for name in ("scores", "labels")}
        clipped = np.clip(out["boxes"].reshape(300, 4), 0, [width, height] * 2)
        np.testing.assert_allclose(found["detections_scores"][0], whole["scores"], atol=1e-6)
        np.testing.assert_array_equal(found["detections_classes"][0], whole["labels"])
        np.testing.assert_allclose(found["detections_boxes"][0], clipped, atol=1e-3)


@pytest.mark.parametrize(
    ("model", "results"),
    [
        ("face_detection_yunet_2023mar", "face_detection_yunet_2023mar"),
        ("yunet_n_dynamic", "yunet_n_dynamic@640"),
    ],
)
def test_yunet_finds_the_published_faces(assets, photos, published, model, results):
    for name, photo in photos.items():
        look = {"color": "bgr", "scale": 1.0, "pad": "bottom-right", "pad_value": 0}
        image, geometry = resized(photo, 640, 640, **look)
        out = infer(assets / f"models/{model}.onnx", {"input": image})
        heads = {"classes": "cls", "objectness": "obj", "boxes": "bbox"}
        inputs = {n: [out[f"{tensor}_{s}"] for s in (8, 16, 32)] for n, tensor in heads.items()}
        port = run("decode_yunet", inputs, {"score_threshold": 0.6}, {"model": (640, 640)})
        found = run("select_nms", {**port, "geometry": geometry}, {"iou_threshold": 0.3})
        agree(found, published[results].get(name, []), photo, ["face"])


def test_yunet_as_opencv_has_it(assets, photos):
    """OpenCV's own detector, with its resize, network, decoding and suppression."""
    import cv2

    model = str(assets / "models/face_detection_yunet_2023mar.onnx")
    faces = 0
    for photo in photos.values():
        bgr = np.ascontiguousarray(photo[:, :, ::-1])
        padded = np.zeros((640, 640, 3), np.uint8)
        padded[: bgr.shape[0], : bgr.shape[1]] = bgr  # no photo is larger
        theirs = cv2.FaceDetectorYN.create(model, "", (640, 640), 0.6, 0.3, 5000).detect(padded)[1]
        image = np.float32(padded).transpose(2, 0, 1)[None]
        out = infer(Path(model), {"input": image})
        groups = {"classes": "cls", "objectness": "obj", "boxes": "bbox", "points": "kps"}
        heads = {n: [out[f"{tensor}_{s}"] for s in (8, 16, 32)] for n, tensor in groups.items()}
        points, shapes = heads.pop("points"), {"model": (640, 640)}
        geometry = {"geometry": np.float32([[1, 1, 0, 0, 1e6, 1e6]])}
        port = run("decode_yunet", heads, {"score_threshold": 0.6}, shapes)
        port["candidates_boxes"] += 1000  # OpenCV clips nothing
        found = run("select_nms", {**port, **geometry}, {"iou_threshold": 0.3})
        found["points"] = points
        keypoints = run("keypoints_yunet", {**found, **geometry}, {}, shapes)["keypoints"][0]
        count = found["detections_count"][0]
        theirs = np.zeros((0, 15)) if theirs is None else theirs
        assert count == len(theirs)
        boxes = found["detections_boxes"][0, :count] - 1000
        corners = np.concatenate([theirs[:, :2], theirs[:, :2] + theirs[:, 2:4]], axis=1)
        np.testing.assert_allclose(boxes, corners, atol=1e-3)
        np.testing.assert_allclose(found["detections_scores"][0, :count], theirs[:, 14], atol=1e-3)
        marks = theirs[:, 4:14].reshape(-1, 5, 2)
        np.testing.assert_allclose(keypoints[:count, :, :2], marks, atol=1e-3)
        faces += count
    assert faces > 5
