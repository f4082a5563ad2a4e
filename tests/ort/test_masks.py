"""A YOLO-seg graph from photo to masks, against ONNX Runtime and its authors' steps in OpenCV."""

import json

import cv2
import numpy as np
import onnx
import pytest
from pycocotools import mask as coco

import trtpatch
from tests import mask_process
from tests.graphs import infer, with_random_weights
from tests.patch_runs import run
from trtpatch.verify.samples import detections

PHOTO = "000000001000.jpg"
COEFFICIENTS = [f"/model.22/cv4.{i}/cv4.{i}.2/Conv_output_0" for i in range(3)]


@pytest.fixture(scope="module")
def model(assets, tmp_path_factory):
    path = tmp_path_factory.mktemp("seg") / "seg.onnx"
    onnx.save(with_random_weights(assets / "graphs" / "yolov8s-seg.onnx"), path)
    return path


@pytest.fixture(scope="module")
def raw(assets, model):
    """What the graph gives for the photo, letterboxed as its authors do, by tensor."""
    frame = cv2.imread(str(assets / "images" / PHOTO))[:, :, ::-1]
    assert frame.shape == (480, 640, 3)
    image = np.full((640, 640, 3), 114, np.uint8)
    image[80:560] = frame
    scaled = image.transpose(2, 0, 1)[None] / np.float32(255)
    return infer(model, {"images": scaled}, *COEFFICIENTS)


def pipeline_file(model, raw):
    """A pipeline whose score threshold suits random weights."""
    head = raw["output0"][0]
    score = float(np.sort(head[4:84].max(axis=0))[-60])
    chosen = {"decode_yolov8": {"score_threshold": score}}
    path = model.with_name("pipeline.yaml")
    path.write_text(json.dumps({"engine": {"path": model.name}, "params": chosen}))
    return path


@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")  # inside pycocotools
@pytest.mark.parametrize("executor", ["cpu", "host"])
def test_masks_of_a_photo(assets, model, raw, executor):
    head, protos = raw["output0"][0], raw["output1"][0]
    with trtpatch.load(pipeline_file(model, raw), executor=executor) as pipeline:
        found = pipeline(assets / "images" / PHOTO)[0]
        logits = mask_process.logits_in_frame(protos, head[84:, found.anchors].T, (480, 640))
        threshold = float(np.median(logits))  # random weights rarely come to logits above 0
        pipeline.set(mask_threshold=threshold)
        found = pipeline(assets / "images" / PHOTO)[0]
    assert 5 < len(found) == len(found.masks) <= 100
    masks = np.stack(list(found.masks))
    expected = (logits > threshold) & mask_process.inside(found.boxes, (480, 640))
    assert 0.05 < expected.mean() < 0.95
    wrong = masks != expected
    # Two runs of the graph and two orders of addition: what lies on the very edge may differ.
    assert np.abs(logits - threshold)[wrong].max(initial=0) < 1e-3 * logits.std()
    assert wrong.mean() < 1e-3
    written = json.loads(json.dumps(found.to_dict()))["detections"]
    for one, mask in zip(written, masks, strict=True):
        assert (coco.decode(coco.frPyObjects(one["mask"], 480, 640)) == mask).all()


def test_coefficients_come_from_the_whole_head_and_from_raw_maps(raw):
    port = detections([20, 7], anchors=8400)
    port["detections_anchors"][0, :6] = 0, 6399, 6400, 7999, 8000, 8399
    head = np.repeat(raw["output0"], 2, axis=0)
    maps = [np.repeat(raw[name], 2, axis=0) for name in COEFFICIENTS]
    found = [
        run("gather_columns", {**port, "head": head})["columns"],
        run("gather_rows", {**port, "head": head.transpose(0, 2, 1).copy()})["columns"],
        run("gather_levels", {**port, "maps": maps})["columns"],
    ]
    expected = raw["output0"][0, 84:, port["detections_anchors"][0]]
    for columns in found:
        np.testing.assert_array_equal(columns[0], expected)
        np.testing.assert_array_equal(columns[1, 7:], 0)
