"""What a pipeline gives back: objects in the pixels of the source picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from trtpatch.executors import Raw
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
    """

    boxes: Array
    scores: Array
    labels: Array
    anchors: Array
    counters: Counters
    width: int
    height: int
    class_names: tuple[str, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def names(self) -> list[str]:
        """Class name of each object; the index as text where the class has no name."""
        known = self.class_names
        return [known[i] if 0 <= i < len(known) else str(i) for i in self.labels.tolist()]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, as `trtpatch run --json` writes them."""
        columns = (self.boxes.tolist(), self.scores.tolist(), self.labels.tolist(), self.names)
        return {
            "width": self.width,
            "height": self.height,
            "detections": [
                {"box": box, "score": score, "label": label, "name": name}
                for box, score, label, name in zip(*columns, strict=True)
            ],
            "counters": {name: getattr(self.counters, name) for name in COUNTERS},
        }


class Results(Sequence[Detections]):
    """The detections of a call, one entry a picture, brought from the GPU when first looked at."""

    def __init__(
        self,
        batches: Sequence[tuple[Raw, Sequence[tuple[int, int]]]],
        class_names: tuple[str, ...],
    ) -> None:
        """Take what the executor gave.

        Args:
            batches: results of each batch, and height and width of its pictures.
            class_names: names of all classes.
        """
        self._batches = batches
        self._class_names = class_names
        self._detections: list[Detections] | None = None

    def __len__(self) -> int:
        return sum(len(sizes) for _, sizes in self._batches)

    @overload
    def __getitem__(self, index: int) -> Detections: ...
    @overload
    def __getitem__(self, index: slice) -> list[Detections]: ...
    def __getitem__(self, index: int | slice) -> Detections | list[Detections]:
        if self._detections is None:
            self._detections = [
                _detections(raw.host(), row, size, self._class_names)
                for raw, sizes in self._batches
                for row, size in enumerate(sizes)
            ]
        return self._detections[index]

    def prefetch(self) -> None:
        """Start bringing the results to the host; `wait` before letting go of them."""
        for raw, _ in self._batches:
            raw.prefetch()

    def wait(self) -> None:
        """Wait until the results are on the host."""
        for raw, _ in self._batches:
            raw.host()

    def device(self) -> list[dict[str, Any]]:
        """Each batch's result tensors as CuPy arrays on the GPU, without waiting or copying.

        Returns:
            For each batch, field name to array, such as `detections_boxes` `[N, M, 4]` float32;
            rows past `detections_count` are zero.

        Raises:
            InputError: the pipeline does not run on a GPU.
        """
        return [dict(raw.device()) for raw, _ in self._batches]


def _detections(
    arrays: Any, row: int, size: tuple[int, int], class_names: tuple[str, ...]
) -> Detections:
    count = int(arrays["detections_count"][row])
    return Detections(
        boxes=arrays["detections_boxes"][row, :count],
        scores=arrays["detections_scores"][row, :count],
        labels=arrays["detections_classes"][row, :count],
        anchors=arrays["detections_anchors"][row, :count],
        counters=Counters(*arrays["detections_counters"][row].tolist()),
        width=size[1],
        height=size[0],
        class_names=class_names,
    )
