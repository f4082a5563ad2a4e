"""Classes of a whole picture and of its pixels, and what classes are called."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from trtpatch.errors import InputError
from trtpatch.executors import Raw
from trtpatch.outputs import Outputs, plain

Array = np.ndarray[Any, Any]


def names_of(labels: Array, class_names: tuple[str, ...]) -> list[str | None]:
    """Class name of each label; None where the class has no name."""
    known = class_names
    return [known[i] if 0 <= i < len(known) else None for i in labels.tolist()]


def shown_names(labels: Array, class_names: tuple[str, ...]) -> list[str]:
    """The same for people: the label itself as text where the class has no name."""
    names = names_of(labels, class_names)
    return [str(i) if name is None else name for i, name in zip(labels, names, strict=True)]


@dataclass(frozen=True)
class Classification:
    """The likeliest classes of one picture, the likeliest first.

    Attributes:
        scores: `[K]` float32.
        labels: `[K]` int32, index of the class.
        width, height: of the source picture, in pixels.
        class_names: names of all classes, or empty.
        outputs: see `Detections`.
    """

    scores: Array
    labels: Array
    width: int
    height: int
    class_names: tuple[str, ...] = field(default=(), repr=False)
    outputs: Outputs = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def names(self) -> list[str]:
        """Name of each class; the index as text where it has no name."""
        return shown_names(self.labels, self.class_names)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, as `trtpatch run --json` writes them."""
        names = names_of(self.labels, self.class_names)
        columns = self.scores.tolist(), self.labels.tolist(), names
        return {
            "width": self.width,
            "height": self.height,
            "classes": [
                {"score": score, "label": label, "name": name}
                for score, label, name in zip(*columns, strict=True)
            ],
            **plain(self.outputs),
        }


class Segmentation:
    """A class for each pixel of one picture, brought to the host when looked at.

    Attributes:
        width, height: of the source picture, in pixels.
        class_names: names of all classes, or empty.
        outputs: see `Detections`.
    """

    def __init__(
        self,
        raw: Raw,
        row: int,
        size: tuple[int, int],
        class_names: tuple[str, ...],
        outputs: Outputs,
    ) -> None:
        """Take the port `segmentation` of a batch.

        Args:
            raw: results of the batch.
            row: the picture's index in the batch.
            size: height and width of the picture in pixels.
            class_names, outputs: see the attributes.
        """
        arrays = raw.host()
        self.height, self.width = size
        self.class_names = class_names
        self.outputs = outputs
        self._size: tuple[int, int] = tuple(arrays["segmentation_sizes"][row].tolist())
        self._used = int(arrays["segmentation_used"][row])
        self._raw = raw
        self._row = row

    @cached_property
    def labels(self) -> Array:
        """Index of the class: `[height, width]` uint8, or of the cells where these were asked for.

        Raises:
            InputError: the picture is larger than the patch has room for.
        """
        pixels = self._size[0] * self._size[1]
        if self._used < pixels:
            raise InputError(
                f"a picture of {self.width} x {self.height} has {pixels} pixels, more than there is"
                " room for. Give the patch that segments a larger 'room_pixels' in the pipeline"
                " file"
            )
        return self._raw.fetch("segmentation_classes", self._row, pixels).reshape(self._size)

    def areas(self) -> list[dict[str, Any]]:
        """How many pixels each class has that is there: `label`, `name` or None, `pixels`."""
        labels, counts = np.unique(self.labels, return_counts=True)
        columns = labels.tolist(), names_of(labels, self.class_names), counts.tolist()
        return [
            {"label": label, "name": name, "pixels": count}
            for label, name, count in zip(*columns, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, as `trtpatch run --json` writes them: the area of each class."""
        size = {"width": self.width, "height": self.height}
        return {**size, "areas": self.areas(), **plain(self.outputs)}
