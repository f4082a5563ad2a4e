"""A real engine's detections against ONNX Runtime's, with TF32 off and on.

    python benchmarks/accuracy.py --model yolox_nano_416.onnx --photos folder [--out folder]

TF32 is what TensorRT-RTX 1.4 multiplies in whatever the builder is told; NVIDIA_TF32_OVERRIDE=0
turns it off, and is read when the library loads, so that each way has a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import measure
import numpy as np

import trtpatch

PIPELINE = """\
engine: {{path: {model}, kind: {kind}}}
params: {{decode_yolox: {{score_threshold: 0.3}}}}
"""


def compare(model: Path, photos: list[Path]) -> dict[str, Any]:
    """Largest differences over all photos, and how many objects there were."""
    found: dict[str, list[trtpatch.Detections]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, executor in (("ort", "cpu"), ("trt", "gpu")):
            path = Path(folder) / f"{kind}.yaml"
            path.write_text(PIPELINE.format(model=model.resolve(), kind=kind), encoding="utf-8")
            with trtpatch.load(path, executor=executor) as pipeline:
                found[kind] = [pipeline(photo)[0] for photo in photos]
    rows = {"photos": len(photos), "objects": sum(map(len, found["ort"])), "other anchors": 0}
    pixels = scores = 0.0
    for expected, given in zip(found["ort"], found["trt"], strict=True):
        _, ours, theirs = np.intersect1d(expected.anchors, given.anchors, return_indices=True)
        rows["other anchors"] += len(expected) + len(given) - 2 * len(ours)
        if len(ours):
            assert (expected.labels[ours] == given.labels[theirs]).all()
            pixels = max(pixels, float(np.abs(expected.boxes[ours] - given.boxes[theirs]).max()))
            scores = max(scores, float(np.abs(expected.scores[ours] - given.scores[theirs]).max()))
    return {**rows, "largest box difference, px": pixels, "largest score difference": scores}


def in_a_process(model: Path, photos: Path, override: str) -> dict[str, Any]:
    """`compare` under another NVIDIA_TF32_OVERRIDE."""
    command = [sys.executable, __file__, "--model", str(model), "--photos", str(photos), "--here"]
    environment = {**os.environ, "NVIDIA_TF32_OVERRIDE": override}
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--here", action="store_true", help="compare in this process and print")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.here:
        photos = sorted(arguments.photos.glob("*.jpg"))
        print(json.dumps(compare(arguments.model, photos)))
        return
    results = {
        f"TF32 {name}": in_a_process(arguments.model, arguments.photos, override)
        for name, override in (("off", "0"), ("on", ""))
    }
    print(json.dumps(results, indent=1))
    print(measure.save("accuracy", results, arguments.out))


if __name__ == "__main__":
    main()
