"""Does memory grow over many frames, and over many pipelines?

    python benchmarks/life.py --model yolox_nano_416.onnx [--small tiny.onnx] [--out folder]

`--small` is a model that is loaded quickly, for the many pipelines; `--model` where not given.
"""

from __future__ import annotations

import argparse
import gc
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import measure
import numpy as np

import trtpatch


def used() -> dict[str, float]:
    """MiB taken on the GPU and on the host."""
    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()
    free, total = cupy.cuda.Device().mem_info
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return {
        "gpu_mib": round((total - free) / 2**20, 1),
        "host_mib": round(pages * resource.getpagesize() / 2**20, 1),
    }


def pipeline_file(folder: str, model: Path) -> Path:
    path = Path(folder) / f"{model.stem}.yaml"
    path.write_text(f"engine: {{path: {model.resolve()}, kind: trt}}\n", encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--small", type=Path)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--loads", type=int, default=1000)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    draw = np.random.default_rng(0)
    pictures = [draw.integers(0, 255, (120 + 8 * i, 160, 3), np.uint8) for i in range(8)]
    with tempfile.TemporaryDirectory() as scratch:
        path = pipeline_file(scratch, arguments.model)
        with trtpatch.load(path) as pipeline:
            for _ in pipeline.stream(pictures * 100):
                pass
            before, start = used(), time.perf_counter()
            frames = (pictures[i % 8] for i in range(arguments.frames))
            objects = sum(len(found) for found in pipeline.stream(frames))
            results[f"{arguments.frames} frames"] = {
                "before": before,
                "after": used(),
                "seconds": round(time.perf_counter() - start, 1),
                "objects": objects,
            }
            print(results, flush=True)
            measure.save("life", results, arguments.out)  # the rest takes longer
        path = pipeline_file(scratch, arguments.small or arguments.model)
        for _ in range(5):
            trtpatch.load(path).close()
        before, start = used(), time.perf_counter()
        for _ in range(arguments.loads):
            with trtpatch.load(path) as pipeline:
                pipeline(pictures[0])[0]
        results[f"{arguments.loads} pipelines loaded, run and closed"] = {
            "before": before,
            "after": used(),
            "seconds": round(time.perf_counter() - start, 1),
        }
    print(results)
    print(measure.save("life", results, arguments.out))


if __name__ == "__main__":
    main()
