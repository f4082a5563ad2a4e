"""Pipelines whose engine leaves batch and size open, by a small model on ONNX Runtime."""

import logging

import numpy as np
import pytest

import trtpatch
from tests.command import invoke
from tests.tiny_model import NAMES, picture, save_tiny
from trtpatch.errors import EngineError, InputError
from trtpatch.modelshape import ModelShape

PROFILE = "profile: {min: [1, 3, 32, 32], opt: [4, 3, 128, 128], max: [8, 3, 256, 256]}"
PICTURES = [picture(100 + 13 * i, 150 - 7 * i, seed=i) for i in range(7)]


@pytest.fixture
def load(tmp_path):
    """Load a pipeline of the model, `engine` besides its path and `text` besides the engine."""
    opened = []

    def make(engine="", text="", **declared):
        save_tiny(tmp_path / "tiny.onnx", **declared)
        path = tmp_path / f"{len(opened)}.yaml"
        path.write_text(f"engine: {{path: tiny.onnx, kind: ort, {engine}}}\n{text}")
        opened.append(trtpatch.load(path, executor="cpu"))
        return opened[-1]

    yield make
    for pipeline in opened:
        pipeline.close()


def ready(pipeline) -> list[ModelShape]:
    return list(pipeline._ready._kept)


def same(found, expected) -> None:
    assert len(expected)
    assert found.names == expected.names
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-6)
    np.testing.assert_allclose(found.boxes, expected.boxes, atol=1e-3)


def test_the_model_finds_what_the_picture_shows(load):
    found = load("input_shape: [1, 3, 128, 128]")(PICTURES[0])[0]
    assert set(found.names) == set(NAMES)
    height, width = PICTURES[0].shape[:2]
    for name, score, box in zip(found.names, found.scores, found.boxes, strict=True):
        x1, y1, x2, y2 = box.round().astype(int)
        if score > 0.99 and x1 > 0 and y1 > 0 and x2 < width and y2 < height:
            assert NAMES[PICTURES[0][(y1 + y2) // 2, (x1 + x2) // 2].argmax()] == name


class TestBatch:
    @pytest.fixture
    def alone(self, load):
        pipeline = load("input_shape: [1, 3, 128, 128]")
        return [pipeline(one)[0] for one in PICTURES]

    def test_a_shorter_last_batch_runs_at_its_own_size(self, load, alone):
        pipeline = load("input_shape: [-1, 3, 128, 128]", "batch: 4")
        assert pipeline.plan.batch == 4
        for found, expected in zip(pipeline(PICTURES), alone, strict=True):
            same(found, expected)
        assert [shape.batch for shape in ready(pipeline)] == [4, 3]
        for found, expected in zip(pipeline.stream(PICTURES), alone, strict=True):
            same(found, expected)

    def test_a_fixed_batch_has_blank_places(self, load, alone):
        pipeline = load(batch=3, size=(128, 128))
        for found, expected in zip(pipeline(PICTURES[:2]), alone, strict=False):
            same(found, expected)
        assert [shape.batch for shape in ready(pipeline)] == [3]

    def test_a_batch_is_one_where_nothing_else_is_said(self, load, alone):
        pipeline = load(size=(128, 128))
        assert pipeline.plan.batch == 1
        same(pipeline(PICTURES)[6], alone[6])

    def test_a_file_that_fixes_its_batch_is_opened(self, load, alone):
        pipeline = load("input_shape: [-1, 3, 128, 128]", "batch: 8", batch=1, size=(64, 64))
        for found, expected in zip(pipeline(PICTURES), alone, strict=True):
            same(found, expected)
        assert [shape.batch for shape in ready(pipeline)] == [8, 7]

    def test_no_pictures_give_no_results(self, load):
        assert list(load(size=(64, 64))([])) == []

    def test_another_batch_than_the_file_fixes(self, load):
        with pytest.raises(
            EngineError, match=r"asks for batch 4, but .* fixed to \[2, 3, 64, 64\]"
        ):
            load("", "batch: 4", batch=2, size=(64, 64))

    def test_the_profile_decides(self, load):
        pipeline = load(PROFILE)
        assert (pipeline.plan.batch, ready(pipeline)[0].size) == (4, (128, 128))
        with pytest.raises(EngineError, match=r"\[9, 3, 128, 128\] is outside .* max \[8, 3, 256"):
            load(PROFILE, "batch: 9")


class TestSize:
    def test_a_call_may_name_it(self, load):
        pipeline = load(PROFILE)
        for size in ((64, 64), (96, 160), (256, 32)):
            fixed = load(f"input_shape: [1, 3, {size[0]}, {size[1]}]")
            same(pipeline(PICTURES[1], size=size)[0], fixed(PICTURES[1])[0])
        assert ready(pipeline)[-1] == ModelShape(1, (256, 32))
        for found, expected in zip(
            pipeline.stream(PICTURES[:3], size=(96, 160)),
            pipeline(PICTURES[:3], size=(96, 160)),
            strict=True,
        ):
            same(found, expected)

    def test_one_outside_the_profile_leaves_a_pipeline_that_works(self, load):
        pipeline = load(PROFILE, "shapes: 1")
        before = pipeline(PICTURES[0])[0]
        for size in ((512, 128), (128, 8)):
            with pytest.raises(EngineError, match=r"min \[1, 3, 32, 32\].*max \[8, 3, 256, 256\]"):
                pipeline(PICTURES[0], size=size)
        same(pipeline(PICTURES[0])[0], before)

    def test_one_that_the_file_fixes(self, load):
        pipeline = load(size=(64, 64))
        with pytest.raises(EngineError, match=r"takes \[-1, 3, 64, 64\], found \[1, 3, 96, 96\]"):
            pipeline(PICTURES[0], size=(96, 96))

    def test_it_must_come_from_somewhere(self, load):
        with pytest.raises(EngineError, match=r"open in more than the batch.*input_shape.*profile"):
            load()

    @pytest.mark.parametrize(
        ("pictures", "size"),
        [
            ([(720, 1280)], (72, 128)),
            ([(100, 100)], (128, 128)),
            ([(1280, 720), (640, 360)], (128, 72)),
            ([(720, 1280), (1280, 720)], (128, 128)),
            ([(1, 20000)], (32, 128)),
            ([(480, 639)], (104, 128)),
        ],
    )
    def test_auto_is_the_smallest_that_holds_the_pictures(self, load, pictures, size):
        pipeline = load(PROFILE, "size: auto")
        images = [picture(*one) for one in pictures]
        results = pipeline(images)
        assert ready(pipeline)[-1] == ModelShape(len(images), size)
        fixed = load(f"input_shape: [1, 3, {size[0]}, {size[1]}]")
        for image, found in zip(images, results, strict=True):
            expected = fixed(image)[0]
            assert found.anchors.tolist() == expected.anchors.tolist()
            np.testing.assert_allclose(found.boxes, expected.boxes, atol=1e-3)

    def test_auto_scales_as_the_whole_size_does(self, load):
        image = picture(360, 640)
        whole, cut = load(PROFILE), load(PROFILE, "size: auto")
        assert cut(image)[0].scores.max() == pytest.approx(whole(image)[0].scores.max(), abs=1e-3)
        gains = [p._ready.last.read("resize_letterbox.geometry")[0, :2] for p in (whole, cut)]
        np.testing.assert_array_equal(*gains)

    def test_auto_keeps_to_the_models_stride(self, load):
        pipeline = load(PROFILE, "size: auto", stride=32)
        pipeline(picture(720, 1280))
        assert ready(pipeline)[-1].size == (96, 128)


class TestKept:
    SIZES = ((64, 64), (96, 96), (128, 64))

    def test_the_one_idle_longest_goes(self, load):
        pipeline = load(PROFILE, "shapes: 2")
        first = [pipeline(PICTURES[0], size=size)[0] for size in self.SIZES]
        assert [shape.size for shape in ready(pipeline)] == list(self.SIZES[1:])
        pipeline(PICTURES[0], size=self.SIZES[1])
        pipeline(PICTURES[0], size=self.SIZES[0])
        assert [shape.size for shape in ready(pipeline)] == [self.SIZES[1], self.SIZES[0]]
        again = [pipeline(PICTURES[0], size=size)[0] for size in self.SIZES]
        for found, expected in zip(again, first, strict=True):
            same(found, expected)

    def test_what_went_is_closed(self, load):
        pipeline = load(PROFILE, "shapes: 1")
        executor, engine = pipeline._ready.last, pipeline._ready._kept[ready(pipeline)[0]][0]
        pipeline(PICTURES[0], size=(64, 64))
        assert not executor.arrays
        with pytest.raises(EngineError, match="closed"):
            engine.run({})

    def test_a_shape_that_cannot_be_ends_nothing(self, load):
        pipeline = load(PROFILE, "shapes: 1")
        expected = pipeline(PICTURES[0])[0]
        with pytest.raises(EngineError, match="outside"):
            pipeline(PICTURES[0], size=(8, 8))
        pipeline.reload()
        assert pipeline.executor == "cpu"
        same(pipeline(PICTURES[0])[0], expected)

    def test_runtime_parameters_hold_in_every_shape(self, load):
        pipeline = load(PROFILE, "shapes: 2")
        sizes = [(128, 128), *self.SIZES]
        plain = [len(pipeline(PICTURES[0], size=size)[0]) for size in sizes]
        pipeline.set(score_threshold=0.9)
        for size, count in zip(sizes, plain, strict=True):
            found = pipeline(PICTURES[0], size=size)[0]
            assert 0 < len(found) < count
            assert found.scores.min() > 0.9
        pipeline.set(score_threshold=0.25)
        assert [len(pipeline(PICTURES[0], size=size)[0]) for size in sizes] == plain

    def test_results_outlive_their_shape(self, load):
        pipeline = load(PROFILE, "shapes: 1")
        late = pipeline(PICTURES[0], size=(64, 64))
        expected = load("input_shape: [1, 3, 64, 64]")(PICTURES[0])[0]
        pipeline(PICTURES[1], size=(96, 96))
        pipeline.close()
        same(late[0], expected)
        with pytest.raises(InputError, match="closed"):
            pipeline(PICTURES[0])


class TestNotes:
    def test_an_option_without_effect_is_told_once(self, load, caplog):
        with caplog.at_level(logging.WARNING, "trtpatch.pipeline"):
            pipeline = load(f"float16: true, {PROFILE}", "shapes: 2")
            pipeline(PICTURES[:3], size=(64, 64))
        told = "without effect: float16; ONNX Runtime keeps the types of the file"
        assert pipeline.notes == (told,)
        assert [r.getMessage().partition(": ")[2] for r in caplog.records] == [told]

    def test_size_auto_where_nothing_is_open(self, load):
        pipeline = load("", "size: auto", size=(64, 64))
        assert pipeline.notes == ("without effect: size; the engine's picture has a fixed one",)

    def test_nothing_to_tell(self, load, caplog):
        assert load("tf32: false", size=(64, 64)).notes == ()
        assert not caplog.records

    def test_check_shows_them(self, tmp_path):
        save_tiny(tmp_path / "tiny.onnx", size=(64, 64))
        path = tmp_path / "p.yaml"
        path.write_text("engine: {path: tiny.onnx, kind: ort, float16: true}\nsize: auto\n")
        shown = invoke("check", str(path), "--executor", "cpu").stdout
        assert "without effect: float16;" in shown
        assert "without effect: size;" in shown
