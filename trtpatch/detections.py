"""What a pipeline gives back: objects in the pixels of the source picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trtpatch.errors import InputError
from trtpatch.labels import names_of, shown_names
from trtpatch.masks import Masks, runs
from trtpatch.outputs import Outputs, plain
from trtpatch.spec.ports import COUNTERS

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Counters:
    """What became of one picture's boxes.

    Attributes:
        candidates: boxes that the decode patch passed on.
        kept: detections in the result.
        dropped_topk: candidates cut by score before suppression.
        dropped_max: survivors of suppression beyond `max_detections`.
        dropped_nan: boxes left out because a score or coordinate was not a number.
    """

    candidates: int
    kept: int
    dropped_topk: int
    dropped_max: int
    dropped_nan: int


@dataclass(frozen=True)
class Detections:
    """Objects in one picture, the highest score first, equal scores by anchor.

    Attributes:
        boxes: `[M, 4]` float32, x1 y1 x2 y2 in pixels of the source picture, clipped to it.
        scores: `[M]` float32.
        labels: `[M]` int32, index of the class.
        anchors: `[M]` int32, index of the anchor that each box comes from.
        counters: what became of the other boxes.
        width, height: of the source picture, in pixels.
        class_names: names of all classes, or empty.
        masks: which pixels belong to each object, of chains that find out.
        keypoints: `[M, J, 3]` float32, x y in pixels of the source picture and a confidence, of
            chains that find them.
        rotated: `[M, 5]` float32, centre x y, width and height in pixels of the source picture,
            not clipped, and the angle from the x axis to the width, clockwise, 0 to pi / 2, of
            chains that turn boxes; `boxes` are then the upright ones around them.
        outputs: by name, what patches give and no later one takes, such as a `histogram` `[C]` of
            your own: the picture's row, or all of it where N is not its first axis.
    """

    boxes: Array
    scores: Array
    labels: Array
    anchors: Array
    counters: Counters
    width: int
    height: int
    class_names: tuple[str, ...] = field(default=(), repr=False)
    masks: Masks | None = field(default=None, repr=False)
    keypoints: Array | None = field(default=None, repr=False)
    rotated: Array | None = field(default=None, repr=False)
    outputs: Outputs = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def names(self) -> list[str]:
        """Class name of each object; the index as text where the class has no name."""
        return shown_names(self.labels, self.class_names)

    @property
    def corners(self) -> Array:
        """`[M, 4, 2]`, x y of the corners of each object's box, or of its turned one."""
        if self.rotated is None:
            upright: Array = self.boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]]
            return upright
        x, y, width, height, angle = self.rotated.T
        along = np.stack([np.cos(angle), np.sin(angle)], axis=1) * width[:, None] / 2
        across = np.stack([-np.sin(angle), np.cos(angle)], axis=1) * height[:, None] / 2
        signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
        centre = np.stack([x, y], axis=1)
        corners: Array = np.stack([centre + a * along + b * across for a, b in signs], axis=1)
        return corners

    def to_supervision(self) -> Any:
        """The same as `supervision.Detections`.

        Class names, anchors and, where there are any, key points and the corners of turned boxes
        are in its data: `class_name`, `anchor`, `keypoints`, `xyxyxyxy`.

        Raises:
            InputError: the package `supervision` is not installed.
        """
        try:
            import supervision
        except ImportError:
            raise InputError("supervision is not installed: pip install supervision") from None
        data: dict[str, Any] = {"class_name": np.array(self.names), "anchor": self.anchors}
        if self.keypoints is not None:
            data["keypoints"] = self.keypoints
        if self.rotated is not None:
            data["xyxyxyxy"] = self.corners
        return supervision.Detections(
            xyxy=self.boxes,
            confidence=self.scores,
            class_id=self.labels,
            mask=self._all_masks(),
            data=data,
        )

    def _all_masks(self) -> Array | None:
        """`[M, H, W]` bool; an object whose mask found no room has an empty one."""
        if self.masks is None:
            return None
        masks = np.zeros((len(self), self.height, self.width), bool)
        for index, mask in enumerate(self.masks):
            masks[index] = mask
        return masks

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, as `trtpatch run --json` writes them.

        A mask is in COCO's form, run lengths column after column.
        """
        names = names_of(self.labels, self.class_names)
        columns = (self.boxes.tolist(), self.scores.tolist(), self.labels.tolist(), names)
        found: list[dict[str, Any]] = [
            {"box": box, "score": score, "label": label, "name": name}
            for box, score, label, name in zip(*columns, strict=True)
        ]
        for one, mask in zip(found, self.masks or (), strict=False):
            one["mask"] = {"size": [self.height, self.width], "counts": runs(mask)}
        if self.keypoints is not None:
            for one, points in zip(found, self.keypoints.tolist(), strict=True):
                one["keypoints"] = points
        if self.rotated is not None:
            for one, rectangle in zip(found, self.rotated.tolist(), strict=True):
                one["rotated"] = rectangle
        return {
            "width": self.width,
            "height": self.height,
            "detections": found,
            "counters": {name: getattr(self.counters, name) for name in COUNTERS},
            **plain(self.outputs),
        }
