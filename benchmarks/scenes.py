"""Seeded inputs of known difficulty for the kernels' benchmarks, and executors that hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import measure
import numpy as np

from trtpatch.catalog import Catalog
from trtpatch.engines import Tensor
from trtpatch.executors import make_executor
from trtpatch.executors.capture import Call, capture_walk
from trtpatch.frame import as_frames
from trtpatch.plan import Plan
from trtpatch.planner import plan_patches

Array = np.ndarray[Any, Any]
Inputs = Mapping[str, "Array | list[Array]"]

SIDES = 80, 40, 20
"""Cells along a side of each level of a model for 640 px."""
FETCHED = 64
"""Bytes that an H200 fetches where 4 are wanted, by its own counters; see LOG.md."""


def boxes(count: int, *, side: int = 640, seed: int = 0) -> Array:
    """`[count, 4]` x1 y1 x2 y2: objects of all sizes, several boxes near each, as heads give."""
    draw = np.random.default_rng(seed)
    objects = max(1, count // 8)
    centre = draw.uniform(0, side, (objects, 2))
    size = draw.uniform(8, side / 4, (objects, 2))
    which = draw.integers(0, objects, count)
    c = centre[which] + draw.normal(0, 0.1, (count, 2)) * size[which]
    s = size[which] * draw.uniform(0.8, 1.25, (count, 2))
    return np.concatenate([c - s / 2, c + s / 2], 1).astype(np.float32)


def placed(count: int, draw: np.random.Generator, *, scattered: bool = False) -> list[Array]:
    """Which of 8400 anchors score, object by object: 80 x 80 cells, 40 x 40 and 20 x 20.

    Real heads fire in blobs of neighbours around an object: with YOLOX-nano on 24 photos, 6 cells a
    blob on average, half of all on the middle level. Memory gives neighbours together, so that the
    place of an anchor decides what its box costs; scattered anchors are the worst case.
    """
    if scattered:
        return list(draw.permutation(8400)[:count, None])
    free = np.ones(8400, bool)
    blobs: list[Array] = []
    while (left := count - sum(map(len, blobs))) > 0:
        level = draw.choice(3, p=[0.25, 0.5, 0.25])
        side, first = SIDES[level], sum(one * one for one in SIDES[:level])
        y, x = draw.uniform(0, side, 2)
        down, across = np.mgrid[:side, :side] + 0.5
        near = np.hypot(down - y, across - x) < draw.uniform(0.7, 2.0)
        blob = first + np.flatnonzero(near.ravel() & free[first : first + side * side])[:left]
        free[blob] = False
        blobs.append(blob)
    return blobs


def yolov8_head(
    batch: int, candidates: int, *, classes: int = 80, seed: int = 0, scattered: bool = False
) -> Array:
    """`[batch, 4 + classes, 8400]`; so many anchors an image score above 0.25; see `placed`."""
    draw = np.random.default_rng(seed)
    head = draw.uniform(0, 0.2, (batch, 4 + classes, 8400)).astype(np.float32)
    for n in range(batch):
        xyxy = boxes(8400, seed=seed + n)
        head[n, 0:2] = (xyxy[:, :2] + xyxy[:, 2:]).T / 2
        head[n, 2:4] = (xyxy[:, 2:] - xyxy[:, :2]).T
        for anchors in placed(candidates, draw, scattered=scattered):
            head[n, 4 + draw.integers(classes), anchors] = draw.uniform(0.26, 1, len(anchors))
    return head


def yolov8_levels(
    batch: int, candidates: int, *, classes: int = 80, seed: int = 0, scattered: bool = False
) -> list[Array]:
    """Raw heads `[batch, 64 + classes, side, side]` of each level, as logits; see `placed`."""
    draw = np.random.default_rng(seed)
    head = draw.normal(-6, 1, (batch, 64 + classes, 8400)).astype(np.float32)
    np.minimum(head[:, 64:], -2, out=head[:, 64:])  # none scores by chance
    for n in range(batch):
        for anchors in placed(candidates, draw, scattered=scattered):
            head[n, 64 + draw.integers(classes), anchors] = draw.uniform(0, 3, len(anchors))
    cells = np.cumsum([side * side for side in SIDES])[:-1]
    levels = zip(np.split(head, cells, axis=2), SIDES, strict=True)
    return [np.ascontiguousarray(one).reshape(*one.shape[:2], side, side) for one, side in levels]


def bytes_of_boxes(head: Array, values: int, threshold: float) -> int:
    """What memory gives for the boxes of the anchors that score: whole pieces of FETCHED bytes.

    Args:
        head: `[N, values + classes, ...]`, anchors last.
        values: of a box, each a whole plane from the next.
        threshold: what the best class must be above.
    """
    planes = head.reshape(*head.shape[:2], -1)
    image, anchor = np.nonzero(planes[:, values:].max(1) > threshold)
    plane = image[:, None] * planes.shape[1] + np.arange(values)
    at = (plane * planes.shape[2] + anchor[:, None]) * head.itemsize
    return np.unique(at // FETCHED).size * FETCHED


def candidates(batch: int, count: int, room: int, *, seed: int = 0) -> dict[str, Array]:
    """The candidates port and a geometry, for `select`; one class."""
    draw = np.random.default_rng(seed)
    port = {
        "candidates_boxes": np.zeros((batch, room, 4), np.float32),
        "candidates_scores": np.zeros((batch, room), np.float32),
        "candidates_classes": np.zeros((batch, room), np.int32),
        "candidates_anchors": np.zeros((batch, room), np.int32),
        "candidates_count": np.full(batch, count, np.int32),
        "candidates_nans": np.zeros(batch, np.int32),
        "geometry": np.tile(np.float32([3, 3, 0, 0, 1920, 1920]), (batch, 1)),
    }
    for n in range(batch):
        port["candidates_boxes"][n, :count] = boxes(count, seed=seed + n)
        port["candidates_scores"][n, :count] = draw.uniform(0.26, 1, count)
        port["candidates_anchors"][n, :count] = draw.permutation(room)[:count]
    return port


def plan(
    patches: Sequence[str],
    inputs: Inputs,
    *,
    batch: int,
    params: dict[str, dict[str, Any]] | None = None,
    shapes: dict[str, tuple[int, ...]] | None = None,
    dtypes: dict[str, str] | None = None,
    side: int = 640,
) -> Plan:
    """Patches bound to inputs of these shapes, without an engine."""
    catalog = Catalog()
    return plan_patches(
        [catalog.patch(name) for name in patches],
        inputs={
            name: tuple(Tensor(name, one.dtype.name, one.shape) for one in group)
            for name, group in _groups(inputs).items()
        },
        outputs={
            name: Tensor(name, (dtypes or {}).get(name, "float32"), shape)
            for name, shape in (shapes or {}).items()
        },
        params=params or {},
        batch=batch,
        model_size=(side, side),
    )


def executor(patches: Sequence[str], inputs: Inputs, **options: Any) -> Any:
    """Patches on the GPU with these inputs in place, captured as one CUDA Graph; see `plan`."""
    made = make_executor("gpu", plan(patches, inputs, **options), None, graph="required")
    for name, group in _groups(inputs).items():
        for index, one in enumerate(group):
            made.write(f"{name}.{index}", one)
    made.put_frames([])
    return made


def _groups(inputs: Inputs) -> dict[str, list[Array]]:
    return {name: one if isinstance(one, list) else [one] for name, one in inputs.items()}


def letterbox_options(batch: int) -> dict[str, Any]:
    """Of `plan`, for `resize_letterbox` to 640 float16."""
    return {"shapes": {"image": (batch, 3, 640, 640)}, "dtypes": {"image": "float16"}}


def letterboxes(
    sets: int, batch: int, *, size: tuple[int, int] = (1080, 1920)
) -> list[tuple[Any, list[Any]]]:
    """Executors of `resize_letterbox` with pictures of this height and width, on the GPU.

    Returns:
        Each with its pictures, which must be kept as long.
    """
    import cupy

    draw = np.random.default_rng(0)
    made = []
    for _ in range(sets):
        one = executor(["resize_letterbox"], {}, batch=batch, **letterbox_options(batch))
        pictures = [cupy.asarray(draw.integers(0, 255, (*size, 3), np.uint8)) for _ in range(batch)]
        one.put_frames(as_frames(pictures, layout="rgb"))
        made.append((one, pictures))
    return made


def calls_of(executor: Any) -> list[Call]:
    """The steps of a walk, which has run once."""
    executor.walk()
    executor.wait()
    calls: list[Call] = executor._steps.bind(executor._slot)
    return calls


def in_turn(executors: Sequence[Any], stream: Any) -> Callable[[], None]:
    """One walk of each, all on one stream; of several, none finds its input in the cache."""
    with stream:
        walks = [capture_walk(calls_of(one), stream, "required") for one in executors]

    def walk_all() -> None:
        for walk in walks:
            walk()

    return walk_all


def walk_time(executors: Sequence[Any]) -> dict[str, Any]:
    """Time of one walk; several executors take turns, so that no input stays in the cache."""
    stream = executors[0]._stream
    run = in_turn(executors, stream)
    with stream:
        times = measure.gpu_time(run)
    return {name: round(t / len(executors), 3) for name, t in times.items() if name != "runs"}


def step_times(executors: Sequence[Any]) -> dict[str, float]:
    """What each step adds to the walk: graphs of the first step, of the first two, and so on."""
    groups, stream = [calls_of(one) for one in executors], executors[0]._stream
    times, before = {}, 0.0
    with stream:
        for index, call in enumerate(groups[0]):
            graphs = [
                measure.captured(lambda some=calls[: index + 1]: [one.run() for one in some])
                for calls in groups
            ]
            taken = measure.gpu_time(lambda graphs=graphs: [graph() for graph in graphs])
            until = taken["median_us"] / len(groups)
            times[call.name] = round(until - before, 3)
            before = until
    return times
