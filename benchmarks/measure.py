"""Medians of GPU and host times, and the record of the machine that they were taken on."""

from __future__ import annotations

import datetime
import gc
import importlib.metadata
import json
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def summary(times_us: list[float]) -> dict[str, float]:
    """Median and spread of times in microseconds."""
    ordered = sorted(times_us)
    return {
        "median_us": round(statistics.median(ordered), 3),
        "p10_us": round(ordered[len(ordered) // 10], 3),
        "p90_us": round(ordered[len(ordered) * 9 // 10], 3),
        "runs": len(ordered),
    }


def gpu_time(run: Callable[[], Any], *, inner: int = 20, repeats: int = 30) -> dict[str, float]:
    """GPU time of one `run` on CuPy's current stream, from events around `inner` of them."""
    return gpu_times({"": run}, inner=inner, repeats=repeats)[""]


def gpu_times(
    runs: Mapping[str, Callable[[], Any]], *, inner: int = 20, repeats: int = 30
) -> dict[str, dict[str, float]]:
    """As `gpu_time` of several, which take turns: A B, then B A, and so on."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    for run in runs.values():
        for _ in range(3):
            run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs.items())
    for _ in range(repeats):
        for name, run in order:
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record(stream)
            for _ in range(inner):
                run()
            end.record(stream)
            end.synchronize()
            times[name].append(cupy.cuda.get_elapsed_time(start, end) * 1e3 / inner)
        order.reverse()
    return {name: summary(taken) for name, taken in times.items()}


def warm_up(run: Callable[[], Any], seconds: float = 0.7) -> None:
    """Run for a while: a processor that was idle takes part of a second to reach its speed."""
    end = time.perf_counter() + seconds
    run()
    while time.perf_counter() < end:
        run()


def wall_time(run: Callable[[], Any], *, inner: int = 1, repeats: int = 50) -> dict[str, float]:
    """Wall-clock time of one `run`, which waits for its own end, on a processor that is warm."""
    warm_up(run)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(inner):
            run()
        times.append((time.perf_counter() - start) * 1e6 / inner)
    return summary(times)


def captured(run: Callable[[], Any]) -> Callable[[], None]:
    """`run` as a CUDA Graph on CuPy's current stream."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    run()
    stream.synchronize()
    gc.disable()  # what it frees on the GPU would break the capture
    try:
        stream.begin_capture(cupy.cuda.runtime.streamCaptureModeThreadLocal)
        run()
        graph = stream.end_capture()
    finally:
        gc.enable()
    return lambda: graph.launch(stream)


def machine() -> dict[str, Any]:
    """GPU and driver where there are any, versions and date."""
    packages = ("cupy-cuda13x", "cupy-cuda12x", "numpy", "torch", "torchvision")
    packages += ("opencv-python-headless", "onnxruntime", "tensorrt", "tensorrt_rtx_cu13_bindings")
    packages += ("onnx", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        **_gpu(),
        "python": platform.python_version(),
        "cpu": platform.processor() or platform.machine(),
        "versions": versions,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def _gpu() -> dict[str, Any]:
    from trtpatch.executors import gpu_found

    if not gpu_found():
        return {}
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "gpu": properties["name"].decode(),
        "driver_cuda": cupy.cuda.runtime.driverGetVersion(),
        "runtime_cuda": cupy.cuda.runtime.runtimeGetVersion(),
    }


def copy_bandwidth() -> dict[str, float]:
    """Measured device-to-device copy, bytes read plus bytes written, in GB/s."""
    import cupy

    size = 1 << 30
    source, target = cupy.zeros(size, cupy.uint8), cupy.zeros(size, cupy.uint8)
    stream = cupy.cuda.get_current_stream()
    times = gpu_time(
        lambda: target.data.copy_from_device_async(source.data, size, stream), inner=5, repeats=10
    )
    return {**times, "gb_per_s": round(2 * size / times["median_us"] / 1e3, 1)}


def torch_stream() -> Any:
    """Torch on CuPy's current stream."""
    import cupy
    import torch

    return torch.cuda.stream(torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr))


def floor(
    moved: int, bandwidth: float, walk: Mapping[str, float], kernel_us: float
) -> dict[str, float]:
    """What so many bytes cost at the copy's bandwidth in GB/s, and how near to it one comes.

    Args:
        walk: time of a walk, which begins with the kernel that brings the frame table and zeroes.
        kernel_us: what the patch's own kernel adds to that.
    """
    least = moved / bandwidth / 1e3
    return {
        "bytes": moved,
        "floor_us": round(least, 2),
        "share_of_floor": round(least / kernel_us, 3),
        "share_of_floor, whole walk": round(least / walk["median_us"], 3),
    }


def save(name: str, rows: Any, out: str | None = None) -> Path:
    """Write `results/<name>.json`, or into the folder `out`."""
    folder = Path(out) if out else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    content = {"machine": machine(), "results": rows}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path
