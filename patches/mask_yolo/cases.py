"""Prototypes, detections and frames that matter to mask_yolo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import detections


def cases() -> Iterator[Case]:
    yield case("32 prototypes", [3, 0, 20])
    yield case("float16", [20, 1], dtype=np.float16)
    yield case("one prototype", [7], prototypes=1)
    yield case("35 columns", [9], protos=(11, 35))
    yield case("portrait", [9], frame=(500, 123))
    yield case("smaller frame than prototypes", [20], frame=(20, 11))
    yield case("a frame of one pixel", [5], frame=(1, 1))
    yield case("whole", [6, 0, 2], whole=True, frame=(70, 100))
    yield case("room for two masks", [20, 0], max_masks=2)
    yield case("room for one mask", [3, 1], max_masks=1)
    yield case("little room", [20, 3], room_bytes=20000)
    yield case("room for nothing", [20], room_bytes=4)
    yield case("threshold", [8], mask_threshold=-1.5)
    whole_frame = case("boxes as large as the frame", [4], frame=(211, 333))
    whole_frame.inputs["detections_boxes"][0, :4] = 0, 0, 333, 211
    yield whole_frame
    thin = case("boxes without pixels, and of one", [6])
    thin.inputs["detections_boxes"][0, :6] = [
        [10.2, 10, 10.8, 50],
        [10, 10, 10, 10],
        [639.5, 0, 640, 480],
        [0, 479, 640, 480],
        [5, 5, 5.1, 5.1],
        [31, 0, 65, 1],
    ]
    yield thin
    equal = case("logits at the threshold", [3])
    equal.inputs["columns"][...] = 0
    yield equal
    nans = case("not a number", [3])
    nans.inputs["columns"][0, 0, 0] = np.nan
    nans.inputs["protos"][0, 0, 5, 5] = np.inf
    yield nans


def case(
    name: str,
    counts: list[int],
    *,
    frame: tuple[int, int] = (480, 640),
    protos: tuple[int, int] = (24, 40),
    prototypes: int = 32,
    dtype: type[np.floating] = np.float32,
    **params: Any,
) -> Case:
    """Frames letterboxed into 160 x 96 px, and prototypes of a given height and width for that."""
    random = np.random.default_rng(len(name))
    images = len(counts)
    scale = max(frame[0] / 96, frame[1] / 160)
    pads = [(160 - round(frame[1] / scale)) // 2, (96 - round(frame[0] / scale)) // 2]
    port = detections(counts, anchors=1000, frame=frame)
    coarse = random.normal(0, 1, (images, prototypes, *protos))
    inputs = {
        **port,
        "geometry": np.tile(np.float32([scale, scale, *pads, *frame[::-1]]), (images, 1)),
        "columns": random.normal(0, 1, (images, 20, prototypes)).astype(np.float32),
        "protos": coarse.astype(dtype),
    }
    return Case(name, inputs, {"room_bytes": 1 << 20, **params}, {"model": (96, 160)})
