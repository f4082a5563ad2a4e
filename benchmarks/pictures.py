"""The rows of kernels.py whose kernels read or write pictures."""

from __future__ import annotations

from typing import Any

import measure
import numpy as np
import scenes
from measure import torch_stream
from scenes import step_times, walk_time

Row = dict[str, Any]


def letterbox(batch: int, bandwidth: float) -> Row:
    """1080p uint8 to 640 float16 NCHW, against torch and OpenCV."""
    import cupy
    import cv2
    import torch

    rows: Row = {}
    made = scenes.letterboxes(4, batch)
    pictures_on_gpu = made[0][1]
    executors = [one for one, _ in made]
    ours, steps = walk_time(executors), step_times(executors)
    # Of three rows the middle one has all the weight; the others are not read.
    bytes_moved = batch * (360 * 1920 * 3 + 3 * 640 * 640 * 2)
    rows["trtpatch"] = {
        **ours,
        "steps": steps,
        **measure.floor(bytes_moved, bandwidth, ours, steps["resize_letterbox"]),
    }
    pictures = [torch.as_tensor(frame, device="cuda") for frame in pictures_on_gpu]

    def usual() -> Any:
        image = torch.stack(pictures).permute(0, 3, 1, 2).float()
        small = torch.nn.functional.interpolate(
            image, (360, 640), mode="bilinear", align_corners=False
        )
        padded = torch.nn.functional.pad(small, (0, 0, 140, 140), value=114)
        return (padded / 255).half()

    with cupy.cuda.Stream(non_blocking=True), torch_stream(), torch.no_grad():
        rows["torch interpolate"] = measure.gpu_time(usual, inner=5)
    host = [frame.get() for frame in pictures_on_gpu]

    def opencv() -> Any:
        out = np.full((batch, 640, 640, 3), 114, np.uint8)
        for n, frame in enumerate(host):
            out[n, 140:500] = cv2.resize(frame, (640, 360))
        return (out.transpose(0, 3, 1, 2) / np.float32(255)).astype(np.float16)

    rows["OpenCV on the CPU"] = measure.wall_time(opencv, repeats=10)
    return rows


def masks() -> Row:
    """50 masks of YOLO-seg in a 720 x 1280 frame, against the usual torch path."""
    import cupy
    import torch

    draw = np.random.default_rng(0)
    count, height, width = 50, 720, 1280
    corner = draw.uniform(0, [width - 320, height - 240], (count, 2))
    boxes = np.concatenate([corner, corner + draw.uniform(60, [320, 240], (count, 2))], 1)
    port = {
        "detections_boxes": np.zeros((1, 300, 4), np.float32),
        "detections_scores": np.ones((1, 300), np.float32),
        "detections_classes": np.zeros((1, 300), np.int32),
        "detections_anchors": np.tile(np.arange(300, dtype=np.int32), (1, 1)),
        "detections_count": np.int32([count]),
        "detections_counters": np.zeros((1, 5), np.int32),
        "geometry": np.float32([[2, 2, 0, 140, width, height]]),
        "columns": draw.normal(0, 1, (1, 300, 32)).astype(np.float32),
        "protos": draw.normal(0, 1, (1, 32, 160, 160)).astype(np.float32),
    }
    port["detections_boxes"][0, :count] = boxes
    rows: Row = {}
    for name, whole in (("inside the boxes", False), ("as large as the frame", True)):
        one = scenes.executor(
            ["mask_yolo"], dict(port), params={"mask_yolo": {"whole": whole}}, batch=1
        )
        rows[f"trtpatch, bits {name}"] = walk_time([one])
        one.close()
    on_gpu = {name: torch.from_numpy(array).cuda() for name, array in port.items()}

    def usual() -> Any:
        coefficients, protos = on_gpu["columns"][0, :count], on_gpu["protos"][0]
        small = (coefficients @ protos.reshape(32, -1)).reshape(count, 160, 160)[:, 35:125]
        full = torch.nn.functional.interpolate(
            small[None], (height, width), mode="bilinear", align_corners=False
        )[0]
        x1, y1, x2, y2 = on_gpu["detections_boxes"][0, :count, :, None].unbind(1)
        x = torch.arange(width, device="cuda")[None, None]
        y = torch.arange(height, device="cuda")[None, :, None]
        across = (x >= x1[..., None]) & (x < x2[..., None])
        inside = across & (y >= y1[..., None]) & (y < y2[..., None])
        return (full * inside) > 0

    with cupy.cuda.Stream(non_blocking=True), torch_stream(), torch.no_grad():
        rows["torch"] = measure.gpu_time(usual, inner=5)
    slowest = max(v["median_us"] for k, v in rows.items() if k != "torch")
    rows["ratio"] = round(rows["torch"]["median_us"] / slowest, 1)
    return rows
