"""The ports: sets of tensors with a fixed meaning that patches meet at.

The axis letters are the same in every contract, kernel and reference; see `AXES`. A patch that
takes or gives a port names it in its contract and finds the port's tensors under
`<port>_<tensor>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FrameLayout = Literal["rgb", "bgr", "gray", "nv12", "rgb-planar", "bgr-planar"]
"""How the bytes of a frame lie; see the port `frame`."""
FRAME_LAYOUTS: tuple[FrameLayout, ...] = ("rgb", "bgr", "gray", "nv12", "rgb-planar", "bgr-planar")

AXES = {
    "N": "images of the batch",
    "A": "anchors, the most candidates that there can be",
    "M": "detections, the most that are kept",
    "B": "those of them that have a mask",
    "J": "key points",
    "K": "columns, or classes that are kept",
    "R": "room, in elements",
}
"""What the letters in the shapes of ports mean."""

FRAMEWORK_SIZES = frozenset({"model_H", "model_W"})
"""Sizes that every patch may use: height and width, in pixels, of the engine's picture input."""

COUNTERS = ("candidates", "kept", "dropped_topk", "dropped_max", "dropped_nan")


@dataclass(frozen=True)
class PortTensor:
    """One tensor of a port.

    Attributes:
        name: empty where the port has this one tensor alone.
        dtype: NumPy name of the element type.
        shape: letters, see `AXES`, and numbers; a ragged tensor's axes after N differ by image.
        help: what its elements are, in a few words.
        cleared: set to zero before each frame, for kernels that count upwards.
        ragged: a table of pointers, one an image.
        used: name of the port's tensor `[N]` that says how many elements of an image's row mean
            something; the rest is not written.
        lazy: a result that stays on the GPU until it is looked at.
        by_anchor: rows along A are those of the candidates' anchors; the others are not written.
    """

    name: str
    dtype: str
    shape: tuple[str | int, ...]
    help: str
    cleared: bool = False
    ragged: bool = False
    used: str = ""
    lazy: bool = False
    by_anchor: bool = False


@dataclass(frozen=True)
class Port:
    """A port's name, meaning and tensors.

    Attributes:
        result: whether the pipeline's caller gets it, wherever in the chain it is given.
    """

    name: str
    help: str
    tensors: tuple[PortTensor, ...]
    result: bool = False

    def fields(self) -> tuple[tuple[str, PortTensor], ...]:
        """Each tensor under its name in a contract: `candidates_boxes`, `geometry`."""
        return tuple((f"{self.name}_{t.name}" if t.name else self.name, t) for t in self.tensors)


PORTS = {
    port.name: port
    for port in (
        Port(
            "frame",
            "Source pictures, uint8: [height, width, 3] each (rgb, bgr), [height, width] (gray),"
            " [3, height, width] (rgb-planar, bgr-planar) or, as video decoders give it, [height *"
            " 3 / 2, width] (nv12: luma, then pairs of chroma at half the size). A size is height"
            " px, width px, row pitch in bytes, and 0, 0, 0 for an unused place in the batch.",
            (
                PortTensor(
                    "images", "uint8", ("N", "lines", "bytes"), "the bytes of each", ragged=True
                ),
                PortTensor(
                    "sizes", "int32", ("N", 3), "height px, width px, bytes from row to row"
                ),
            ),
        ),
        Port(
            "geometry",
            "Model pixels to frame pixels: scale_x, scale_y, left, top, width, height;"
            " x_frame = (x_model - left) * scale_x, clipped to 0..width.",
            (PortTensor("", "float32", ("N", 6), "scale_x, scale_y, left, top, width, height"),),
        ),
        Port(
            "candidates",
            "Boxes worth a look, x1 y1 x2 y2 in model pixels, in any order; count says how many.",
            (
                PortTensor("boxes", "float32", ("N", "A", 4), "x1 y1 x2 y2 in model pixels"),
                PortTensor("scores", "float32", ("N", "A"), "of the best class"),
                PortTensor("classes", "int32", ("N", "A"), "the best class, from 0"),
                PortTensor(
                    "anchors", "int32", ("N", "A"), "number of the head's row that it comes from"
                ),
                PortTensor("count", "int32", ("N",), "how many rows mean something", cleared=True),
                PortTensor(
                    "nans",
                    "int32",
                    ("N",),
                    "boxes dropped because a number of theirs is NaN",
                    cleared=True,
                ),
            ),
        ),
        Port(
            "detections",
            "Objects, x1 y1 x2 y2 in frame pixels, by score and then anchor; rows past count are"
            " zero, their anchor -1.",
            (
                PortTensor("boxes", "float32", ("N", "M", 4), "x1 y1 x2 y2 in frame pixels"),
                PortTensor("scores", "float32", ("N", "M"), "of the class, the highest first"),
                PortTensor("classes", "int32", ("N", "M"), "the class, from 0"),
                PortTensor("anchors", "int32", ("N", "M"), "number of the head's row, or -1"),
                PortTensor("count", "int32", ("N",), "how many rows mean something"),
                PortTensor("counters", "int32", ("N", len(COUNTERS)), ", ".join(COUNTERS)),
            ),
            result=True,
        ),
        Port(
            "columns",
            "What else the head says of each detection, such as mask coefficients, in the order of"
            " the detections; rows past their count are zero.",
            (PortTensor("", "float32", ("N", "M", "K"), "numbers as the head has them"),),
        ),
        Port(
            "keypoints",
            "Points of each detection: x, y in frame pixels, not clipped, and a confidence, 1 where"
            " the head gives none; rows past the detections' count are zero.",
            (PortTensor("", "float32", ("N", "M", "J", 3), "x, y, confidence"),),
            result=True,
        ),
        Port(
            "rectangles",
            "Of models that turn their boxes: the rectangle of each candidate, by its anchor."
            " Centre x y, width and height in model pixels, and the angle from the x axis to the"
            " width, clockwise, in radians. The candidate's box is the upright one around it.",
            (
                PortTensor(
                    "", "float32", ("N", "A", 5), "x, y, width, height, angle", by_anchor=True
                ),
            ),
        ),
        Port(
            "rotated",
            "The rectangle of each detection: centre x y, width and height in frame pixels, not"
            " clipped, and the angle from the x axis to the width, clockwise, 0 to pi / 2; rows"
            " past the detections' count are zero.",
            (PortTensor("", "float32", ("N", "M", 5), "x, y, width, height, angle"),),
            result=True,
        ),
        Port(
            "masks",
            "Which pixels of the frame belong to each of the first `count` detections, one bit a"
            " pixel. A mask is kept inside its box (x, y, width, height in frame pixels), row after"
            " row, each row from a new word on, the leftmost pixel lowest; it begins at word"
            " `starts` of the image's.",
            (
                PortTensor("words", "uint32", ("N", "R"), "32 pixels each", used="used", lazy=True),
                PortTensor("boxes", "int32", ("N", "B", 4), "x, y, width, height in frame pixels"),
                PortTensor("starts", "int32", ("N", "B"), "the mask's first word"),
                PortTensor("count", "int32", ("N",), "how many masks there are"),
                PortTensor("used", "int32", ("N",), "how many words mean something"),
            ),
            result=True,
        ),
        Port(
            "classification",
            "The likeliest classes of a whole picture, the likeliest first, equal ones by number.",
            (
                PortTensor("scores", "float32", ("N", "K"), "of the class, the highest first"),
                PortTensor("classes", "int32", ("N", "K"), "the class, from 0"),
            ),
            result=True,
        ),
        Port(
            "segmentation",
            "A class for each pixel, row after row, as many as height times width (`sizes`); none"
            " where there is not so much room.",
            (
                PortTensor(
                    "classes", "uint8", ("N", "R"), "one pixel each", used="used", lazy=True
                ),
                PortTensor("sizes", "int32", ("N", 2), "height px, width px"),
                PortTensor("used", "int32", ("N",), "how many pixels mean something"),
            ),
            result=True,
        ),
    )
}


def model_size_hint(name: str) -> str:
    """Where `model_H` or `model_W` comes from, for who finds that there is none."""
    return f"{name} is known only where a case gives shapes={{'model': (H, W)}}"
