"""The OBB head of an exported graph: from its own tail's output, and as a whole pipeline."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx

import trtpatch
from tests.graphs import after, with_random_weights
from tests.patch_runs import run

GRAPH = "graphs/yolov8n-obb.onnx"


def head(assets: Path) -> np.ndarray:
    """`[1, 4 + 80 + 1, 8400]`, what the graph makes of random raw heads; few classes score."""
    random = np.random.default_rng(3)
    raw = {}
    for level, side in enumerate((80, 40, 20)):
        for branch, channels, mean, spread in ((2, 64, 0, 1), (3, 80, -9, 3.2), (4, 1, 0, 2)):
            name = f"/model.22/cv{branch}.{level}/cv{branch}.{level}.2/Conv_output_0"
            values = random.normal(mean, spread, (1, channels, side, side))
            raw[name] = values.astype(np.float32)
    return after(assets / GRAPH, raw)["output0"]


def prob_iou(a: np.ndarray, b: np.ndarray) -> float:
    """Of two rectangles, as Llerena et al. (2021) write it: in matrices; and in float64."""

    def normal(rectangle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, y, width, height, angle = rectangle
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        return np.array([x, y]), turn @ np.diag([width**2 / 12, height**2 / 12]) @ turn.T

    (mean_a, cov_a), (mean_b, cov_b) = normal(a), normal(b)
    cov = (cov_a + cov_b) / 2
    apart = mean_a - mean_b
    roots = np.sqrt(np.linalg.det(cov_a) * np.linalg.det(cov_b))
    distance = apart @ np.linalg.inv(cov) @ apart / 8 + np.log(np.linalg.det(cov) / roots) / 2
    return float(1 - np.sqrt(1 - np.exp(-distance)))


def test_what_the_graph_gives_is_suppressed_as_published(assets: Path) -> None:
    output = head(assets)
    port = run("decode_yolov8_obb", {"head": output}, {"score_threshold": 0.5})
    port["geometry"] = np.float32([[1, 1, 0, 0, 640, 640]])
    found = run("select_nms_rotated", port, {"iou_threshold": 0.2, "max_detections": 8400})
    anchors = found["detections_anchors"][0, : found["detections_count"][0]].tolist()

    columns = output[0].T.astype(float)
    scores, labels = columns[:, 4:84].max(axis=1), columns[:, 4:84].argmax(axis=1)
    rectangles = columns[:, [0, 1, 2, 3, 84]]
    kept: list[int] = []
    order = np.argsort(-scores, kind="stable")
    for one in order[scores[order] > 0.5].tolist():
        rivals = (i for i in kept if labels[i] == labels[one])
        if all(prob_iou(rectangles[one], rectangles[i]) <= 0.2 for i in rivals):
            kept.append(one)
    assert 100 < len(kept) < port["candidates_count"][0]
    assert anchors == kept


def test_a_pipeline_gives_the_rectangles(tmp_path: Path, assets: Path) -> None:
    model = tmp_path / "obb.onnx"
    onnx.save(with_random_weights(assets / GRAPH), model)
    path = tmp_path / "pipeline.yaml"
    path.write_text(json.dumps({"engine": {"path": str(model), "kind": "ort"}}), "utf-8")
    with trtpatch.load(path, executor="cpu") as pipeline:
        pipeline.set(score_threshold=1e-5)
        frame = np.random.default_rng(0).integers(0, 255, (320, 640, 3), np.uint8)
        found = pipeline(frame)[0]
    assert found.rotated is not None
    assert found.rotated.shape == (len(found), 5)
    assert len(found) > 0
    x, _, width, height, angle = found.rotated.T.astype(float)
    reach = (width * np.abs(np.cos(angle)) + height * np.abs(np.sin(angle))) / 2
    np.testing.assert_allclose(found.boxes[:, 0], np.clip(x - reach, 0, 640), atol=1e-3)
    assert found.to_dict()["detections"][0]["rotated"] == found.rotated[0].tolist()
