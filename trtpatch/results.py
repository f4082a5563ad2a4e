"""What a call of a pipeline gives: one result a picture, brought from the GPU when looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from trtpatch.detections import Detections
from trtpatch.executors import Raw
from trtpatch.labels import Classification, Segmentation

_MAKERS: dict[str, Callable[[Raw, int, tuple[int, int], tuple[str, ...]], Any]] = {
    "detections_count": Detections.of,
    "classification_scores": Classification.of,
    "segmentation_sizes": Segmentation,
}
"""For a field that a result's port has, what makes the result."""


class Results(Sequence[Any]):
    """The results of a call, one entry a picture.

    What they are depends on the chain: `Detections`, `Classification` or `Segmentation`.
    """

    def __init__(
        self,
        batches: Sequence[tuple[Raw, Sequence[tuple[int, int]]]],
        class_names: tuple[str, ...],
    ) -> None:
        """Take what the executor gave.

        Args:
            batches: results of each batch, and height and width of its pictures in pixels.
            class_names: names of all classes.
        """
        self._batches = batches
        self._class_names = class_names
        self._results: list[Any] | None = None

    def __len__(self) -> int:
        return sum(len(sizes) for _, sizes in self._batches)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if self._results is None:
            self._results = [
                _result(raw, row, size, self._class_names)
                for raw, sizes in self._batches
                for row, size in enumerate(sizes)
            ]
        return self._results[index]

    def prefetch(self) -> None:
        """Start bringing the results to the host; `wait` before letting go of them."""
        for raw, _ in self._batches:
            raw.prefetch()

    def wait(self) -> None:
        """Wait until the results are on the host."""
        for raw, _ in self._batches:
            raw.host()

    def arrays(self) -> list[dict[str, Any]]:
        """Each batch's result tensors as NumPy arrays, waiting for them.

        Returns:
            For each batch, name to array: the fields of the result's port, such as
            `detections_boxes` `[N, M, 4]` float32, and the outputs of patches that no later patch
            takes, such as a `histogram` `[N, C]` of your own. Rows of unused places of a batch are
            there as well. Tensors that stay on the GPU until they are looked at, such as masks, may
            be left out.
        """
        return [dict(raw.host()) for raw, _ in self._batches]

    def device(self, *, stream: int | None = None) -> list[dict[str, Any]]:
        """Each batch's result tensors as CuPy arrays on the GPU, without waiting.

        They have `__cuda_array_interface__` and `__dlpack__`, for PyTorch and others, and are the
        caller's own: copied on his stream, to memory that goes back to CuPy's pool in the order of
        that stream, as is usual there.

        Args:
            stream: CUDA stream, as an integer handle, that waits for the results and on which
                they are then used; CuPy's current one where not given.

        Returns:
            For each batch, the same as `arrays`, and those that stay on the GPU; rows past
            `detections_count` are zero.

        Raises:
            InputError: the pipeline does not run on a GPU.
        """
        return [dict(raw.device(stream)) for raw, _ in self._batches]


def _result(raw: Raw, row: int, size: tuple[int, int], class_names: tuple[str, ...]) -> Any:
    arrays = raw.host()
    make = next(make for field, make in _MAKERS.items() if field in arrays)
    return make(raw, row, size, class_names)
