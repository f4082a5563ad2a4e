"""A newcomer's path, followed as patches/README.md says it, in a folder outside the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

ROOT = Path(__file__).parents[2]
README = (ROOT / "patches/README.md").read_text(encoding="utf-8")
INLINE = re.findall(r"`(trtpatch\s[^`]*)`", README)
PATH = re.findall(r"^```(\w+)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
SIDE, BOX = 64, (32.0, 24.0, 20.0, 16.0)
"""The model's picture in pixels, and the centre and size of the box that it finds."""


def write_model(path: Path) -> None:
    """A detector of two classes that sees one box in each picture, whatever is in it."""
    head = np.zeros((1, 4, 6), np.float32)
    head[0, 1] = [*BOX, 0.1, 0.9]
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=1),
        helper.make_node("Reshape", ["mean", "one"], ["number"]),
        helper.make_node("Mul", ["number", "nothing"], ["zero"]),
        helper.make_node("Add", ["head", "zero"], ["output"]),
    ]
    constants = {
        "head": head,
        "nothing": np.zeros((1, 1, 1), np.float32),
        "one": np.ones(3, np.int64),
    }
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 4, 6])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


class Shell:
    """Runs the commands of the page in the newcomer's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []

    def run(self, command: str, *, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *command.split()],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "TRTPATCH_CACHE": str(self.folder / ".kernels"),
            },
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
        self.said.append(done.stdout)
        return done.stdout

    def edit(self, diff: str) -> None:
        for section in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
            name, _, body = section.partition("\n")
            for before, added in re.findall(r"((?:^[- ].*\n)+)((?:^\+.*\n)+)", body, re.MULTILINE):
                old, new = before, "".join(re.findall(r"^ .*\n", before, re.MULTILINE)) + added
                file = self.folder / name
                text = file.read_text()
                assert text.count(_without_marks(old)) == 1, old
                file.write_text(text.replace(_without_marks(old), _without_marks(new)))


def _without_marks(lines: str) -> str:
    return re.sub(r"^[-+ ]", "", lines, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("newcomer")
    write_model(folder / "model.onnx")
    noise = np.random.default_rng(0).integers(0, 256, (48, 96, 3), dtype=np.uint8)
    Image.fromarray(noise).save(folder / "photo.png")
    return Shell(folder)


def test_the_path_is_followed_to_its_end(shell: Shell) -> None:
    steps = 0
    for language, text in PATH:
        if language == "sh":
            for command in text.splitlines():
                shell.run(command)
                steps += 1
        elif language == "diff":
            shell.edit(text)
        elif language == "yaml" and text.startswith("# pipeline.yaml"):
            (shell.folder / "pipeline.yaml").write_text(text)
    assert steps >= 8
    listed, found = shell.said[1], shell.said[-1]
    assert "decode_mine" in listed
    assert "1 found" in found
    # 64 model pixels are the 96 of the photo's width, and 8 rows are padding above and below it.
    x, y, width, height = BOX
    sides = x - width / 2, y - height / 2 - 16, x + width / 2, y + height / 2 - 16
    row = next(line for line in found.splitlines() if "0.900" in line)
    assert [float(one) for one in row.split()[-4:]] == [
        max(0.0, round(1.5 * one, 1)) for one in sides
    ]
    assert len(INLINE) >= 4
    for command in INLINE:  # those in the text run too, now that there is a pipeline
        shell.run(" ".join(command.split()))


def test_a_kernel_that_was_edited_alone_disagrees_with_its_reference(shell: Shell) -> None:
    shell.run("trtpatch new decode_other --kind decode")
    kernel = shell.folder / "patches/decode_other/kernel.cu"
    text = kernel.read_text()
    kernel.write_text(text.replace("load(head + 2), load(head + 3)}", "0.0f, load(head + 3)}"))
    assert text != kernel.read_text()
    said = shell.run("trtpatch verify decode_other --executor host --generate 0", code=1)
    assert "candidates_boxes: " in said
    kernel.write_text(text.replace("*args.score_threshold", "*args.treshold"))
    said = shell.run("trtpatch check decode_other", code=1)
    assert re.search(
        r"^patches/decode_other/kernel.cu:\d+:\d+: error: Args has no field", said, re.MULTILINE
    )
