"""The pose heads of exported graphs: the smallest pipeline file, against what the graphs give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.utils import Extractor

import trtpatch
from tests.graphs import infer, with_random_weights
from trtpatch.errors import MatchError

FRAME = np.random.default_rng(0).integers(0, 255, (320, 640, 3), np.uint8)
CORNER = 0, 160
"""Of this frame in the model's 640 x 640 pixels, at its own size."""


def graph_output(model: Path) -> np.ndarray:
    """`[A, D]`, an anchor a row, of the frame put into the model's picture by hand."""
    image = np.full((640, 640, 3), 114, np.uint8)
    image[160:480] = FRAME
    planes = image.transpose(2, 0, 1)[None] / np.float32(255)
    (head,) = infer(model, {"images": planes})["output0"]
    return head if len(head) == 300 else head.T


@pytest.mark.parametrize("executor", ["cpu", "host"])
@pytest.mark.parametrize("graph", ["yolov8s-pose", "yolo26s-pose-e2e"])
def test_key_points_are_those_of_the_graph(
    tmp_path: Path, assets: Path, graph: str, executor: str
) -> None:
    model = tmp_path / "pose.onnx"
    onnx.save(with_random_weights(assets / f"graphs/{graph}.onnx"), model)
    head = graph_output(model)
    scores = head[:, 4]
    path = tmp_path / "pipeline.yaml"
    path.write_text(json.dumps({"engine": {"path": "pose.onnx", "kind": "ort"}}), "utf-8")
    with trtpatch.load(path, executor=executor) as pipeline:
        pipeline.set(score_threshold=float(np.sort(scores)[-100]))
        found = pipeline(FRAME)[0]
    assert 0 < len(found) < 100
    assert found.keypoints.shape == (len(found), 17, 3)
    points = head[found.anchors, -51:].reshape(-1, 17, 3)
    np.testing.assert_allclose(found.scores, scores[found.anchors], atol=1e-6)
    np.testing.assert_allclose(found.keypoints[..., 2], points[..., 2], atol=1e-5)
    np.testing.assert_allclose(found.keypoints[..., :2], points[..., :2] - CORNER, atol=1e-2)
    assert found.to_dict()["detections"][0]["keypoints"] == found.keypoints[0].tolist()


def test_a_graph_that_was_cut_gives_the_same_points(tmp_path: Path, assets: Path) -> None:
    """The metadata are lost by the cut; by weights of chance, many anchors are equally good."""
    model = with_random_weights(assets / "graphs/yolov8s-pose.onnx")
    names = [f"/model.22/cv{k}.{i}/cv{k}.{i}.2/Conv_output_0" for k in (2, 3, 4) for i in range(3)]
    onnx.save(model, tmp_path / "whole.onnx")
    inferred = onnx.shape_inference.infer_shapes(model)
    onnx.save(Extractor(inferred).extract_model(["images"], names), tmp_path / "cut.onnx")
    found = {}
    for which in ("whole", "cut"):
        path = tmp_path / f"{which}.yaml"
        path.write_text(json.dumps({"engine": {"path": f"{which}.onnx", "kind": "ort"}}), "utf-8")
        with trtpatch.load(path, executor="cpu") as pipeline:
            pipeline.set(score_threshold=0.0, iou_threshold=0.1)
            found[which] = pipeline(FRAME)[0]
    whole, cut = found["whole"], found["cut"]
    anchors, first, second = np.intersect1d(cut.anchors, whole.anchors, return_indices=True)
    assert anchors.min() < 80 * 80
    assert anchors.max() >= 80 * 80 + 40 * 40
    np.testing.assert_allclose(cut.keypoints[first], whole.keypoints[second], atol=1e-3, rtol=1e-6)


def test_without_metadata_the_rule_is_asked_for_and_can_be_named(
    tmp_path: Path, assets: Path
) -> None:
    model = with_random_weights(assets / "graphs/yolov8s-pose.onnx")
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "pose.onnx")
    path = tmp_path / "pipeline.yaml"
    text = json.dumps({"engine": {"path": "pose.onnx", "kind": "ort"}})[:-1]
    path.write_text(text + "}", "utf-8")
    with pytest.raises(MatchError, match="rule: yolov8_pose # head"):
        trtpatch.load(path, executor="cpu")
    path.write_text(text + ', "rule": "yolov8_pose"}', "utf-8")
    with trtpatch.load(path, executor="cpu") as pipeline:
        assert pipeline(FRAME)[0].keypoints.shape[1:] == (17, 3)
