"""The YOLO decoders on raw heads, against the nodes with which the exported graphs go on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.graphs import Arrays, after
from tests.patch_runs import run

SIZES = (80, 40, 20)
MODEL = {"model": (640, 640)}


def raw(module: str, head: str, channels: int, *, seed: int, low: float = 0.0) -> Arrays:
    """The outputs of a head's last convolutions, by name, as a trained model might give them."""
    random = np.random.default_rng(seed)
    return {
        f"/model.{module}/{head}.{i}/{head}.{i}.2/Conv_output_0": random.normal(
            low, 2.5, (1, channels, size, size)
        ).astype(np.float32)
        for i, size in enumerate(SIZES)
    }


def detector(module: str, *, bins: int = 16, prefix: str = "") -> tuple[Arrays, Arrays]:
    """Boxes and classes; about one anchor in ten scores above 0.25."""
    boxes = raw(module, f"{prefix}cv2", 4 * bins, seed=1, low=3.0 if bins == 1 else 0.0)
    return boxes, raw(module, f"{prefix}cv3", 80, seed=2, low=-8.5)


def check(port: Arrays, boxes: np.ndarray, scores: np.ndarray, threshold: float = 0.25) -> None:
    """The candidates port against `[A, 4]` boxes and `[A, C]` scores of all anchors."""
    anchors = np.flatnonzero(scores.max(axis=1) > threshold)
    count = len(anchors)
    assert 100 < count < len(scores) / 2
    assert port["candidates_count"] == [count]
    assert port["candidates_nans"] == [0]
    order = np.argsort(port["candidates_anchors"][0, :count])
    found = {name: array[0, :count][order] for name, array in port.items() if array.ndim > 1}
    np.testing.assert_array_equal(found["candidates_anchors"], anchors)
    np.testing.assert_array_equal(found["candidates_classes"], scores[anchors].argmax(axis=1))
    np.testing.assert_allclose(found["candidates_scores"], scores[anchors].max(axis=1), atol=2e-6)
    np.testing.assert_allclose(found["candidates_boxes"], boxes[anchors], atol=1e-3, rtol=1e-6)


def corners(centres: np.ndarray) -> np.ndarray:
    """`[A, 4]` x1 y1 x2 y2 of cx cy w h."""
    half = centres[:, 2:] / 2
    return np.concatenate([centres[:, :2] - half, centres[:, :2] + half], axis=1)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("graph", "module", "bins"),
    [
        ("yolov8s", "22", 16),
        ("yolov8n", "22", 16),
        ("yolov8s-slim-op12", "22", 16),
        ("yolov5su", "24", 16),
        ("yolov9t", "22", 16),
        ("yolov10s", "23", 16),
        ("yolo11n", "23", 16),
        ("yolo12s", "21", 16),
        ("yolo26s", "23", 1),
    ],
)
def test_boxes_and_classes_of_each_level(
    assets: Path, graph: str, module: str, bins: int, together: bool
) -> None:
    boxes, classes = detector(module, bins=bins)
    (out,) = after(assets / f"graphs/{graph}.onnx", boxes | classes).values()
    if together:
        pairs = zip(boxes.values(), classes.values(), strict=True)
        head = [np.concatenate(pair, axis=1) for pair in pairs]
        port = run("decode_yolov8_raw", {"head": head}, {"R": bins}, MODEL)
    else:
        inputs = {"boxes": [*boxes.values()], "classes": [*classes.values()]}
        port = run("decode_yolov8_split", inputs, {}, MODEL)
    check(port, corners(out[0, :4].T), out[0, 4:].T)


@pytest.mark.parametrize(
    ("graph", "bins"), [("yolov10s-e2e", 16), ("yolo26s-e2e", 1), ("yolo26s-e2e-slim", 1)]
)
def test_heads_that_need_no_suppression(assets: Path, graph: str, bins: int) -> None:
    """Such a graph lists an anchor again for each further class; we, for its best class alone."""
    boxes, classes = detector("23", bins=bins, prefix="one2one_")
    (out,) = after(assets / f"graphs/{graph}.onnx", boxes | classes).values()
    _, first = np.unique(out[0, :, :4], axis=0, return_index=True)
    rows = out[0, np.sort(first)]
    inputs = {"boxes": [*boxes.values()], "classes": [*classes.values()]}
    port = run("decode_yolov8_split", inputs, {}, MODEL)
    port["geometry"] = np.float32([[1, 1, -2000, -2000, 9999, 9999]])
    found = run("select_topk", port, {"max_detections": len(rows)})
    assert 100 < len(rows) < port["candidates_count"][0]
    assert found["detections_count"] == [len(rows)]
    np.testing.assert_allclose(found["detections_scores"][0], rows[:, 4], atol=2e-6)
    np.testing.assert_array_equal(found["detections_classes"][0], rows[:, 5])
    np.testing.assert_allclose(found["detections_boxes"][0] - 2000, rows[:, :4], atol=2e-3)

    port = run("decode_end2end", {"head": out}, {"score_threshold": 0.4})
    port["geometry"] = np.float32([[1, 1, -2000, -2000, 9999, 9999]])
    found = run("select_topk", port)
    kept = out[0, out[0, :, 4] > 0.4]
    count = found["detections_count"][0]
    assert count == len(kept) > 100
    np.testing.assert_array_equal(found["detections_scores"][0, :count], kept[:, 4])
    np.testing.assert_array_equal(found["detections_classes"][0, :count], kept[:, 5])
    np.testing.assert_allclose(found["detections_boxes"][0, :count] - 2000, kept[:, :4], atol=1e-3)


def test_anchor_boxes_of_yolov5(assets: Path) -> None:
    random = np.random.default_rng(3)
    head = {}
    for i, size in enumerate(SIZES):
        level = random.normal(0, 2, (1, 3, 85, size, size))
        level[:, :, 4] -= 4
        head[f"/model.24/m.{i}/Conv_output_0"] = np.float32(level.reshape(1, 255, size, size))
    (out,) = after(assets / "graphs/yolov5s_classic.onnx", head).values()
    port = run("decode_yolov5_raw", {"head": [*head.values()]}, {}, MODEL)
    check(port, corners(out[0, :, :4]), out[0, :, 4:5] * out[0, :, 5:])

    whole = run("decode_yolov5", {"head": out})  # the same anchors from the decoded output
    assert whole["candidates_count"] == port["candidates_count"]
