"""A pipeline with a patch of its own, to edit while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tiny_model import picture, save_tiny
from trtpatch.pipeline import Pipeline

PICTURE = picture(100, 150)

_FILES = {
    "registry.yaml": """\
patches: [mine]
rules:
  - name: mine
    inputs: {image: [N, 3, H, W]}
    outputs: {head: [N, 4 + C, A]}
    chain: [resize_letterbox, engine, decode_tiny, select_nms]
    params:
      resize_letterbox: {scale: 0.00392156862745098}
      select_nms: {max_detections: 300}
""",
    "labels.txt": "red\ngreen\nblue\n",
    "mine/decode_tiny/patch.yaml": """\
summary: Head of the tiny model to candidates
kind: decode
inputs:
  head: {dtype: float32, shape: [N, 4 + C, A]}
outputs:
  candidates: port
params:
  score_threshold: {type: float, default: 0.25, runtime: true, help: keep scores above this}
launch:
  - {entry: decode_tiny, over: [N, A], block: 128}
""",
    "mine/decode_tiny/kernel.cu": """\
#include "gain.cuh"

extern "C" __global__ void decode_tiny(const Args args)
{
    const int anchor = blockIdx.x * blockDim.x + threadIdx.x, image = blockIdx.y;
    if (anchor >= args.A) return;
    const float* head = args.head + 1ll * image * (4 + args.C) * args.A + anchor;
    int label = 0;
    for (int c = 1; c < args.C; ++c) {
        if (head[(4 + c) * args.A] > head[(4 + label) * args.A]) label = c;
    }
    const float score = GAIN * head[(4 + label) * args.A];
    if (!(score > *args.score_threshold)) return;
    const float x = head[0], y = head[args.A];
    const float w = 0.5f * head[2 * args.A], h = 0.5f * head[3 * args.A];
    const int slot = atomicAdd(args.candidates_count + image, 1) + image * args.A;
    args.candidates_boxes[4 * slot + 0] = x - w;
    args.candidates_boxes[4 * slot + 1] = y - h;
    args.candidates_boxes[4 * slot + 2] = x + w;
    args.candidates_boxes[4 * slot + 3] = y + h;
    args.candidates_scores[slot] = score;
    args.candidates_classes[slot] = label;
    args.candidates_anchors[slot] = anchor;
}
""",
    "mine/decode_tiny/gain.cuh": "constexpr float GAIN = 1.0f;\n",
    "mine/decode_tiny/reference.py": """\
import numpy as np

from trtpatch.candidates import append


def decode_tiny(args):
    for n in range(args.N):
        centre, half = args.head[n, :2], args.head[n, 2:4] * np.float32(0.5)
        boxes = np.concatenate([centre - half, centre + half]).T
        best, classes = args.head[n, 4:].max(0), args.head[n, 4:].argmax(0)
        append(args, n, boxes=boxes, scores=1. * best, classes=classes)
""",
}


class Project:
    """A folder with a pipeline file and all that it names.

    Attributes:
        pipeline: the pipeline file, and `registry` and `labels` what it names.
        contract, kernel, reference: files of the patch; the kernel includes `header`.
    """

    def __init__(self, folder: Path, *, engine: str = "kind: ort", more: str = "") -> None:
        save_tiny(folder / "tiny.onnx", batch=1, size=(128, 128))
        for name, text in _FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        mine = folder / "mine" / "decode_tiny"
        self.registry, self.labels = folder / "registry.yaml", folder / "labels.txt"
        self.contract, self.reference = mine / "patch.yaml", mine / "reference.py"
        self.kernel, self.header = mine / "kernel.cu", mine / "gain.cuh"
        self.pipeline = folder / "pipeline.yaml"
        self.pipeline.write_text(
            f"engine: {{path: tiny.onnx, {engine}}}\nrule: mine\nregistry: [registry.yaml]\n"
            f"labels: labels.txt\n{more}"
        )


def edit(file: Path, old: str, new: str) -> None:
    """Replace a text that stands in a file once."""
    text = file.read_text("utf-8")
    assert text.count(old) == 1, (file, text.count(old), old)
    file.write_text(text.replace(old, new), encoding="utf-8")


def best(pipeline: Pipeline, picture: Any = PICTURE) -> float:
    """The score of what comes first."""
    return float(pipeline(picture)[0].scores[0])


def mistake_leaves_the_old_one_running(
    project: Project,
    pipeline: Pipeline,
    *,
    file: str,
    old: str,
    new: str,
    error: type[Exception],
    said: str,
) -> None:
    """A reload of an edited file is refused, frames go on, and the next edit takes effect."""
    first = best(pipeline)
    edit(getattr(project, file), old, new)
    with pytest.raises(error) as caught:
        pipeline.reload()
    assert said in str(caught.value)
    assert best(pipeline) == first
    edit(getattr(project, file), new, old)
    edit(project.header, "1.0f", "0.5f")
    pipeline.reload()
    assert best(pipeline) == first / 2
