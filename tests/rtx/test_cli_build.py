"""`trtpatch build` with the real TensorRT-RTX: shapes, batch and bounds as a user types them."""

from pathlib import Path

import pytest
from click.testing import Result
from PIL import Image

from tests.command import invoke
from tests.tiny_model import save_tiny
from trtpatch.engines.build import BuildOptions, build

pytest.importorskip("tensorrt_rtx")

LOW, BEST, HIGH = (1, 3, 64, 64), (2, 3, 128, 128), (8, 3, 256, 256)
BOUNDS = "1x3x64x64:2x3x128x128:8x3x256x256"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A detector with open sizes, and the same with fixed ones."""
    save_tiny(tmp_path / "open.onnx")
    save_tiny(tmp_path / "fixed.onnx", batch=1, size=(64, 96))
    Image.new("RGB", (8, 8)).save(tmp_path / "photo.jpg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, code: int = 0) -> Result:
    return invoke("build", *arguments, "-o", "m.engine", "--flavour", "tensorrt_rtx", code=code)


def test_build_and_inspect_a_plan(folder: Path) -> None:
    assert run("fixed.onnx", "--no-tf32").stdout.startswith("m.engine: ")
    assert "built with TensorRT-RTX" in invoke("inspect", "m.engine").stdout


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["open.onnx", "--shape", "8x3x64x64"], BuildOptions(input_shape=(8, 3, 64, 64))),
        (["open.onnx", "--shape", "8,3,64,64"], BuildOptions(input_shape=(8, 3, 64, 64))),
        (
            ["open.onnx", "--batch", "8", "--shape", "-1x3x64x96"],
            BuildOptions(input_shape=(-1, 3, 64, 96), batch=8),
        ),
        (["open.onnx", "--shape", BOUNDS], BuildOptions(profile=(LOW, BEST, HIGH))),
        (["open.onnx", "--shape", f"images={BOUNDS}"], BuildOptions(profile=(LOW, BEST, HIGH))),
        (
            ["fixed.onnx", "--shape", "images=-1x3x-1x-1", "--shape", f"images={BOUNDS}"],
            BuildOptions(input_shape=(-1, 3, -1, -1), profile=(LOW, BEST, HIGH)),
        ),
        (["fixed.onnx", "--batch", "1"], BuildOptions()),
    ],
)
def test_shapes_reach_the_builder(
    folder: Path, arguments: list[str], options: BuildOptions
) -> None:
    """Plans of other shapes are of other sizes; those of the same differ by a few bytes."""
    run(*arguments)
    size = (folder / "m.engine").stat().st_size
    assert abs(size - len(build(arguments[0], options))) < 1000


OPEN, FIXED = "images float32 [-1, 3, -1, -1]", "images float32 [1, 3, 64, 96]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["photo.jpg"], "JPEG picture"),
        (["open.onnx"], f"{OPEN} leaves sizes open"),
        (["open.onnx"], "--shape 1x3x640x640, --shape MIN:OPT:MAX and, "),
        (["open.onnx", "--batch", "8"], f"{OPEN} leaves sizes open"),
        (["open.onnx", "--batch", "0"], "0 is not in the range"),
        (["open.onnx", "--shape", "1,3,a"], "--shape 1,3,a: expected whole numbers"),
        (["open.onnx", "--shape", ""], "expected whole numbers"),
        (["open.onnx", "--shape", "3x416"], f"has 2 axes, which none of its inputs has: {OPEN}"),
        (["open.onnx", "--shape", "1x3x0x64"], f"[1, 3, 0, 64] for input {OPEN}: expected 4 sizes"),
        (["open.onnx", "--shape", "image=1x3x8x8"], f"it has {OPEN}. Did you mean 'images'?"),
        (["open.onnx", "--shape", "1x3x8x8:2x3x8x8"], "expected one shape, or three as MIN:OPT:M"),
        (["open.onnx", "--shape", "1x3x8x8", "--shape", "2x3x8x8"], "there is another; say which"),
        (["open.onnx", "--shape", f"{BOUNDS[10:]}:1x3x8x8"], "that grow from min to max"),
        (["open.onnx", "--batch", "8", "--shape", BOUNDS], "--batch 8: the bounds that --shape"),
        (["fixed.onnx", "--batch", "8"], f"input {FIXED} has a fixed one. --shape -1x3x64x96 op"),
        (["fixed.onnx", "--shape", BOUNDS], f"profile for input {FIXED}: min [1, 3, 64, 64]"),
    ],
)  # fmt: skip
def test_wrong_shapes(folder: Path, arguments: list[str], said: str) -> None:
    assert said in run(*arguments, code=2).stderr
    assert not (folder / "m.engine").exists()


def test_what_cannot_be_written_is_not_built(folder: Path) -> None:
    before = (folder / "open.onnx").read_bytes()
    for target, said in (
        ("none/m.engine", "there is no such folder"),
        (".", "Is a directory"),
        ("open.onnx", "would overwrite a file that this run reads"),
    ):
        assert said in invoke("build", "open.onnx", "-o", target, code=2).stderr
    assert (folder / "open.onnx").read_bytes() == before
