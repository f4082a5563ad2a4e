"""Ways for a 1080p frame from pageable memory to the GPU.

    python benchmarks/copies.py [--out folder]

Each way copies the frame to pinned memory, in parts by several threads, and each part from there to
the GPU as soon as it is there; or leaves all of it to the driver. Times are the calling thread's,
from its first step until the frame is on the GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import measure
import numpy as np

from trtpatch.executors.copier import Copier

FRAME_BYTES = 1080 * 1920 * 3
FRAMES = 16
"""As many take turns, so that none is in the processor's cache."""


class Copies:
    """Memory and a stream, shared by all ways."""

    def __init__(self) -> None:
        import ctypes

        import cupy

        self.runtime = cupy.cuda.runtime
        self.stream = cupy.cuda.Stream(non_blocking=True)
        random = np.random.default_rng(0)
        self.frames = [random.integers(0, 256, FRAME_BYTES, np.uint8) for _ in range(FRAMES)]
        self.target = cupy.empty(FRAME_BYTES, np.uint8).data.ptr
        self._memory = self.runtime.hostAlloc(FRAME_BYTES, 0)
        room = (ctypes.c_ubyte * FRAME_BYTES).from_address(self._memory)
        self.pinned = np.frombuffer(room, np.uint8)
        self.turn = 0

    def next(self) -> np.ndarray[Any, Any]:
        self.turn += 1
        return self.frames[self.turn % FRAMES]

    def send(self, source: int, start: int, size: int) -> None:
        kind = self.runtime.memcpyHostToDevice
        self.runtime.memcpyAsync(self.target + start, source + start, size, kind, self.stream.ptr)

    def part(self, frame: np.ndarray[Any, Any], start: int, size: int) -> None:
        np.copyto(self.pinned[start : start + size], frame[start : start + size])
        self.send(self._memory, start, size)


def parts(size: int) -> list[tuple[int, int]]:
    return [(at, min(size, FRAME_BYTES - at)) for at in range(0, FRAME_BYTES, size)]


def by_driver(copies: Copies) -> Callable[[], None]:
    def run() -> None:
        copies.send(copies.next().ctypes.data, 0, FRAME_BYTES)
        copies.stream.synchronize()

    return run


def by_caller(copies: Copies, size: int) -> Callable[[], None]:
    def run() -> None:
        frame = copies.next()
        for part in parts(size):
            copies.part(frame, *part)
        copies.stream.synchronize()

    return run


def by_threads(copies: Copies, size: int, threads: int) -> Callable[[], None]:
    copier = Copier(threads)

    def run() -> None:
        frame = copies.next()
        copier.run([partial(copies.part, frame, *part) for part in parts(size)])
        copies.stream.synchronize()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    arguments = parser.parse_args()
    copies = Copies()
    rows: dict[str, Any] = {}

    def add(name: str, run: Callable[[], None]) -> None:
        rows[name] = measure.wall_time(run, repeats=60)
        gb_per_s = FRAME_BYTES / rows[name]["median_us"] / 1e3
        print(f"{name:40} {rows[name]['median_us']:8.1f} us {gb_per_s:6.1f} GB/s", flush=True)

    def from_pinned() -> None:
        copies.send(copies.pinned.ctypes.data, 0, FRAME_BYTES)
        copies.stream.synchronize()

    add("already pinned", from_pinned)
    add("the driver", by_driver(copies))
    add("the caller, 1024 KiB", by_caller(copies, 1 << 20))
    for threads in (2, 4, 8):
        for kilobytes in (512, 1024, 1536, 2048, 3072):
            name = f"{threads} threads, {kilobytes} KiB"
            add(name, by_threads(copies, kilobytes << 10, threads))
    print(measure.save("copies", rows, arguments.out))


if __name__ == "__main__":
    main()
