"""Versions of the built-in patches side by side, on one GPU in one run.

    python benchmarks/compare.py patches /tmp/other/patches ... [--only NAME]... [--out folder]

Each argument is a folder of patches with its own common.cuh. The versions take turns, the first one
twice, which shows how much of a difference is noise; a version whose text is the first one's is
left out. Outputs are compared with the first version's, within the contract's tolerances. With
`--compile` nothing runs: every version is compiled for sm_90, which needs no GPU.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import measure
import numpy as np
import scenes

from trtpatch import builtin
from trtpatch.catalog import Patch
from trtpatch.compiler.compile import compile_unit
from trtpatch.unit import Unit, make_unit
from trtpatch.verify import compare

Row = dict[str, Any]
Versions = Mapping[str, Path]
levels, head = functools.cache(scenes.yolov8_levels), functools.cache(scenes.yolov8_head)


@dataclass(frozen=True)
class Scene:
    """A chain of patches on several sets of inputs in turn.

    Attributes:
        inputs: of a set, by its number.
        bytes: that one walk must move; 0 where memory is not what counts.
        size: height and width of the pictures, for a chain that begins with them.
    """

    name: str
    patches: tuple[str, ...]
    batch: int
    inputs: Callable[[int], scenes.Inputs] = lambda _: {}
    sets: int = 1
    bytes: int = 0
    size: tuple[int, int] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def units(self) -> list[Unit]:
        plan = scenes.plan(self.patches, self.inputs(0), batch=self.batch, **self.options)
        return [make_unit(step) for step in plan.patch_steps]

    def executors(self) -> list[tuple[Any, Any]]:
        """One a set, each with what must be kept as long."""
        if self.size:
            return scenes.letterboxes(self.sets, self.batch, size=self.size)
        made = []
        for index in range(self.sets):
            inputs = self.inputs(index)
            one = scenes.executor(self.patches, inputs, batch=self.batch, **self.options)
            made.append((one, inputs))
        return made


def all_scenes() -> Iterator[Scene]:
    """Those of kernels.py in which our own kernels are timed, and pictures that are blended."""
    for batch, sets in ((1, 1), (32, 3)):
        yield from decode_scenes(batch, sets)
        for count in (250, 1000, 4000, 8400):
            port = functools.partial(scenes.candidates, batch, count, 8400)
            name = f"nms, {count} candidates, batch {batch}"
            yield Scene(name, ("select_nms",), batch, lambda seed, port=port: port(seed=seed))
    for batch, height, rows in ((1, 1080, 360), (16, 1080, 360), (16, 720, 720)):
        width = height * 16 // 9
        yield Scene(
            f"letterbox, {height}p, batch {batch}",
            ("resize_letterbox",),
            batch,
            sets=4,
            bytes=batch * (rows * width * 3 + 3 * 640 * 640 * 2),
            size=(height, width),
            options=scenes.letterbox_options(batch),
        )


def decode_scenes(batch: int, sets: int) -> Iterator[Scene]:
    def apart(seed: int) -> scenes.Inputs:
        group = levels(batch, 250, seed=seed)
        return {"boxes": [one[:, :64] for one in group], "classes": [one[:, 64:] for one in group]}

    def geometry(seed: int) -> scenes.Inputs:
        frame = np.tile(np.float32([3, 3, 0, 0, 1920, 1920]), (batch, 1))
        return {"head": levels(batch, 250, seed=seed), "geometry": frame}

    def scattered(seed: int) -> scenes.Inputs:
        return {"head": levels(batch, 250, seed=seed, scattered=True)}

    for name, inputs, values in (
        ("decode_yolov8_raw", lambda seed: {"head": levels(batch, 250, seed=seed)}, 64),
        ("decode_yolov8_raw, scattered", scattered, 64),
        ("decode_yolov8_split", apart, 64),
        ("decode_yolov8", lambda seed: {"head": head(batch, 250, seed=seed)}, 4),
    ):
        patch, *_ = name.split(",")
        moved = batch * 4 * (8400 * 80 + 250 * (values + 7))
        yield Scene(f"{name}, batch {batch}", (patch,), batch, inputs, sets, moved)
    chain = "decode_yolov8_raw", "select_nms"
    yield Scene(f"decode + nms, batch {batch}", chain, batch, geometry)


@contextmanager
def built_in(folder: Path) -> Iterator[None]:
    """A folder of patches in the place of the built-in one."""
    with mock.patch.object(builtin, "patches_folder", return_value=folder):
        yield


def units_of(scene: Scene, versions: Versions) -> dict[str, list[Unit]]:
    """What is compiled for a scene: of the first version, and of those that differ from it."""
    units = {}
    for name, folder in versions.items():
        with built_in(folder):
            units[name] = scene.units()
    first, *others = units
    same = [name for name in others if units[name] == units[first]]
    return {name: one for name, one in units.items() if name not in same}


def measured(scene: Scene, versions: Versions, bandwidth: float) -> dict[str, Row]:
    """Times of a scene by version, and whether the outputs are the first one's."""
    import cupy

    first, folder = next(iter(versions.items()))
    made = {}
    for name, patches in {**versions, f"{first} again": folder}.items():
        with built_in(patches):
            made[name] = scene.executors()
    groups = {name: [one for one, _ in pairs] for name, pairs in made.items()}
    expected = outputs_of(groups[first][0])
    contract = Patch.read(folder / scene.patches[-1])
    rows: dict[str, Row] = {
        name: {"outputs": difference(contract, outputs_of(group[0]), expected)}
        for name, group in groups.items()
    }
    stream = cupy.cuda.Stream(non_blocking=True)
    runs = {name: scenes.in_turn(group, stream) for name, group in groups.items()}
    with stream:
        times = measure.gpu_times(runs, inner=10)
    for name, one in times.items():
        row = {k: round(v / scene.sets, 3) for k, v in one.items() if k != "runs"}
        if scene.bytes:
            row["share_of_floor"] = round(scene.bytes / bandwidth / 1e3 / row["median_us"], 3)
        rows[name]["time"] = row
    for group in groups.values():
        for one in group:
            one.close()
    cupy.get_default_memory_pool().free_all_blocks()
    return rows


def outputs_of(executor: Any) -> dict[str, scenes.Array]:
    """What the last patch of a walk writes, by field."""
    executor.walk()
    *_, step = executor._plan.patch_steps
    names = step.patch.spec.fields(step.patch.spec.outputs)
    return {t.name: executor.read(t.buffers[0]) for t in step.tensors if t.name in names}


def difference(contract: Patch, found: Row, expected: Row) -> str:
    differences = compare(contract, found, expected)
    wrong = [str(one) for one in differences if one.wrong]
    largest = max(one.largest for one in differences)
    return "; ".join(wrong) or (f"within tolerance, by {largest:.2g}" if largest else "same")


def show(name: str, rows: Mapping[str, Row]) -> None:
    print(f"\n{name}")
    first = next(iter(rows.values()))
    for version, row in rows.items():
        time = row["time"]
        spread = f"({time['p10_us']:.2f} to {time['p90_us']:.2f})"
        ratio = time["median_us"] / first["time"]["median_us"]
        share = time.get("share_of_floor", "")
        print(f"  {version:32}{time['median_us']:9.2f} us {spread:22}{ratio:6.3f} {share!s:>6}"
              f"  {row['outputs']}", flush=True)  # fmt: skip


def named(folders: list[Path]) -> dict[str, Path]:
    """Versions by what tells them apart: of folders called patches, what holds them."""
    paths = [folder.resolve() for folder in folders]
    return {path.parent.name if path.name == "patches" else path.name: path for path in paths}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folders", nargs="+", type=Path, help="of patches; the first is the measure"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="part of a scene's name; may be repeated"
    )
    parser.add_argument("--compile", action="store_true", help="compile for sm_90, and run nothing")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    versions = named(arguments.folders)
    if len(versions) < len(arguments.folders):
        parser.error("two folders have one name: call what holds the patches differently")
    copy = {} if arguments.compile else measure.copy_bandwidth()
    results: Row = {"device copy": copy}
    for scene in all_scenes():
        if not any(part in scene.name for part in arguments.only or [""]):
            continue
        units = units_of(scene, versions)
        if arguments.compile:
            print(f"\n{scene.name}")
            for name, unit in ((name, unit) for name, group in units.items() for unit in group):
                print(f"  {name:12}", *compile_unit(unit, arch="sm_90").kernels, flush=True)
        elif len(units) > 1 or len(versions) == 1:
            chosen = {name: versions[name] for name in units}
            results[scene.name] = measured(scene, chosen, copy["gb_per_s"])
            show(scene.name, results[scene.name])
    if not arguments.compile:
        print(measure.save("compare", results, arguments.out))


if __name__ == "__main__":
    main()
