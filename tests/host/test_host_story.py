"""The story that docs/host.md begins with: the fault is planted again, and the command finds it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.command import invoke
from trtpatch import builtin

PAGE = (Path(__file__).parents[2] / "docs/host.md").read_text(encoding="utf-8")
STORY = PAGE.partition("## A kernel that only a GPU")[2].partition("\n## ")[0]


def found(pattern: str) -> str:
    (text,) = re.findall(pattern, STORY, re.DOTALL)
    return str(text)


def replace_once(file: Path, pattern: str, new: str) -> None:
    text, count = re.subn(pattern, lambda _: new, file.read_text(), flags=re.DOTALL)
    assert count == 1, pattern
    file.write_text(text)


def test_the_command_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = tmp_path / "patches/decode_end2end"
    shutil.copytree(builtin.patches_folder() / patch.name, patch)
    shutil.copy(builtin.patches_folder() / "heads.cuh", patch.parent)
    (tmp_path / "registry.yaml").write_text("patches: [patches]\n")
    replace_once(
        patch / "kernel.cu",
        r"    // A NaN would become.*append_above[^\n]*\n",
        "    " + found("```cuda\n(.*?)```"),
    )
    append = "append(args, n, boxes=head[:, :4], scores=head[:, 4], classes={})\n"
    replace_once(
        patch / "reference.py",
        r"is_class = .*",
        append.format(found("its reference said `(.*?)`")),
    )
    replace_once(patch / "cases.py", r"    no_class = .*?no_class}\)\n", "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRTPATCH_CACHE", str(tmp_path / "cache"))
    command = found("`trtpatch (verify .*?)`").split()
    less = ("--generate", "1", "--case", "generated", "--shuffle", "1", "--executor", "host")
    said = invoke(*command, *less, code=1).stdout
    assert found("```text\n(.*?)```").strip() in said
