"""The whole chain: graph against plain launches, and against the usual way.

    python benchmarks/pipeline.py --model yolox_nano_416.onnx --photo photo.jpg [--out folder]

`--model` is a trained YOLOX-nano; `--batched` an exported YOLOv8 with a dynamic batch, whose
weights may be random, since only its times are looked at: its threshold is set so that 250
candidates pass.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import measure
import numpy as np

import trtpatch


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def frames_of(photo: Path, count: int) -> list[np.ndarray]:
    """1080p pictures, each shifted a little so that none equals another."""
    from PIL import Image

    picture = np.asarray(Image.open(photo).convert("RGB").resize((1920, 1080)))
    return [np.ascontiguousarray(np.roll(picture, 7 * i, axis=1)) for i in range(count)]


def graph_rows(path: Path, photo: Path) -> dict[str, Any]:
    """Times of one walk, as a graph and as plain launches, and of the engine alone."""
    import cupy

    rows: dict[str, Any] = {}
    picture = frames_of(photo, 1)
    for mode in ("required", "off"):
        text = path.read_text(encoding="utf-8") + f"graph: {mode}\n"
        with trtpatch.load(write(path.parent, f"graph_{mode}", text)) as pipeline:
            pipeline(picture)[0]
            executor = pipeline._ready.last
            timed: dict[str, Callable[[], Any]] = {f"walk, graph {mode}": executor._slot.walk}
            with executor._stream:
                for name, calls in parts_of(executor._slot.walk.calls).items():
                    run = one_by_one(calls)
                    if mode == "required":
                        timed[f"{name}, in a graph"] = measure.captured(run)
                    else:
                        timed[f"{name}, plain"] = run
                measure.gpu_times(timed)  # so that the GPU is as fast for the first as for the last
                rows.update(measure.gpu_times(timed))
            if mode == "required":
                rows["host time of a call, frame on the GPU"] = host_time(pipeline, cupy, picture)
                rows["call and result, 1080p in host memory"] = measure.wall_time(
                    lambda p=pipeline: p(picture)[0].boxes
                )
    walk, engine = rows["walk, graph required"], rows["engine alone, in a graph"]
    added = round(walk["median_us"] - engine["median_us"], 3)
    rows["what the patches add to the engine's graph, us"] = added
    return rows


def parts_of(calls: Sequence[Any]) -> dict[str, list[Any]]:
    return {
        "engine alone": [call for call in calls if call.name == "engine"],
        "patches alone": [call for call in calls if call.name != "engine"],
    }


def one_by_one(calls: Sequence[Any]) -> Callable[[], None]:
    def run() -> None:
        for call in calls:
            call.run()

    return run


def host_time(pipeline: Any, cupy: Any, picture: list[np.ndarray]) -> dict[str, Any]:
    """Time that a call holds the calling thread, with nothing to copy and the GPU idle."""
    frame = cupy.asarray(picture[0])
    cupy.cuda.Device().synchronize()
    executor = pipeline._ready.last

    def held(run: Callable[[], Any]) -> dict[str, float]:
        times = []

        def once() -> None:
            executor._stream.synchronize()
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e6)

        measure.warm_up(once)
        times.clear()
        for _ in range(500):
            once()
        return measure.summary(times)

    return {
        "call": held(lambda: pipeline(frame)),
        "of which the graph's launch": held(executor._slot.walk),
    }


def overlap_rows(path: Path, photo: Path) -> dict[str, Any]:
    """Frames a second from pageable and pinned 1080p frames, with and without overlap."""
    import cupy

    rows = {}
    pageable = frames_of(photo, 64)
    pinned = []
    for frame in pageable:
        memory = cupy.cuda.alloc_pinned_memory(frame.nbytes)
        array = np.frombuffer(memory, np.uint8, frame.nbytes).reshape(frame.shape)
        array[...] = frame
        pinned.append(array)
    with trtpatch.load(path) as pipeline:
        for kind, frames in (("pageable", pageable), ("pinned", pinned)):
            for depth in (1, 2, 4):
                measure.warm_up(lambda f=frames, d=depth: list(pipeline.stream(f, depth=d)))
                rates = []
                for _ in range(5):
                    start = time.perf_counter()
                    for _ in pipeline.stream(frames, depth=depth):
                        pass
                    rates.append(len(frames) / (time.perf_counter() - start))
                rows[f"{kind}, depth {depth}, frames/s"] = round(sorted(rates)[2], 1)
    return rows


def threshold_for(pipeline: Any, photos: list[np.ndarray], *, candidates: int) -> float:
    """The score that so many anchors of the first picture are above."""
    pipeline(photos)[0]
    step = next(step for step in pipeline.plan.steps if step.name == "engine")
    head = pipeline._ready.last.read(next(iter(step.outputs.values())))[0]
    return float(np.sort(head[4:].max(0))[-candidates - 1])


class UsualWay:
    """OpenCV letterbox, `execute_async_v3`, torch decode, torchvision's batched NMS."""

    def __init__(self, engine: Any, head: str, size: int, threshold: float) -> None:
        import torch

        self.torch = torch
        self.engine = engine
        self.head = head
        self.size = size
        self.threshold = threshold
        self.stream = torch.cuda.Stream()
        self.inputs = {t.name: torch.zeros(t.shape, device="cuda") for t in engine.info.inputs}
        self.outputs = {t.name: torch.zeros(t.shape, device="cuda") for t in engine.info.outputs}
        tensors = {**self.inputs, **self.outputs}
        self.addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
        if head == "yolox":
            cells = []
            for stride in (8, 16, 32):
                side = size // stride
                y, x = np.divmod(np.arange(side * side), side)
                cells.append(np.stack([x, y, np.full_like(x, stride)], 1))
            self.cells = torch.tensor(np.concatenate(cells), device="cuda", dtype=torch.float32)

    def letterbox(self, photo: np.ndarray) -> np.ndarray:
        import cv2

        gain = min(self.size / photo.shape[0], self.size / photo.shape[1])
        new = round(photo.shape[1] * gain), round(photo.shape[0] * gain)
        padded = np.full((self.size, self.size, 3), 114, np.uint8)
        padded[: new[1], : new[0]] = cv2.resize(photo, new)
        return padded.transpose(2, 0, 1)

    def __call__(self, photos: list[np.ndarray]) -> list[Any]:
        import torchvision

        torch = self.torch
        with torch.cuda.stream(self.stream), torch.no_grad():
            batch = np.stack([self.letterbox(photo) for photo in photos])
            image = torch.from_numpy(batch).to("cuda", non_blocking=True).float()
            next(iter(self.inputs.values())).copy_(image if self.head == "yolox" else image / 255)
            self.engine.enqueue(self.addresses, self.stream.cuda_stream)
            raw = next(iter(self.outputs.values()))
            found = []
            for n in range(len(photos)):
                if self.head == "yolox":
                    one = raw[n]
                    stride = self.cells[:, 2:]
                    centre = (one[:, :2] + self.cells[:, :2]) * stride
                    half = one[:, 2:4].exp() * stride / 2
                    scores, labels = (one[:, 4:5] * one[:, 5:]).max(1)
                else:
                    one = raw[n].T
                    centre, half = one[:, :2], one[:, 2:4] / 2
                    scores, labels = one[:, 4:].max(1)
                keep = scores > self.threshold
                boxes = torch.cat([centre - half, centre + half], 1)[keep]
                kept = torchvision.ops.batched_nms(boxes, scores[keep], labels[keep], 0.45)[:300]
                found.append([t.cpu() for t in (boxes[kept], scores[keep][kept])])
        return found


def usual_rows(path: Path, head: str, size: int, batch: int, photo: Path) -> dict[str, Any]:
    """Frames a second of trtpatch and of the usual way, from 1080p frames in host memory."""
    from trtpatch.loaded import Loaded

    photos = frames_of(photo, batch)
    rows: dict[str, Any] = {}
    with trtpatch.load(path) as pipeline:
        threshold = next(s.value for _, s in pipeline.plan.settings if s.name == "score_threshold")
        if head == "yolov8":
            threshold = threshold_for(pipeline, photos, candidates=250)
            pipeline.set(score_threshold=threshold)

        def patched() -> Any:
            return [found.boxes for found in pipeline(photos)]

        rows["trtpatch"] = measure.wall_time(patched, repeats=30)
        rows["candidates"] = pipeline(photos)[0].counters.candidates

        def streamed() -> None:
            for _ in pipeline.stream(photos * 8, depth=3):
                pass

        times = measure.wall_time(streamed, repeats=5)
        rows["trtpatch, streamed, frames/s"] = round(8 * batch / times["median_us"] * 1e6, 1)
    usual = UsualWay(Loaded(path).binding.engine, head, size, float(threshold))
    rows["usual way"] = measure.wall_time(lambda: usual(photos), repeats=30)
    for name in ("trtpatch", "usual way"):
        rows[f"{name}, frames/s"] = round(batch / rows[name]["median_us"] * 1e6, 1)
    rows["ratio"] = round(rows["usual way"]["median_us"] / rows["trtpatch"]["median_us"], 2)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--photo", type=Path, required=True)
    parser.add_argument("--batched", type=Path)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}

    def add(name: str, make: Callable[[], Any]) -> None:
        results[name] = make()
        print(name, results[name], flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        nano = write(folder, "nano", f"engine: {{path: {arguments.model.resolve()}, kind: trt}}\n")
        add("yolox-nano, batch 1", lambda: graph_rows(nano, arguments.photo))
        add("yolox-nano, overlap", lambda: overlap_rows(nano, arguments.photo))
        add(
            "yolox-nano against the usual way, batch 1",
            lambda: usual_rows(nano, "yolox", 416, 1, arguments.photo),
        )
        for batch in (1, 8, 32) if arguments.batched else ():
            path = write(
                folder,
                f"batch{batch}",
                f"engine: {{path: {arguments.batched.resolve()}, kind: trt,"
                f" input_shape: [{batch}, 3, 640, 640]}}\n",
            )
            add(
                f"yolov8s against the usual way, batch {batch}",
                lambda p=path, b=batch: usual_rows(p, "yolov8", 640, b, arguments.photo),
            )
    print(measure.save("pipeline", results, arguments.out))


if __name__ == "__main__":
    main()
