"""A patch that counts the kept objects of each class, for its output to be a result."""

from __future__ import annotations

from tests.reloads import Project, edit

_FILES = {
    "patch.yaml": """\
summary: Kept objects of each class
kind: count
inputs:
  detections: port
outputs:
  histogram: {dtype: int32, shape: [N, 3], clear: true}
params:
  least: {type: float, default: 0.3, runtime: true, help: count scores above this}
launch:
  - {entry: histogram_classes, over: [N, M], block: 64}
""",
    "kernel.cu": """\
extern "C" __global__ void histogram_classes(const __grid_constant__ Args args)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x, image = blockIdx.y;
    if (row >= args.M || row >= args.detections_count[image]) return;
    const int index = image * args.M + row;
    if (args.detections_scores[index] > *args.least) {
        atomicAdd(args.histogram + image * 3 + args.detections_classes[index], 1);
    }
}
""",
    "reference.py": """\
import numpy as np


def histogram_classes(args):
    for n in range(args.N):
        count = args.detections_count[n]
        kept = args.detections_scores[n, :count] > args.least
        classes = args.detections_classes[n, :count][kept]
        args.histogram[n] = np.bincount(classes, minlength=3)
""",
}


def add_histogram(project: Project) -> None:
    """Put the patch at the end of the project's chain."""
    folder = project.registry.parent / "mine/histogram_classes"
    folder.mkdir()
    for name, text in _FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    edit(project.registry, "select_nms]", "select_nms, histogram_classes]")
