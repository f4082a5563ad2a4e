"""Each kernel against a named peer and against the floor that memory sets.

    python benchmarks/kernels.py [--out folder]

Every time is the GPU's, from events around many runs on one stream; ours are replayed as CUDA
Graphs, clearing included; peers run as their users run them.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import numpy as np
import scenes
from measure import torch_stream
from pictures import letterbox, masks
from scenes import step_times, walk_time

Row = dict[str, Any]


def decode_floor(bandwidth: float) -> Row:
    """YOLOv8's heads, batch 32, against the bytes that are wanted and those that memory gives."""
    import cupy

    rows: Row = {}
    for name, make, values, threshold in (
        ("decode_yolov8_raw", scenes.yolov8_levels, 64, math.log(0.25 / 0.75)),
        ("decode_yolov8", scenes.yolov8_head, 4, 0.25),
    ):
        for place in ("in blobs", "scattered"):
            heads = [make(32, 250, seed=n, scattered=place == "scattered") for n in range(3)]
            made = [scenes.executor([name], {"head": head}, batch=32) for head in heads]
            made[0].walk()
            count = int(made[0].read(f"{name}.candidates_count").sum())
            scores, written = 32 * 8400 * 80 * 4, count * 28
            levels = heads[0] if isinstance(heads[0], list) else heads[:1]
            boxes = sum(scenes.bytes_of_boxes(one, values, threshold) for one in levels)
            times, steps = walk_time(made), step_times(made)
            wanted, fetched = (scores + written + size for size in (count * values * 4, boxes))
            rows[f"{name}, candidates {place}"] = {
                **times,
                "steps": steps,
                "candidates": count,
                **measure.floor(wanted, bandwidth, times, steps[name]),
                "as fetched": measure.floor(fetched, bandwidth, times, steps[name]),
            }
            for one in made:
                one.close()
            cupy.get_default_memory_pool().free_all_blocks()
    return rows


def decode_and_nms(batch: int) -> Row:
    """250 candidates of 8400 anchors, against torch and torchvision's batched NMS."""
    import torch
    import torchvision

    head = scenes.yolov8_head(batch, 250)
    geometry = np.tile(np.float32([3, 3, 0, 0, 1920, 1920]), (batch, 1))
    rows: Row = {}
    for name, data in (
        ("decode_yolov8", head),
        ("decode_yolov8_raw", scenes.yolov8_levels(batch, 250)),
    ):
        one = scenes.executor(
            [name, "select_nms"], {"head": data, "geometry": geometry}, batch=batch
        )
        rows[f"trtpatch, {name} + select_nms"] = walk_time([one])
        rows[f"steps, {name}"] = step_times([one])
        rows[f"candidates, {name}"] = int(one.read(f"{name}.candidates_count")[0])
        one.close()
    raw = torch.from_numpy(head).cuda()

    def usual() -> list[Any]:
        found = []
        for n in range(batch):
            one = raw[n].T
            centre, half = one[:, :2], one[:, 2:4] / 2
            scores, labels = one[:, 4:].max(1)
            keep = scores > 0.25
            xyxy = torch.cat([centre - half, centre + half], 1)[keep]
            kept = torchvision.ops.batched_nms(xyxy, scores[keep], labels[keep], 0.45)[:300]
            found.append((xyxy[kept], scores[keep][kept], labels[keep][kept]))
        return found

    import cupy

    with cupy.cuda.Stream(non_blocking=True), torch_stream(), torch.no_grad():
        rows["torch + torchvision batched_nms"] = measure.gpu_time(
            usual, inner=5 if batch == 1 else 1, repeats=20
        )
    rows["ratio"] = round(
        rows["torch + torchvision batched_nms"]["median_us"]
        / rows["trtpatch, decode_yolov8 + select_nms"]["median_us"],
        1,
    )
    return rows


def tensorrt_nms() -> Row:
    """TensorRT's own NMS kernels alone, decode not included, in a graph where it lets itself."""
    import cupy
    import onnx
    from onnx import TensorProto, helper

    from trtpatch.engines import open_engine
    from trtpatch.errors import EngineError

    rows: Row = {}
    head = scenes.yolov8_head(1, 250)[0]
    centre, half = head[:2].T, head[2:4].T / 2
    data = {
        "boxes": np.concatenate([centre - half, centre + half], 1)[None].astype(np.float32),
        "scores": head[None, 4:],
    }
    graph = helper.make_graph(
        [helper.make_node("NonMaxSuppression", ["boxes", "scores", "m", "i", "s"], ["kept"])],
        "nms",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in data.items()],
        [helper.make_tensor_value_info("kept", TensorProto.INT64, [None, 3])],
        [
            helper.make_tensor("m", TensorProto.INT64, [1], [300]),
            helper.make_tensor("i", TensorProto.FLOAT, [1], [0.45]),
            helper.make_tensor("s", TensorProto.FLOAT, [1], [0.25]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nms.onnx"
        onnx.save(model, path)
        try:
            opened = open_engine(path, gpu=True, kind="trt", cache_dir=Path(folder))
        except EngineError as error:
            return {"cannot be built": str(error).splitlines()[-1].strip()}
        engine = opened.at({name: array.shape for name, array in data.items()})
        arrays = {name: cupy.asarray(array) for name, array in data.items()}
        arrays |= {t.name: cupy.zeros(t.shape, t.dtype) for t in engine.info.outputs}
        addresses = {name: array.data.ptr for name, array in arrays.items()}
        with cupy.cuda.Stream(non_blocking=True) as stream:

            def run() -> None:
                engine.enqueue(addresses, stream.ptr)

            run()
            stream.synchronize()
            rows["plain"] = measure.gpu_time(run)
            try:
                rows["in a graph"] = measure.gpu_time(measure.captured(run))
            except Exception as error:
                rows["in a graph"] = f"cannot be captured: {error}"
        opened.close()
    return rows


def nms_alone(batch: int) -> Row:
    """Suppression of one class against torchvision's, at several numbers of candidates."""
    import cupy
    import torch
    import torchvision

    rows: Row = {}
    for count in (250, 1000, 4000, 8400):
        port = scenes.candidates(batch, count, 8400)
        one = scenes.executor(["select_nms"], dict(port), batch=batch)
        ours = walk_time([one])
        steps = step_times([one])
        kept = int(one.read("select_nms.detections_counters")[0, 1])
        one.close()
        xyxy = torch.from_numpy(port["candidates_boxes"][:, :count].copy()).cuda()
        scores = torch.from_numpy(port["candidates_scores"][:, :count].copy()).cuda()
        images = torch.arange(batch, device="cuda").repeat_interleave(count)

        def looped(xyxy: Any = xyxy, scores: Any = scores) -> None:
            for n in range(batch):
                torchvision.ops.nms(xyxy[n], scores[n], 0.45)

        def together(xyxy: Any = xyxy, scores: Any = scores, images: Any = images) -> None:
            torchvision.ops.batched_nms(xyxy.view(-1, 4), scores.view(-1), images, 0.45)

        with cupy.cuda.Stream(non_blocking=True), torch_stream():
            theirs = measure.gpu_time(looped, inner=2, repeats=15)
            at_once = measure.gpu_time(together, inner=2, repeats=15) if batch > 1 else theirs
        best = min(theirs["median_us"], at_once["median_us"])
        rows[f"{count} candidates"] = {
            "trtpatch": ours,
            "steps": steps,
            "torchvision nms, looped": theirs,
            "torchvision batched_nms, all images": at_once,
            "kept": kept,
            "ratio": round(best / ours["median_us"], 2),
        }
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--only", default="", help="part of a row's name")
    arguments = parser.parse_args()
    copy = measure.copy_bandwidth()
    bandwidth = copy["gb_per_s"]
    results: dict[str, Any] = {"device copy": copy}
    print("device copy", copy, flush=True)

    def add(name: str, make: Callable[[], Row]) -> None:
        if arguments.only in name:
            results[name] = make()
            print(name, results[name], flush=True)

    add("decode, raw heads, batch 32", lambda: decode_floor(bandwidth))
    for batch in (1, 32):
        add(f"decode + nms, batch {batch}", lambda b=batch: decode_and_nms(b))
    add("TensorRT's NMS, batch 1", tensorrt_nms)
    for batch in (1, 32):
        add(f"nms alone, batch {batch}", lambda b=batch: nms_alone(b))
    for batch in (1, 16):
        add(f"letterbox, batch {batch}", lambda b=batch: letterbox(b, bandwidth))
    add("masks, 50 to 720 x 1280", masks)
    print(measure.save("kernels", results, arguments.out))


if __name__ == "__main__":
    main()
