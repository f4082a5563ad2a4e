"""Run one patch on one executor."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from trtpatch import builtin
from trtpatch.catalog import Patch
from trtpatch.spec.ports import FrameLayout
from trtpatch.verify import Case, plan_case, run_case

_EXAMPLES = Path(__file__).parents[1] / "examples"
_FOLDERS = {
    contract.parent.name: contract.parent
    for root in (builtin.patches_folder(), *_EXAMPLES.glob("*/patches"))
    for contract in root.glob("[!_.]*/patch.yaml")
}
PATCHES = sorted(_FOLDERS)
"""Names of the built-in patches and of those in the examples."""


@lru_cache
def read(name: str) -> Patch:
    return Patch.read(_FOLDERS[name])


def run(
    name: str,
    inputs: dict[str, Any],
    params: dict[str, Any] | None = None,
    shapes: dict[str, tuple[int, ...]] | None = None,
    *,
    executor: str = "cpu",
    frame: FrameLayout = "rgb",
) -> dict[str, np.ndarray]:
    case = Case(name, inputs, params or {}, shapes or {}, frame=frame)
    return run_case(plan_case(read(name), case), case, executor)


def candidates(*images: tuple[Any, Any, Any]) -> dict[str, np.ndarray]:
    """The candidates port from boxes, scores and classes an image; anchors in their order."""
    room = max(1, *(len(scores) for _, scores, _ in images))
    port = {
        "candidates_boxes": np.zeros((len(images), room, 4), np.float32),
        "candidates_scores": np.zeros((len(images), room), np.float32),
        "candidates_classes": np.zeros((len(images), room), np.int32),
        "candidates_anchors": np.tile(np.arange(room, dtype=np.int32), (len(images), 1)),
        "candidates_count": np.int32([len(scores) for _, scores, _ in images]),
        "candidates_nans": np.zeros(len(images), np.int32),
    }
    for n, (boxes, scores, classes) in enumerate(images):
        port["candidates_boxes"][n, : len(scores)] = np.reshape(boxes, (-1, 4))
        port["candidates_scores"][n, : len(scores)] = scores
        port["candidates_classes"][n, : len(scores)] = classes
    return port


def suppress(
    *images: tuple[Any, Any, Any], executor: str = "cpu", **params: Any
) -> dict[str, np.ndarray]:
    """Run select_nms on boxes, scores and classes an image, in a frame that clips nothing."""
    geometry = np.tile(np.float32([1, 1, 0, 0, 1e9, 1e9]), (len(images), 1))
    inputs = {**candidates(*images), "geometry": geometry}
    return run("select_nms", inputs, {"max_detections": 2**63 - 1, **params}, executor=executor)


def kept(outputs: dict[str, np.ndarray], image: int = 0) -> list[int]:
    """Anchors of an image's detections, in their order."""
    return outputs["detections_anchors"][image, : outputs["detections_count"][image]].tolist()
