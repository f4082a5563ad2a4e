"""How long a pipeline's kernels take to be there: cold, warm, from a bundle, and after an edit.

    python benchmarks/start.py [--model yolox_nano_416.onnx] [--out folder]

Without a GPU there are fewer rows, and executor `host` is the one that reloads. Every start is a
process of its own. `--model` is what the reloaded pipeline runs on a GPU; without it, and without a
GPU, played-back outputs of the same shape stand in, since kernels do not depend on the engine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import copy, copytree
from typing import Any

import measure
import numpy as np

import trtpatch
from trtpatch import builtin
from trtpatch.compiler import nvrtc
from trtpatch.executors import gpu_found
from trtpatch.loaded import Loaded

PATCH = "decode_yolox"
REPEATS = 10


def write_pipeline(folder: Path, engine: str) -> Path:
    """A pipeline file with a registry and a copy of a built-in patch, to be edited."""
    copytree(builtin.patches_folder() / PATCH, folder / "mine" / PATCH)
    for header in builtin.patches_folder().glob("*.cuh"):
        copy(header, folder / "mine")
    (folder / "registry.yaml").write_text("patches: [mine]\n")
    path = folder / "pipeline.yaml"
    path.write_text(f"engine: {{path: {engine}}}\nregistry: [registry.yaml]\n")
    return path


def write_recording(path: Path, frames: int) -> None:
    """Outputs as YOLOX-nano gives them at 416 px, all zero."""
    from trtpatch.engines import EngineInfo, Tensor
    from trtpatch.engines.recorded import RecordedFrame, save_recording

    info = EngineInfo(
        kind="ort",
        path="yolox_nano.onnx",
        flavour="onnxruntime",
        version="none",
        inputs=(Tensor("images", "float32", (1, 3, 416, 416)),),
        outputs=(Tensor("output", "float32", (1, 3549, 85)),),
    )
    zeros = {"output": np.zeros((1, 3549, 85), np.float32)}
    save_recording(path, info=info, frames=[RecordedFrame(zeros, np.int32([[416, 416]]))] * frames)


def load_kernels(pipeline: Path, bundle: Path | None) -> dict[str, float]:
    """In a process of its own: time from a plan to kernels that can be launched."""
    from trtpatch.compiler.bundle import Bundle
    from trtpatch.compiler.compile import Compile, cubin_for
    from trtpatch.compiler.cubins import Cubins
    from trtpatch.unit import make_unit

    plan = Loaded(pipeline, executor="cpu").plan
    calls = count_nvrtc_calls()
    on_gpu = gpu_found()
    if on_gpu:
        import cupy

        from trtpatch.executors.kernels import Kernels

        device = cupy.cuda.Device()
        cupy.zeros(1)  # makes the context
        arch = f"sm_{device.compute_capability}"
    else:
        arch = "sm_90"
    start = time.perf_counter()
    source: Compile = (
        Bundle.read(bundle).cubin_for if bundle else partial(cubin_for, cubins=Cubins())
    )
    for step in plan.patch_steps:
        if on_gpu:
            Kernels(device, source).load(step)(lambda _: 0)
        else:
            source(make_unit(step), arch=arch)
    spent = time.perf_counter() - start
    return {"us": spent * 1e6, "calls": len(calls), "kernels": sum(1 for _ in plan.patch_steps)}


def count_nvrtc_calls() -> list[str]:
    """A list that grows by one with each compilation."""
    calls: list[str] = []
    compile_text = nvrtc.Nvrtc.compile

    def counted(self: nvrtc.Nvrtc, text: str, **more: Any) -> Any:
        calls.append(text)
        return compile_text(self, text, **more)

    nvrtc.Nvrtc.compile = counted  # type: ignore[method-assign, assignment]
    return calls


def start(pipeline: Path, cache: Path, *more: str) -> dict[str, float]:
    """One start, in a new process."""
    command = [sys.executable, __file__, "--child", str(pipeline), *more]
    environment = {**os.environ, "TRTPATCH_CACHE": str(cache)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def kernel_rows(pipeline: Path, scratch: Path) -> dict[str, Any]:
    """All kernels of a pipeline, cold and warm and from a bundle."""
    cold = [start(pipeline, scratch / f"cache{i}") for i in range(REPEATS // 2)]
    warm = [start(pipeline, scratch / "cache0") for _ in range(REPEATS)]
    from trtpatch.engines.device import find_gpu

    arch = find_gpu().arch if gpu_found() else "sm_90"
    bundle = scratch / "bundle"
    command = [sys.executable, "-m", "trtpatch", "compile", str(pipeline)]
    subprocess.run([*command, "--arch", arch, "-o", str(bundle)], check=True, capture_output=True)
    bundled = [start(pipeline, scratch / "none", "--bundle", str(bundle)) for _ in range(REPEATS)]
    rows: dict[str, Any] = {
        "cold: the cache empty, NVRTC not loaded": measure.summary([one["us"] for one in cold]),
        "warm: from the cache": measure.summary([one["us"] for one in warm]),
        "from a bundle": measure.summary([one["us"] for one in bundled]),
    }
    medians = [row["median_us"] for row in rows.values()]
    rows["cold to warm"] = round(medians[0] / medians[1], 1)
    rows["cold to bundle"] = round(medians[0] / medians[2], 1)
    rows["patches"] = cold[0]["kernels"]
    for name, runs in (("cold", cold), ("warm", warm), ("from a bundle", bundled)):
        rows[f"calls of NVRTC, {name}"] = max(one["calls"] for one in runs)
    return rows


def run_rows(pipeline: Path, photo: Path, scratch: Path) -> dict[str, Any]:
    """`trtpatch run` twice on an empty cache: what each start compiled, as it says itself."""
    command = [sys.executable, "-m", "trtpatch", "-v", "run", str(pipeline), str(photo)]
    environment = {**os.environ, "TRTPATCH_CACHE": str(scratch / "run")}
    rows: dict[str, Any] = {}
    for name in ("first", "second"):
        begun = time.perf_counter()
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(done.stderr)
        rows[f"{name} start, ms"] = round((time.perf_counter() - begun) * 1e3)
        said = done.stderr.splitlines()
        rows[f"{name} start, kernels compiled"] = sum(" compiled " in f" {line}" for line in said)
    return rows


def reload_rows(pipeline: Path, executor: str) -> dict[str, Any]:
    """`pipeline.reload()` after an edit of one kernel, and after none."""
    kernel = pipeline.parent / "mine" / PATCH / "kernel.cu"
    frame = np.zeros((416, 416, 3), np.uint8)
    edited, unchanged = [], []
    with trtpatch.load(pipeline, executor=executor) as runner:
        for number in range(REPEATS):
            kernel.write_text(f"{kernel.read_text('utf-8')}// edit {number}\n", encoding="utf-8")
            for times in (edited, unchanged):
                begun = time.perf_counter()
                runner.reload()
                times.append((time.perf_counter() - begun) * 1e6)
                len(runner(frame)[0])
        engine = runner._loaded.engine.info
    return {
        "one kernel edited": measure.summary(edited),
        "nothing edited": measure.summary(unchanged),
        "engine": f"{engine.flavour} {engine.version}",
    }


def command_rows(scratch: Path) -> dict[str, Any]:
    """`trtpatch --help` against Python itself, with the script and the bytecode that pip leaves."""
    script = scratch / "trtpatch"
    script.write_text("import sys\nfrom trtpatch.cli import main\nsys.exit(main())\n")
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(scratch / "bytecode")}
    package = str(Path(trtpatch.__file__).parents[1])
    environment["PYTHONPATH"] = os.pathsep.join([package, os.environ.get("PYTHONPATH", package)])
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    run = partial(subprocess.run, check=True, capture_output=True, env=environment)
    commands = {
        "python -c pass": ["-c", "pass"],
        "import click": ["-c", "import click"],
        "trtpatch --help": [script, "--help"],
    }
    return {
        name: measure.wall_time(partial(run, [sys.executable, *words]), repeats=2 * REPEATS)
        for name, words in commands.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--out")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--bundle", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(load_kernels(arguments.child, arguments.bundle)))
        return
    results: dict[str, Any] = {}

    def add(name: str, make: Callable[[], Any]) -> None:
        results[name] = make()
        print(name, results[name], flush=True)

    executor = "gpu" if gpu_found() else "host"
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        os.environ["TRTPATCH_CACHE"] = str(scratch / "cache")
        for folder in ("recorded", "real"):
            (scratch / folder).mkdir()
        write_recording(scratch / "recorded" / "yolox_nano.npz", 3 * REPEATS)
        recorded = write_pipeline(scratch / "recorded", "yolox_nano.npz")
        add("kernels of a YOLOX pipeline", lambda: kernel_rows(recorded, scratch))
        if executor == "gpu":
            from PIL import Image

            photo = scratch / "photo.png"
            Image.fromarray(np.zeros((416, 416, 3), np.uint8)).save(photo)
            add("trtpatch run", lambda: run_rows(recorded, photo, scratch))
        real = recorded
        if executor == "gpu" and arguments.model:
            real = write_pipeline(scratch / "real", str(arguments.model.resolve()))
        add(f"reload, executor {executor}", lambda: reload_rows(real, executor))
        add("command line", lambda: command_rows(scratch))
    print(measure.save("start", results, arguments.out))


if __name__ == "__main__":
    main()
