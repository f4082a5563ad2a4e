"""Which input shapes an engine may take, and which one a batch of pictures gets."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple

from trtpatch.engines import EngineInfo, Shape, Tensor
from trtpatch.errors import EngineError

Size = tuple[int, int]
"""Height and width in pixels."""

_OPEN = -1
_USUAL_STRIDE = 32


class ModelShape(NamedTuple):
    """What tells the shapes apart that one engine runs in.

    Attributes:
        batch: pictures at once, unused places included.
        size: of the model's picture; None where the engine takes no `[N, 3, H, W]`.
    """

    batch: int
    size: Size | None


class ModelShapes:
    """The shapes of one engine.

    Attributes:
        largest: the most pictures at once, in the size that is best.
        notes: what the user is told at load.
    """

    def __init__(self, info: EngineInfo, *, batch: int | None, rectangular: bool) -> None:
        """Find out which sizes are open.

        Args:
            info: the engine.
            batch: pictures at once, at most; where it is None, what the engine is best for.
            rectangular: let each batch have the smallest size that holds its pictures.

        Raises:
            EngineError: the engine has no input, or another batch, or sizes are open and none is
                the best.
        """
        if not info.inputs:
            raise EngineError(f"{info.path}: the engine takes no input, so no picture either")
        self._info = info
        picture = next((t for t in info.inputs if is_picture(t)), None)
        main = picture or info.inputs[0]
        low, best, high = info.bounds.get(main.name, (None, None, None))
        self._open_batch = main.shape[:1] == (_OPEN,)
        most = (
            (batch or (best[0] if best else 1)) if self._open_batch else max((1, *main.shape[:1]))
        )
        if batch is not None and batch != most:
            raise EngineError(
                f"the pipeline asks for batch {batch}, but the engine's input {main.name!r} is"
                f" fixed to {list(main.shape)}"
            )
        self._least_batch = low[0] if low and self._open_batch else 1
        size = _filled(picture, best) if picture else None
        self.largest = ModelShape(most, size)
        self._limits = (low[2:], high[2:]) if picture and low and high else None
        self._rectangular = rectangular and picture is not None and _OPEN in picture.shape[2:]
        self._closed = not self._open_batch and not self._rectangular
        self.notes: tuple[str, ...] = ()
        if rectangular and not self._rectangular:
            self.notes = ("without effect: size; the engine's picture has a fixed one",)

    def shape_for(self, pictures: Sequence[Size], size: Size | None = None) -> ModelShape:
        """The shape in which a batch of pictures runs.

        Args:
            pictures: their sizes, at most as many as `largest.batch`.
            size: of the model's picture, instead of the one that would be chosen.

        Raises:
            EngineError: the size is none, or the engine has no picture to give it to.
        """
        if size is None and self._closed:
            return self.largest
        count = max(len(pictures), self._least_batch) if self._open_batch else self.largest.batch
        if size is None:
            size = self._rectangle(pictures) if self._rectangular else self.largest.size
        elif self.largest.size is None:
            raise EngineError("the engine takes no picture [N, 3, height, width] of that size")
        return ModelShape(count, None if size is None else _whole(size))

    def all(self) -> list[ModelShape]:
        """Every shape that `shape_for` may choose by itself; the largest first."""
        sizes: list[Size | None] = [self.largest.size]
        if self._rectangular:
            assert self.largest.size is not None
            height, width = self.largest.size
            fits = {self._on_grid(tall, width) for tall in range(1, height + 1)}
            fits |= {self._on_grid(height, wide) for wide in range(1, width + 1)}
            sizes = [*sorted(fits, reverse=True)]
        most = self.largest.batch
        least = self._least_batch if self._open_batch else most
        shapes = [ModelShape(n, size) for n in range(most, least - 1, -1) for size in sizes]
        return sorted(shapes, key=lambda shape: shape != self.largest)

    def inputs_at(self, shape: ModelShape) -> dict[str, Shape]:
        """Shapes of the engine's inputs, by name."""
        return {tensor.name: _at(tensor, shape) for tensor in self._info.inputs}

    def _rectangle(self, pictures: Sequence[Size]) -> Size:
        """The smallest size on the stride's grid in which no picture gets smaller.

        A letterbox into the best size scales by the smaller of two ratios; its longer side touches
        the border, and this cuts off the padding beside the shorter one.
        """
        assert self.largest.size is not None
        height, width = self.largest.size
        tall = wide = 1
        for h, w in pictures:
            tall = max(tall, min(height, -(-h * width // w)))
            wide = max(wide, min(width, -(-w * height // h)))
        return self._on_grid(tall, wide)

    def _on_grid(self, tall: int, wide: int) -> Size:
        """The next larger size that the engine takes."""
        assert self._limits is not None
        low, high = self._limits
        stride = self._info.metadata.stride or _USUAL_STRIDE
        rounded = (-(-side // stride) * stride for side in (tall, wide))
        h, w = (min(max(a, n), b) for a, n, b in zip(low, rounded, high, strict=True))
        return h, w


def _whole(size: Sequence[int]) -> Size:
    """Any pair of whole numbers as a size."""
    try:
        height, width = map(operator.index, size)
    except (TypeError, ValueError):
        height = width = 0
    if height < 1 or width < 1:
        raise EngineError(f"size: expected (height, width) in whole pixels, found {size!r}")
    return height, width


def is_picture(tensor: Tensor) -> bool:
    """Whether a tensor can be the model's picture: `[N, 3, H, W]`, or gray `[N, 1, H, W]`."""
    return len(tensor.shape) == 4 and tensor.shape[1] in (1, 3)


def _filled(picture: Tensor, best: Shape | None) -> Size:
    """The picture's size, the best one where it is open."""
    if best is None and _OPEN in picture.shape[2:]:
        raise EngineError(
            f"the engine's input {picture.name!r} {list(picture.shape)} is open in more than the"
            " batch. Under 'engine' in the pipeline file, give its size with 'input_shape', or"
            " bounds with 'profile'"
        )
    best = best or picture.shape
    height, width = (best[i] if picture.shape[i] == _OPEN else picture.shape[i] for i in (2, 3))
    return height, width


def _at(tensor: Tensor, shape: ModelShape) -> Shape:
    sizes = list(tensor.shape)
    if sizes and sizes[0] == _OPEN:
        sizes[0] = shape.batch
    if is_picture(tensor) and shape.size is not None:
        sizes[2:] = shape.size
    if _OPEN in sizes:
        raise EngineError(
            f"the engine's input {tensor.name} {list(tensor.shape)} is open in more than the batch."
            " Under 'engine' in the pipeline file, give its shape with 'input_shape'"
        )
    return tuple(sizes)
