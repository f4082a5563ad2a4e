"""mask_yolo against the authors' steps in OpenCV, SciPy's interpolation and COCO's masks."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco
from scipy import ndimage

from tests import mask_process
from tests.patch_runs import run
from trtpatch.executors.walker import HostRaw
from trtpatch.masks import Masks, runs
from trtpatch.verify.samples import detections

MODEL = (640, 640)


def inputs_for(frame, *, count=12, room=20, protos=(160, 160), prototypes=32, model=MODEL):
    """Smooth prototypes, random coefficients and boxes, and a letterbox's geometry."""
    random = np.random.default_rng(sum(frame))
    coarse = random.normal(0, 1, (prototypes, 12, 12)).astype(np.float32)
    scale = max(frame[0] / model[0], frame[1] / model[1])
    left, top = ((m - round(s / scale)) // 2 for m, s in zip(model[::-1], frame[::-1], strict=True))
    return {
        **detections([count], anchors=99, frame=frame, room=room),
        "geometry": np.float32([[scale, scale, left, top, *frame[::-1]]]),
        "columns": random.normal(0, 1, (1, room, prototypes)).astype(np.float32),
        "protos": np.stack([cv2.resize(one, protos[::-1]) for one in coarse])[None],
    }


def masks_of(inputs, *, model=MODEL, **params):
    frame = tuple(inputs["geometry"][0, :3:-1].astype(int))
    outputs = run("mask_yolo", inputs, params, {"model": model})
    return Masks(HostRaw(outputs), 0, frame)


@pytest.mark.parametrize("frame", [(720, 1280), (640, 640), (480, 640), (1280, 640), (360, 480)])
def test_masks_are_those_of_the_authors_steps(frame):
    inputs = inputs_for(frame)
    found = np.stack(list(masks_of(inputs)))
    logits = mask_process.logits_in_frame(inputs["protos"][0], inputs["columns"][0, :12], frame)
    expected = (1 / (1 + np.exp(-logits)) > 0.5) & mask_process.inside(
        inputs["detections_boxes"][0, :12], frame
    )
    assert expected.any(axis=(1, 2)).sum() > 6
    assert np.abs(logits[found != expected]).max(initial=0) < 1e-4  # on the very edge of a mask
    assert (found != expected).mean() < 1e-5


@settings(max_examples=25, deadline=None)
@given(
    frame=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    model=st.sampled_from([(96, 160), (64, 64), (320, 32)]),
    protos=st.sampled_from([(24, 40), (7, 33), (1, 1)]),
)
def test_any_frame_is_sampled_where_its_pixels_lie(frame, model, protos):
    inputs = inputs_for(frame, model=model, protos=protos, prototypes=3)
    scale, _, left, top, width, height = inputs["geometry"][0].astype(float)
    places, limits = [], []
    for before, size, room, whole in zip((top, left), (height, width), protos, model, strict=True):
        ratio = room / whole
        places.append(((np.arange(int(size)) + 0.5) / scale + before) * ratio - 0.5)
        limits.append((before * ratio - 0.5, (size / scale + before) * ratio - 0.5))
    seen = [np.arange(room) for room in protos]
    seen = [s[(s >= a) & (s < b)] for s, (a, b) in zip(seen, limits, strict=True)]
    if not all(len(s) for s in seen):
        return  # the whole frame falls between two prototypes
    places = [p.clip(s[0], s[-1]) for p, s in zip(places, seen, strict=True)]
    logits = np.einsum("mk,khw->mhw", inputs["columns"][0, :12], inputs["protos"][0])
    grid = np.meshgrid(*places, indexing="ij")
    expected = np.stack([ndimage.map_coordinates(one, grid, order=1) for one in logits])
    boxes = mask_process.inside(inputs["detections_boxes"][0, :12], frame)
    for part in (False, True):
        found = np.stack(list(masks_of(inputs, model=model, whole=part)))
        wrong = found != ((expected > 0) & boxes)
        assert np.abs(expected[wrong]).max(initial=0) < 1e-3


def test_what_has_no_room_is_left_out_from_the_worst_on():
    inputs = inputs_for((480, 640))
    every = masks_of(inputs)
    assert len(every) == 12
    words = [height * -(-width // 32) for _, _, width, height in every.boxes.tolist()]
    for room, count in ((sum(words[:5]), 5), (sum(words[:5]) - 1, 4), (words[0] - 1, 0)):
        some = masks_of(inputs, room_bytes=4 * room)
        assert len(some) == count
        assert all((a == b).all() for a, b in zip(some, every, strict=False))
    assert len(masks_of(inputs, max_masks=3)) == 3


def test_few_detections_are_little_work_however_much_room_there_is():
    inputs = inputs_for((480, 640), count=3, room=300)
    outputs = run("mask_yolo", inputs, {"max_masks": 300}, {"model": MODEL})
    (used,) = outputs["masks_used"]
    boxes = outputs["masks_boxes"][0, :3]
    assert used == (boxes[:, 3] * -(-boxes[:, 2] // 32)).sum()
    untouched = np.frombuffer(b"\xcd\xcd\xcd\xcd", np.uint32)
    assert (outputs["masks_words"][0, used:] == untouched).all()


@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")  # inside pycocotools
def test_masks_are_a_sequence_and_pack_as_cocos():
    masks = masks_of(inputs_for((211, 333)))
    assert [one.shape for one in masks] == [(211, 333)] * 12
    assert (masks[-1] == list(masks)[11]).all()
    assert len(masks[2:5]) == 3
    with pytest.raises(IndexError):
        masks[12]
    for index, mask in enumerate(masks):
        x, y, width, height = masks.boxes[index]
        assert (mask[y : y + height, x : x + width] == masks.crop(index)).all()
        packed = coco.frPyObjects({"size": [211, 333], "counts": runs(mask)}, 211, 333)
        assert (coco.decode(packed) == mask).all()
    assert runs(np.ones((2, 2), bool)) == [0, 4]
    assert runs(np.zeros((2, 2), bool)) == [4]
