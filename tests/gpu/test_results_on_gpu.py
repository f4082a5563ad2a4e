"""Masks, classes of pixels and video frames on the GPU, against `cpu`."""

import cv2
import numpy as np
import pytest
import scipy.special

import trtpatch
from tests.cleared import counted_input, counted_result
from tests.histogram import add_histogram
from tests.ort import test_labels as models
from tests.reloads import PICTURE, Project
from trtpatch.engines import EngineInfo, Tensor
from trtpatch.engines.metadata import Metadata
from trtpatch.engines.recorded import RecordedFrame, save_recording

FRAMES = [(480, 640), (123, 77), (640, 640), (300, 500), (64, 64)]
CLASSES, ANCHORS = 3, 500


def outputs(seed):
    """A YOLO-seg head and prototypes for 160 px, smooth enough to have shapes."""
    random = np.random.default_rng(seed)
    centres = random.uniform(20, 140, (2, ANCHORS))
    sizes = random.uniform(5, 90, (2, ANCHORS))
    scores = random.uniform(0, 0.26, (CLASSES, ANCHORS))  # one in ten above the threshold
    coefficients = random.normal(0, 1, (32, ANCHORS))
    head = np.concatenate([centres, sizes, scores, coefficients])[None].astype(np.float32)
    coarse = random.normal(0, 1, (32, 6, 6)).astype(np.float32)
    protos = np.stack([cv2.resize(one, (40, 40)) for one in coarse])[None]
    return {"head": head, "protos": protos}


@pytest.fixture
def recording(tmp_path):
    info = EngineInfo(
        kind="ort",
        path="seg.onnx",
        flavour="onnxruntime",
        version="1.0",
        inputs=(Tensor("images", "float32", (1, 3, 160, 160)),),
        outputs=(
            Tensor("head", "float32", (1, 4 + CLASSES + 32, ANCHORS)),
            Tensor("protos", "float32", (1, 32, 40, 40)),
        ),
        metadata=Metadata(),
    )
    frames = [RecordedFrame(outputs(i), np.int32([size])) for i, size in enumerate(FRAMES)]
    save_recording(tmp_path / "seg.npz", info=info, frames=frames)
    return tmp_path


def pipeline(folder, executor, params="{}"):
    path = folder / "pipeline.yaml"
    path.write_text(f"engine: {{path: seg.npz}}\nparams: {{mask_yolo: {params}}}\n")
    return trtpatch.load(path, executor=executor)


def pictures():
    return [np.zeros((*size, 3), np.uint8) for size in FRAMES]


def test_masks_stay_on_the_gpu_until_they_are_looked_at(recording):
    with pipeline(recording, "cpu") as cpu, pipeline(recording, "gpu") as gpu:
        expected = list(cpu(pictures()))
        found = list(gpu.stream(pictures(), depth=2))  # all batches, before the first look
    for one, other in zip(found, expected, strict=True):
        assert 10 < len(one.masks) == len(one) == len(other)
        np.testing.assert_array_equal(one.masks.boxes, other.masks.boxes)
        assert any(mask.any() for mask in one.masks)
        for mask, wanted in zip(one.masks, other.masks, strict=True):
            np.testing.assert_array_equal(mask, wanted)


def test_whole_masks_as_arrays_on_the_gpu(recording):
    import cupy

    frame = pictures()[0]
    with pipeline(recording, "cpu") as cpu:
        expected = np.stack(list(cpu(frame)[0].masks))
    with pipeline(recording, "gpu", "{whole: true}") as gpu:
        (batch,) = gpu(frame).device()
        count, height, width = int(batch["masks_count"][0]), *frame.shape[:2]
        words = batch["masks_words"][0, : count * height * -(-width // 32)]
        bits = cupy.unpackbits(words.view(cupy.uint8), bitorder="little")
        masks = bits.reshape(count, height, -1)[:, :, :width]
        np.testing.assert_array_equal(masks.get(), expected)


@pytest.mark.parametrize("where", ["host", "host with pitch", "gpu", "gpu with pitch"])
@pytest.mark.parametrize("layout", ["nv12", "gray", "rgb-planar"])
def test_frames_in_other_layouts(tmp_path, layout, where):
    import cupy

    model = models.classifier(tmp_path / "model.onnx")
    height, width = models.SIZE
    lines = {"nv12": height * 3 // 2, "gray": height, "rgb-planar": 3 * height}[layout]
    random = np.random.default_rng(0)
    wide = random.integers(16, 236, (lines, width + 8), dtype=np.uint8)
    given = wide[:, 2 : width + 2] if "pitch" in where else wide[:, :width].copy()
    if layout == "rgb-planar":
        given = np.lib.stride_tricks.as_strided(
            given, (3, height, width), (height * given.strides[0], *given.strides)
        )
    path = models.write_pipeline(model, "classify_topk", frame=layout)
    with trtpatch.load(path, executor="cpu") as cpu:
        expected = cpu(given)[0]
    if where.startswith("gpu"):
        strides, on_gpu = given.strides, cupy.asarray(wide)
        start = 2 if "pitch" in where else 0
        if "pitch" not in where:
            on_gpu = cupy.asarray(wide[:, :width].copy())
        view = on_gpu.data + start
        given = cupy.ndarray(given.shape, cupy.uint8, view, strides=strides)
    with trtpatch.load(path, executor="gpu") as gpu:
        found = gpu(given)[0]
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-3)


def test_classes_of_pixels(tmp_path):
    frames = [models.picture(130, 201), models.picture(41, 33), models.picture(64, 96)]
    path = models.write_pipeline(models.segmenter(tmp_path / "model.onnx"), "segment_argmax")
    with trtpatch.load(path, executor="cpu") as cpu, trtpatch.load(path, executor="gpu") as gpu:
        for one, other in zip(list(gpu.stream(frames)), cpu(frames), strict=True):
            assert one.labels.shape == (one.height, one.width)
            assert (one.labels != other.labels).mean() < 1e-3


def test_classes_of_a_picture(tmp_path):
    pixels = models.picture(*models.SIZE)
    model = models.classifier(tmp_path / "model.onnx")
    path = models.write_pipeline(model, "classify_topk")
    with trtpatch.load(path, executor="gpu") as gpu:
        found = gpu(pixels)[0]
    (logits,) = models.infer(model, pixels)
    scores = scipy.special.softmax(logits[0])
    np.testing.assert_array_equal(found.labels, np.argsort(-logits[0], kind="stable")[:5])
    np.testing.assert_allclose(found.scores, np.sort(scores)[:-6:-1], rtol=1e-4)


@pytest.mark.parametrize("counted", [counted_result, counted_input])
def test_what_is_counted_upwards_is_cleared_before_each_frame(tmp_path, counted):
    assert counted(tmp_path, "gpu") == [[1], [1]]


def test_the_output_of_a_patch_of_ones_own(tmp_path):
    project = Project(tmp_path)
    add_histogram(project)
    with trtpatch.load(project.pipeline, executor="gpu") as gpu:
        results = gpu(PICTURE)
        found, (on_gpu,) = results[0], results.device()
        expected = np.bincount(found.labels[found.scores > np.float32(0.3)], minlength=3)
        assert expected.any()
        np.testing.assert_array_equal(found.outputs["histogram"], expected)
        np.testing.assert_array_equal(on_gpu["histogram"].get(), [expected])
