"""Editing what a running pipeline is made of: it goes over to it, or stays as it was."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import trtpatch
from tests.reloads import PICTURE, Project, edit
from tests.tiny_model import picture
from trtpatch.errors import InputError, MatchError, SpecError, TrtpatchError, VerifyError
from trtpatch.pipeline import Pipeline


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, more="executor: cpu\n")


@pytest.fixture
def pipeline(project: Project) -> Iterator[Pipeline]:
    with trtpatch.load(project.pipeline) as loaded:
        yield loaded


def scores(pipeline: Pipeline) -> list[float]:
    found: list[float] = pipeline(PICTURE)[0].scores.tolist()
    assert found
    return found


def halve(project: Project) -> None:
    """Same length, same second: nothing but the text tells."""
    edit(project.reference, "scores=1. * best", "scores=.5 * best")


CHANGES: dict[str, tuple[Callable[[Project], None], Callable[[Pipeline], object], object]] = {
    "reference": (halve, lambda p: max(scores(p)) < 0.5, True),
    "contract": (
        lambda project: edit(project.contract, "default: 0.25", "default: 0.95"),
        lambda p: min(scores(p)) > 0.95,
        True,
    ),
    "registry": (
        lambda project: edit(project.registry, "max_detections: 300", "max_detections: 2"),
        lambda p: len(scores(p)),
        2,
    ),
    "pipeline file": (
        lambda project: project.pipeline.write_text(
            project.pipeline.read_text() + "params: {select_nms: {max_detections: 1}}\n"
        ),
        lambda p: len(scores(p)),
        1,
    ),
    "labels": (
        lambda project: edit(project.labels, "red", "rot"),
        lambda p: p.class_names,
        ("rot", "green", "blue"),
    ),
    "frame": (
        lambda project: project.pipeline.write_text(project.pipeline.read_text() + "frame: bgr\n"),
        lambda p: p.plan.frame_layout,
        "bgr",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_edit_takes_effect(name: str, project: Project, pipeline: Pipeline) -> None:
    change, look, expected = CHANGES[name]
    assert look(pipeline) != expected
    change(project)
    assert look(pipeline) != expected
    pipeline.reload()
    assert look(pipeline) == expected


def test_two_edits_within_a_second(project: Project, pipeline: Pipeline) -> None:
    before = scores(pipeline)
    now = "scores=1. * best"
    for gain in (5, 4, 3):
        edit(project.reference, now, now := f"scores=.{gain} * best")
        pipeline.reload()
        assert max(scores(pipeline)) == pytest.approx(max(before) * gain / 10)


BREAKS: dict[str, tuple[Callable[[Project], None], type[TrtpatchError], str]] = {
    "pipeline file": (
        lambda project: edit(project.pipeline, "labels:", "lables:"),
        SpecError,
        "pipeline.yaml:4:1: unknown key 'lables'. Did you mean 'labels'?",
    ),
    "no pipeline file": (lambda p: p.pipeline.unlink(), SpecError, "pipeline.yaml: cannot be read"),
    "registry": (lambda p: edit(p.registry, "chain:", "chian:"), SpecError, "registry.yaml:6:5: "),
    "rule": (lambda p: edit(p.registry, "[N, 4 + C, A]", "[N, A]"), MatchError, "rule mine"),
    "contract": (
        lambda project: edit(project.contract, "block: 128", "blok: 128"),
        SpecError,
        "Did you mean 'block'?",
    ),
    "no contract": (lambda p: p.contract.unlink(), MatchError, "no patch is called 'decode_tiny'"),
    "reference": (
        lambda project: edit(project.reference, "def decode", "def  decode_ yolov8"),
        VerifyError,
        "reference.py:6: SyntaxError: ",
    ),
    "labels": (lambda p: p.labels.unlink(), SpecError, "labels.txt' cannot be read"),
}


def test_a_reference_that_fails_is_told_with_its_line(project: Project, pipeline: Pipeline) -> None:
    edit(project.reference, ".argmax(0)", ".argmax(7)")
    pipeline.reload()
    with pytest.raises(VerifyError, match=r"reference\.py:10: AxisError: axis 7 is out of bounds"):
        scores(pipeline)


@pytest.mark.parametrize("name", BREAKS)
def test_a_mistake_leaves_the_old_one_running(
    name: str, project: Project, pipeline: Pipeline
) -> None:
    change, error, said = BREAKS[name]
    files = [one for one in project.pipeline.parent.rglob("*") if one.is_file()]
    texts = {file: file.read_bytes() for file in files}
    before = scores(pipeline)
    change(project)
    with pytest.raises(error) as caught:
        pipeline.reload()
    assert said in str(caught.value)
    assert scores(pipeline) == before
    for file, text in texts.items():
        file.write_bytes(text)
    halve(project)
    pipeline.reload()
    assert scores(pipeline) != before


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("kind: ort", "kind: auto", "pipeline.yaml:1:9: engine"),
        ("rule: mine", "rule: mine\nbatch: 2", "pipeline.yaml:3:8: batch"),
        ("rule: mine", "rule: mine\nsize: auto", "pipeline.yaml:3:7: size"),
        ("rule: mine", "rule: mine\ndevice: 1", "pipeline.yaml:3:9: device"),
        ("executor: cpu", "executor: auto", "pipeline.yaml:5:11: executor"),
    ],
)
def test_what_the_engine_would_be_opened_anew_for_is_refused(
    old: str, new: str, place: str, project: Project, pipeline: Pipeline
) -> None:
    before = scores(pipeline)
    edit(project.pipeline, old, new)
    with pytest.raises(SpecError, match="Load the pipeline again") as caught:
        pipeline.reload()
    assert place in str(caught.value)
    assert scores(pipeline) == before


def test_the_engine_is_not_touched(
    project: Project, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = pipeline._loaded.engine
    ready = dict(pipeline._ready.engines)

    def touched(*_: object) -> None:
        raise AssertionError("the engine is to be left alone")

    monkeypatch.setattr(engine, "at", touched)
    monkeypatch.setattr(engine, "close", touched)
    for one in ready.values():
        monkeypatch.setattr(one, "close", touched)
    (project.pipeline.parent / "tiny.onnx").unlink()
    halve(project)
    pipeline.reload()
    assert max(scores(pipeline)) < 0.5
    assert pipeline._loaded.engine is engine
    assert pipeline._ready.engines == ready
    monkeypatch.undo()


def test_every_shape_that_is_ready_goes_over(tmp_path: Path) -> None:
    project = Project(tmp_path, more="executor: cpu\nbatch: 2\nshapes: 3\n")
    from tests.tiny_model import save_tiny

    save_tiny(tmp_path / "tiny.onnx")
    edit(project.pipeline, "kind: ort", "kind: ort, input_shape: [-1, 3, 128, 128]")
    with trtpatch.load(project.pipeline) as pipeline:
        one, two = [PICTURE], [PICTURE, picture(90, 90)]
        before = [pipeline(pictures)[0].scores for pictures in (one, two)]
        shapes = list(pipeline._ready.engines)
        assert len(shapes) == 2
        halve(project)
        pipeline.reload()
        assert list(pipeline._ready.engines) == shapes
        for pictures, scores_before in zip((one, two), before, strict=True):
            assert pipeline(pictures)[0].scores.max() == scores_before.max() / 2


def test_what_was_set_stays_set(
    project: Project, pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline.set(score_threshold=0.97, iou_threshold=0.99)
    edit(project.contract, "default: 0.25", "default: 0.5")
    for _ in range(2):
        pipeline.reload()
        assert min(scores(pipeline)) > 0.97
    assert not caplog.records

    edit(project.contract, "default: 0.5", "default: 0.5, max: 0.9")
    pipeline.reload()
    (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert "set before the reload, and no more" in record.getMessage()
    assert "expected 0.9 or less, found 0.97" in record.getMessage()
    assert 0.5 < min(scores(pipeline)) < 0.97


def test_results_from_before_stay_valid(project: Project, pipeline: Pipeline) -> None:
    expected = scores(pipeline)
    held = pipeline(PICTURE)
    halve(project)
    pipeline.reload()
    assert held[0].scores.tolist() == expected


def test_frames_go_on_meanwhile_and_each_is_old_or_new(
    project: Project, pipeline: Pipeline
) -> None:
    old = scores(pipeline)
    seen: list[list[float]] = []
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            seen.append(scores(pipeline))

    thread = threading.Thread(target=run)
    thread.start()
    halve(project)
    pipeline.reload()
    new = scores(pipeline)
    for _ in range(5):
        pipeline.reload()
    stop.set()
    thread.join()
    assert seen
    assert all(one in (old, new) for one in seen)


def test_a_stream_goes_on(project: Project, pipeline: Pipeline) -> None:
    def pictures() -> Iterator[np.ndarray]:
        yield PICTURE
        halve(project)
        pipeline.reload()
        yield PICTURE

    first, second = pipeline.stream(pictures(), depth=1)
    assert second.scores.max() == first.scores.max() / 2


def test_a_closed_pipeline_is_not_reloaded(project: Project) -> None:
    pipeline = trtpatch.load(project.pipeline)
    pipeline.close()
    with pytest.raises(InputError, match="closed"):
        pipeline.reload()


def test_the_sources_are_what_was_read(project: Project, pipeline: Pipeline) -> None:
    folder = project.pipeline.parent
    own = {path for path in pipeline.sources if folder in path.parents}
    assert own == {project.pipeline, project.registry, project.labels, folder / "mine"}
