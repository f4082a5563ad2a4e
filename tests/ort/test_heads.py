"""The decoders on the heads of real graphs, against what those graphs or their authors give."""

import json

import cv2
import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper

from tests.graphs import infer, noise, with_random_weights
from tests.nms_operator import operator
from tests.patch_runs import kept, run


@pytest.fixture(scope="module")
def yolox(assets):
    path = assets / "models" / "yolox_nano_416.onnx"
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def published(assets):
    found = json.loads((assets / "models" / "expected_detections.json").read_text())
    return found["detections"]["yolox_nano_416"]


def test_yolox_finds_in_photos_what_its_published_decoding_finds(assets, yolox, published):
    names: dict[int, str] = {}
    for photo, expected in published.items():
        frame = cv2.imread(str(assets / "images" / photo))
        params = {"color": "bgr", "pad": "bottom-right", "scale": 1.0, "rounding": "down"}
        shapes = {"image": (1, 3, 416, 416)}
        resized = run("resize_letterbox", {"frame_images": [frame]}, params, shapes, frame="bgr")
        (head,) = yolox.run(None, {"images": resized["image"]})
        params, shapes = {"score_threshold": 0.3}, {"model": (416, 416)}
        port = run("decode_yolox", {"head": head}, params, shapes)
        port["geometry"] = resized["geometry"]
        found = run("select_nms", port, {"iou_threshold": 0.65})
        height, width = frame.shape[:2]
        count = len(expected)
        assert found["detections_count"] == [count], photo
        boxes = np.reshape([e[2:] for e in expected], (count, 4)).clip(0, [width, height] * 2)
        scores = [e[1] for e in expected]
        np.testing.assert_allclose(found["detections_scores"][0, :count], scores, atol=2e-3)
        np.testing.assert_allclose(found["detections_boxes"][0, :count], boxes, atol=0.5)
        for label, row in zip(found["detections_classes"][0, :count], expected, strict=True):
            assert names.setdefault(int(label), row[0]) == row[0]
    assert len(set(names.values())) == len(names)
    assert names[0] == "person"


def test_yolov8_as_the_graph_with_suppression_inside(assets):
    model = with_random_weights(assets / "graphs" / "yolov8s-nms-slim.onnx")
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    (greater,) = (node for node in model.graph.node if node.op_type == "Greater")
    # Random weights give low scores: let the graph take those that there are.
    threshold = np.float32(6e-5)
    name = greater.input[1]
    constants[name].CopyFrom(numpy_helper.from_array(threshold, name))
    inner = next(
        n.output[0] for n in model.graph.node if n.op_type == "Concat" and "Sigmoid" in n.input[1]
    )
    found = infer(model, {"images": noise(640, 640)}, inner)
    head, rows = found[inner], found["output0"][0]
    rows = rows[rows[:, 4] > 0]
    assert 20 < len(rows) < 300
    xyxy = head[0, :4].copy()  # this export has corners where decode_yolov8 wants centre and size
    head[0, :2], head[0, 2:4] = (xyxy[:2] + xyxy[2:]) / 2, xyxy[2:] - xyxy[:2]
    port = run("decode_yolov8", {"head": head}, {"score_threshold": float(threshold)})
    port["geometry"] = np.float32([[1, 1, -1000, -1000, 9999, 9999]])
    found = run("select_nms", port, {"iou_threshold": 0.7})
    count = found["detections_count"][0]
    assert count == len(rows)
    np.testing.assert_array_equal(found["detections_scores"][0, :count], rows[:, 4])
    np.testing.assert_array_equal(found["detections_classes"][0, :count], rows[:, 5])
    np.testing.assert_allclose(found["detections_boxes"][0, :count] - 1000, rows[:, :4], atol=1e-3)


def test_yolov5_as_suppression_by_the_operator(assets):
    model = with_random_weights(assets / "graphs" / "yolov5s_classic.onnx")
    head = infer(model, {"images": noise(640, 640)})["output0"]
    table = head[0, :, 4:5] * head[0, :, 5:]
    threshold = np.float32(np.sort(table.max(axis=1))[-600])
    boxes = head[0, :, :4].copy()
    boxes[:, :2] -= boxes[:, 2:] / 2
    boxes[:, 2:] += boxes[:, :2]
    keep = np.flatnonzero(table.max(axis=1) > threshold)
    expected = operator(
        boxes[keep], table[keep].max(axis=1), table[keep].argmax(axis=1), np.float32(0.45)
    )
    port = run("decode_yolov5", {"head": head}, {"score_threshold": float(threshold)})
    port["geometry"] = np.float32([[1, 1, 0, 0, 640, 640]])
    found = run("select_nms", port)
    assert kept(found) == keep[expected].tolist()
    np.testing.assert_allclose(
        found["detections_boxes"][0, : len(expected)],
        boxes[keep[expected]].clip(0, 640),
        atol=1e-3,
    )
