"""`trtpatch run --watch` in a process of its own, while its files are edited."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from PIL import Image

from tests.command import invoke
from tests.reloads import PICTURE, Project, edit
from trtpatch import watch

pytest.importorskip("watchfiles")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    Image.fromarray(PICTURE).save(tmp_path / "photo.png")
    return Project(tmp_path, more="executor: cpu\n")


class Run:
    """The command, and what it has printed."""

    def __init__(self, project: Project, *more: str) -> None:
        self.folder = project.pipeline.parent
        command = [sys.executable, "-u", "-m", "trtpatch", "run", "pipeline.yaml", "photo.png"]
        self.process = subprocess.Popen(
            [*command, "--watch", *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
        )

    def until(self, words: str) -> str:
        """All lines up to the one with these words."""
        out: IO[str] | None = self.process.stdout
        assert out is not None
        lines = []
        for line in out:
            lines.append(line)
            if words in line:
                return "".join(lines)
        raise AssertionError(f"it ended without {words!r}:\n{''.join(lines)}")

    def result(self) -> dict[str, list[dict[str, float]]]:
        """What the last run wrote."""
        self.until("waiting for edits")
        (line,) = (self.folder / "found.jsonl").read_text(encoding="utf-8").splitlines()
        result: dict[str, list[dict[str, float]]] = json.loads(line)
        return result


@pytest.fixture
def run(project: Project) -> Iterator[Run]:
    run = Run(project, "--jsonl", "found.jsonl", "--set", "score_threshold=0.3")
    yield run
    run.process.kill()
    run.process.wait()
    assert run.process.stdout is not None
    run.process.stdout.close()


def best(result: dict[str, list[dict[str, float]]]) -> float:
    return max(one["score"] for one in result["detections"])


def test_it_runs_again_after_each_edit_and_survives_mistakes(project: Project, run: Run) -> None:
    first = best(run.result())
    edit(project.reference, "1. * best", ".5 * best")
    said = run.until("reloaded in")
    assert f"edited: {project.reference.resolve()}" in said
    assert best(run.result()) == pytest.approx(first / 2)

    edit(project.contract, "kind: decode", "kid: decode")
    said = run.until("waiting for edits")
    assert "patch.yaml:2:1: unknown key 'kid'. Did you mean 'kind'?" in said
    assert "what was loaded before goes on" in said

    edit(project.pipeline, "kind: ort", "kind: auto")
    edit(project.contract, "kid: decode", "kind: decode")
    while "Load the pipeline again" not in said:
        said = run.until("waiting for edits")
    edit(project.pipeline, "kind: auto", "kind: ort")
    edit(project.registry, "max_detections: 300", "max_detections: 1")
    run.until("reloaded in")
    result = run.result()
    while len(result["detections"]) > 1:  # an editor that saves two files may cause two reloads
        run.until("reloaded in")
        result = run.result()
    assert best(result) == pytest.approx(first / 2)


def test_a_picture_that_cannot_be_used_does_not_end_it(project: Project, run: Run) -> None:
    run.result()
    (run.folder / "photo.png").write_bytes(b"none")
    edit(project.registry, "max_detections: 300", "max_detections: 1")
    assert "error: photo.png" in run.until("waiting for edits")


def test_ctrl_c_ends_it(run: Run) -> None:
    run.result()
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(timeout=60) == 130


def test_watchfiles_is_named_where_it_is_missing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch.importlib.util, "find_spec", lambda _: None)
    monkeypatch.chdir(project.pipeline.parent)
    done = invoke("run", "pipeline.yaml", "photo.png", "--watch", code=2)
    assert "pip install watchfiles" in done.stderr
    assert not done.stdout
