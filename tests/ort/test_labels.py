"""Classes of pictures and of pixels, through whole pipelines, against ONNX Runtime's operators."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import scipy.special
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import trtpatch
from tests.command import invoke
from tests.patch_runs import run
from trtpatch.errors import InputError

SIZE = (64, 96)
CLASSES = 7
SCORES = 1e-4
"""Logits of some 50, summed up in another order, differ by a few ulps of 4e-6; scores follow."""
WEIGHTS = np.random.default_rng(0).normal(0, 4, (CLASSES, 3, 5, 5)).astype(np.float32)


def save(path, nodes, outputs, **constants):
    """A model that takes `image`, with a convolution `maps` before the given nodes."""
    first = helper.make_node("Conv", ["image", "weights"], ["maps"], pads=[2] * 4, strides=[2, 2])
    values = {"weights": WEIGHTS, **constants}
    graph = helper.make_graph(
        [first, *nodes],
        "model",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, *SIZE])],
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in outputs],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)
    return path


def classifier(path):
    pooled = helper.make_node("GlobalMaxPool", ["maps"], ["pooled"])
    flat = helper.make_node("Flatten", ["pooled"], ["logits"])
    return save(path, [pooled, flat], [("logits", TensorProto.FLOAT, [1, CLASSES])])


def segmenter(path):
    half = [SIZE[0] // 2, SIZE[1] // 2]
    node = helper.make_node("Identity", ["maps"], ["logits"])
    return save(path, [node], [("logits", TensorProto.FLOAT, [1, CLASSES, *half])])


def segmenter_to(path, frame):
    """The same with OpenVINO's and TensorRT's usual end: resize to the frame, best class."""
    nodes = [
        helper.make_node(
            "Resize",
            ["maps", "", "", "sizes"],
            ["large"],
            mode="linear",
            coordinate_transformation_mode="half_pixel",
        ),
        helper.make_node("ArgMax", ["large"], ["labels"], axis=1, keepdims=0),
    ]
    sizes = [1, CLASSES, *frame]
    outputs = [("labels", TensorProto.INT64, [1, *frame]), ("large", TensorProto.FLOAT, sizes)]
    return save(path, nodes, outputs, sizes=np.int64(sizes))


def write_pipeline(model, patch, *, frame="rgb", **params):
    path = model.with_name("pipeline.yaml")
    chosen = {"resize_letterbox": {"fit": "stretch"}, patch: params}
    chain = ["resize_letterbox", "engine", patch]
    content = {
        "engine": {"path": model.name, "kind": "ort"},
        "chain": chain,
        "params": chosen,
        "frame": frame,
    }
    path.write_text(json.dumps({**content, "labels": list("abcdefg")}))
    return path


def picture(height, width):
    smooth = Image.fromarray(
        np.random.default_rng((height, width)).integers(0, 256, (9, 13, 3), dtype=np.uint8)
    )
    return np.asarray(smooth.resize((width, height), Image.Resampling.BICUBIC))


def infer(model, pixels):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    image = pixels.transpose(2, 0, 1)[None] / np.float32(255)
    return session.run(None, {"image": image})


@pytest.mark.parametrize("executor", ["cpu", "host"])
def test_classes_of_a_picture(tmp_path, executor):
    model = classifier(tmp_path / "model.onnx")
    pixels = picture(*SIZE)
    with trtpatch.load(write_pipeline(model, "classify_topk"), executor=executor) as pipeline:
        found = pipeline(pixels)[0]
    assert isinstance(found, trtpatch.Classification)
    (logits,) = infer(model, pixels)
    scores = scipy.special.softmax(logits[0])
    order = np.argsort(-logits[0], kind="stable")[:5]
    assert len(found) == 5
    np.testing.assert_array_equal(found.labels, order)
    np.testing.assert_allclose(found.scores, scores[order], rtol=SCORES)
    assert found.names == ["abcdefg"[label] for label in order]
    best = found.to_dict()["classes"][0]
    assert best == {"score": found.scores[0], "label": order[0], "name": found.names[0]}


@pytest.mark.parametrize("executor", ["cpu", "host"])
@pytest.mark.parametrize("frame", [SIZE, (130, 201), (41, 33)])
def test_classes_of_a_pictures_pixels(tmp_path, frame, executor):
    model = segmenter(tmp_path / "model.onnx")
    pixels = picture(*frame)
    with trtpatch.load(write_pipeline(model, "segment_argmax"), executor=executor) as pipeline:
        found = pipeline(pixels)[0]
    assert isinstance(found, trtpatch.Segmentation)
    small = picture_as_the_model_gets_it(pixels)
    labels, large = infer(segmenter_to(tmp_path / "to_frame.onnx", frame), small)
    first, second = np.sort(large[0], axis=0)[:-3:-1]
    sure = first - second > 1e-4
    assert found.labels.shape == frame
    assert sure.mean() > 0.999
    np.testing.assert_array_equal(found.labels[sure], labels[0][sure])
    areas = {area["label"]: area["pixels"] for area in found.to_dict()["areas"]}
    assert areas == dict(zip(*np.unique(found.labels, return_counts=True), strict=True))


def picture_as_the_model_gets_it(pixels):
    params = {"fit": "stretch", "scale": 1.0}
    shapes = {"image": (1, 3, *SIZE)}
    image = run("resize_letterbox", {"frame_images": [pixels]}, params, shapes)["image"]
    return image[0].transpose(1, 2, 0)


@pytest.mark.parametrize("executor", ["cpu", "host"])
def test_a_pipeline_takes_video_as_it_is_decoded(tmp_path, executor):
    model = classifier(tmp_path / "model.onnx")
    frames = np.random.default_rng(0).integers(
        16, 236, (2, SIZE[0] * 3 // 2, SIZE[1]), dtype=np.uint8
    )
    with trtpatch.load(
        write_pipeline(model, "classify_topk", frame="nv12"), executor=executor
    ) as pipeline:
        found = pipeline(list(frames))
        with pytest.raises(InputError, match=r"expected \[height \* 3 / 2, width\]"):
            pipeline(picture(*SIZE))
    for frame, one in zip(frames, found, strict=True):
        assert (one.height, one.width) == SIZE
        params = {"scale": 1.0, "fit": "stretch"}
        shapes = {"image": (1, 3, *SIZE)}
        image = run("resize_letterbox", {"frame_images": [frame]}, params, shapes, frame="nv12")
        (logits,) = infer(model, image["image"][0].transpose(1, 2, 0))
        scores = scipy.special.softmax(logits[0])
        np.testing.assert_allclose(one.scores, np.sort(scores)[:-6:-1], rtol=SCORES)


def test_a_picture_without_room_says_so(tmp_path):
    path = write_pipeline(segmenter(tmp_path / "model.onnx"), "segment_argmax", room_pixels=2000)
    with trtpatch.load(path, executor="cpu") as pipeline:
        large, small = pipeline([picture(50, 41), picture(40, 50)])
        with pytest.raises(InputError, match="41 x 50 has 2050 pixels, more than there is room"):
            _ = large.labels
        assert small.labels.shape == (40, 50)


def test_the_command_line_shows_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Image.fromarray(picture(50, 70)).save("photo.png")
    arguments = ("run", "pipeline.yaml", "photo.png", "--executor", "cpu")
    drawn = []
    for model, patch, more in (
        (classifier(tmp_path / "c.onnx"), "classify_topk", {"top": 2}),
        (segmenter(tmp_path / "s.onnx"), "segment_argmax", {}),
    ):
        write_pipeline(model, patch, **more)
        said = invoke(*arguments).stdout
        assert "70 x 50 px" in said
        assert ("score" if more else "pixels") in said
        invoke(*arguments, "--save", f"{patch}.png")
        drawn.append(np.asarray(Image.open(f"{patch}.png")))
    assert (drawn[0] != drawn[1]).mean() > 0.9
