"""Every built-in patch, and a whole pipeline plain and captured, under compute-sanitizer.

    python benchmarks/sanitizer.py [--cases 3] [--out folder]

Runs memcheck, racecheck, initcheck and synccheck side by side, each in a process of its own, and
keeps their summaries. Needs compute-sanitizer on the PATH.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import measure
import numpy as np

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def run_patches(cases: int) -> None:
    """The first cases of each patch, on the GPU alone."""
    from trtpatch.catalog import Catalog
    from trtpatch.verify import load_cases, plan_case, run_case

    catalog = Catalog()
    for name in catalog.names:
        patch = catalog.patch(name)
        for case in load_cases(patch)[:cases]:
            run_case(plan_case(patch, case), case, "gpu")
            print("ran", name, case.name, flush=True)


def run_pipelines() -> None:
    """The YOLOv8 chain on engine outputs that are played back, plain and as graphs."""
    import scenes

    import trtpatch
    from trtpatch.engines import EngineInfo, Tensor
    from trtpatch.engines.recorded import RecordedFrame, save_recording

    draw = np.random.default_rng(0)
    head = scenes.yolov8_head(2, 250)
    tensors = Tensor("images", "float32", (2, 3, 640, 640)), Tensor("out", "float32", head.shape)
    info = EngineInfo("recorded", "frames", "none", "0", tensors[:1], tensors[1:])
    frame = RecordedFrame({"out": head}, np.int32([[480, 640], [360, 500]]))
    pictures = [draw.integers(0, 255, (h, w, 3), np.uint8) for h, w in ((480, 640), (360, 500))]
    with tempfile.TemporaryDirectory() as folder:
        save_recording(Path(folder) / "frames.npz", info=info, frames=[frame] * 4)
        for mode in ("off", "auto"):
            path = Path(folder) / f"{mode}.yaml"
            path.write_text(f"engine: {{path: frames.npz}}\ngraph: {mode}\n", encoding="utf-8")
            with trtpatch.load(path, executor="gpu") as pipeline:
                for _ in range(4):
                    found = pipeline(pictures)
                    print("ran pipeline", mode, [len(one) for one in found], flush=True)


def under(tool: str, cases: int) -> subprocess.Popen[str]:
    """This script's own runs under a tool."""
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", sys.executable]
    command += [__file__, "--here", "--cases", str(cases)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=3)
    parser.add_argument("--here", action="store_true", help="run in this process")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.here:
        run_pipelines()
        run_patches(arguments.cases)
        return
    results: dict[str, Any] = {}
    for tool, process in [(tool, under(tool, arguments.cases)) for tool in TOOLS]:
        output, _ = process.communicate()
        summary = re.findall(r"=+ (.*SUMMARY.*)", output)
        results[tool] = {
            "summary": summary[-1] if summary else output.splitlines()[-1],
            "cases": len(re.findall(r"^ran ", output, re.MULTILINE)),
            "exit": process.returncode,
        }
        print(tool, results[tool], flush=True)
        if process.returncode:
            print("\n".join(line for line in output.splitlines() if line.startswith("==="))[:4000])
    print(measure.save("sanitizer", results, arguments.out))


if __name__ == "__main__":
    main()
