"""What a call of a pipeline gives: one result a picture, brought from the GPU when looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from trtpatch.detections import Counters, Detections
from trtpatch.executors import Raw
from trtpatch.labels import Classification, Segmentation
from trtpatch.masks import Masks
from trtpatch.outputs import Outputs, outputs_of


class Results(Sequence[Any]):
    """The results of a call, one entry a picture.

    What they are depends on the chain: `Detections`, `Classification` or `Segmentation`.
    """

    def __init__(
        self,
        batches: Sequence[tuple[Raw, Sequence[tuple[int, int]]]],
        class_names: tuple[str, ...],
        more_by_image: Mapping[str, bool],
    ) -> None:
        """Take what the executor gave.

        Args:
            batches: results of each batch, and height and width of its pictures in pixels.
            class_names: names of all classes.
            more_by_image: see `Plan.more_by_image`.
        """
        self._batches = batches
        self._class_names = class_names
        self._more_by_image = more_by_image
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
                self._result(raw, row, size)
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

    def device(self, *, stream: int | None = None) -> list[dict[str, Any]]:
        """Each batch's result tensors as CuPy arrays on the GPU, without waiting.

        They have `__cuda_array_interface__` and `__dlpack__`, for PyTorch and others, and are the
        caller's own: copied on his stream, to memory that goes back to CuPy's pool in the order of
        that stream, as is usual there.

        Args:
            stream: CUDA stream, as an integer handle, that waits for the results and on which
                they are then used; CuPy's current one where not given.

        Returns:
            For each batch, name to array: the fields of the result's ports, such as
            `detections_boxes` `[N, M, 4]` float32, and the outputs of patches that no later patch
            takes, such as a `histogram` `[N, C]` of your own. Rows past `detections_count` are
            zero; those of unused places of a batch are there as well.

        Raises:
            InputError: the pipeline does not run on a GPU.
        """
        return [dict(raw.device(stream)) for raw, _ in self._batches]

    def _result(self, raw: Raw, row: int, size: tuple[int, int]) -> Any:
        arrays = raw.host()
        make = next(make for field, make in _MAKERS.items() if field in arrays)
        outputs = outputs_of(arrays, row, self._more_by_image)
        return make(raw, row, size, self._class_names, outputs)


def _detections(
    raw: Raw, row: int, size: tuple[int, int], class_names: tuple[str, ...], outputs: Outputs
) -> Detections:
    arrays = raw.host()
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
        masks=Masks(raw, row, size) if "masks_count" in arrays else None,
        keypoints=arrays["keypoints"][row, :count] if "keypoints" in arrays else None,
        rotated=arrays["rotated"][row, :count] if "rotated" in arrays else None,
        outputs=outputs,
    )


def _classification(
    raw: Raw, row: int, size: tuple[int, int], class_names: tuple[str, ...], outputs: Outputs
) -> Classification:
    arrays = raw.host()
    scores, labels = arrays["classification_scores"][row], arrays["classification_classes"][row]
    return Classification(scores, labels, size[1], size[0], class_names, outputs)


_MAKERS: dict[str, Callable[[Raw, int, tuple[int, int], tuple[str, ...], Outputs], Any]] = {
    "detections_count": _detections,
    "classification_scores": _classification,
    "segmentation_sizes": Segmentation,
}
"""For a field that a result's port has, what makes the result."""
