"""A pipeline as its users call it: pictures in, results in order, mistakes named."""

import os
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

import trtpatch
from tests.colours import as_lists, picture, pipeline_file
from trtpatch.errors import EngineError, InputError, MatchError


def test_the_tiny_detector_sees_the_three_colours(pipeline: trtpatch.Pipeline) -> None:
    found = pipeline(picture(3))[0]
    assert {"red", "green", "blue"} <= set(found.names)
    assert (found.width, found.height) == (128, 96)


def test_any_number_of_pictures_each_as_if_alone(pipeline: trtpatch.Pipeline) -> None:
    pictures = [picture(i, 60 + 7 * i, 90 - 5 * i) for i in range(7)]
    alone = [as_lists(pipeline(one)[0]) for one in pictures]
    for count in (0, 1, 2, 7):
        assert [as_lists(found) for found in pipeline(pictures[:count])] == alone[:count]


def test_a_pipeline_says_what_it_is(pipeline: trtpatch.Pipeline) -> None:
    (line,) = repr(pipeline).splitlines()
    for part in ("pipeline.yaml", "onnxruntime", ".onnx", "rule ", f"executor {pipeline.executor}"):
        assert part in line


def test_several_threads_may_call(pipeline: trtpatch.Pipeline) -> None:
    pictures = [picture(i) for i in range(4)]
    expected = [as_lists(pipeline(one)[0]) for one in pictures]
    wrong = []

    def work(index: int) -> None:
        for _ in range(5):
            found = as_lists(pipeline(pictures[index])[0])
            wrong.extend([index] if found != expected[index] else [])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arrays_that_are_not_contiguous_are_read_right(pipeline: trtpatch.Pipeline) -> None:
    pixels = picture(5)
    expected = as_lists(pipeline(pixels)[0])
    wide = np.zeros((96, 300, 3), np.uint8)
    wide[:, 40:168] = pixels
    rgba = np.dstack([pixels, np.zeros((96, 128, 1), np.uint8)])
    for view in (
        wide[:, 40:168],  # a row pitch
        np.asfortranarray(pixels),
        rgba[:, :, :3],
        pixels[::-1].copy()[::-1],  # rows from below
        pixels[:, ::-1].copy()[:, ::-1],
    ):
        assert as_lists(pipeline(view)[0]) == expected


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 4), np.uint8), r"found uint8 \[4, 4\]"),
        (np.zeros((4, 4, 4), np.uint8), r"found uint8 \[4, 4, 4\]"),
        (np.zeros((4, 4, 3), np.float32), r"found float32 \[4, 4, 3\]"),
        (np.zeros((2, 4, 4, 3), np.uint8), "Give a batch as a list"),
        (np.zeros((0, 4, 3), np.uint8), "the picture is empty"),
        (17, "found int"),
        (None, "found NoneType"),
    ],
)
def test_what_is_no_picture(pipeline: trtpatch.Pipeline, image: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pipeline(image)


def test_files_and_arrays_give_the_same(tmp_path: Path) -> None:
    pixels = picture(2)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    for more, array in (("", pixels), ("frame: bgr\n", pixels[:, :, ::-1])):
        with trtpatch.load(pipeline_file(tmp_path, more=more), executor="cpu") as loaded:
            from_file = as_lists(loaded(tmp_path / "picture.png")[0])
            assert from_file == as_lists(loaded(array)[0])
            assert {"red", "green", "blue"} <= set(loaded(array)[0].names)


def test_a_picture_lies_as_its_exif_says(tmp_path: Path) -> None:
    pixels = picture(2)
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees to see it upright
    Image.fromarray(np.ascontiguousarray(np.rot90(pixels))).save(tmp_path / "turned.png", exif=exif)
    with trtpatch.load(pipeline_file(tmp_path), executor="cpu") as loaded:
        assert as_lists(loaded(tmp_path / "turned.png")[0]) == as_lists(loaded(pixels)[0])


def test_runtime_parameters_change_from_call_to_call(pipeline: trtpatch.Pipeline) -> None:
    before = pipeline(picture(1))[0]
    highest = float(before.scores.max())
    pipeline.set(score_threshold=highest)
    assert len(pipeline(picture(1))[0]) == 0  # a box is kept above the threshold, not at it
    pipeline.set(score_threshold=0.25)
    assert as_lists(pipeline(picture(1))[0]) == as_lists(before)
    with pytest.raises(InputError, match="Did you mean 'score_threshold'"):
        pipeline.set(score_treshold=0.5)
    with pytest.raises(InputError, match="iou_threshold: expected 0.0 to 1.0, found 2"):
        pipeline.set(iou_threshold=2)


def test_results_outlive_the_pipeline_and_later_calls(tmp_path: Path) -> None:
    loaded = trtpatch.load(pipeline_file(tmp_path), executor="cpu")
    first = loaded(picture(1))
    expected = as_lists(first[0])
    loaded(picture(2))
    loaded.close()
    loaded.close()
    assert as_lists(first[0]) == expected
    with pytest.raises(InputError, match="closed"):
        loaded(picture(1))


@pytest.mark.filterwarnings("ignore:OpenCV:UserWarning")
def test_results_go_to_supervision(pipeline: trtpatch.Pipeline) -> None:
    found = pipeline(picture(3))[0]
    theirs = found.to_supervision()
    assert len(theirs) == len(found) > 0
    np.testing.assert_array_equal(theirs.xyxy, found.boxes)
    assert theirs.data["class_name"].tolist() == found.names


def test_results_of_the_cpu_are_not_on_a_gpu(pipeline: trtpatch.Pipeline) -> None:
    with pytest.raises(InputError, match="only executor 'gpu'"):
        pipeline(picture(1)).device()


@pytest.mark.parametrize("name", ["GPU", "cuda", 5])
def test_an_executor_that_is_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        InputError, match=f"executor: expected auto, gpu, cpu or host, found {name!r}"
    ):
        trtpatch.load(pipeline_file(tmp_path), executor=name)


def test_more_pictures_at_once_than_there_is_memory(tmp_path: Path) -> None:
    for batch in (10**11, 10**22):
        with pytest.raises(EngineError, match="input images .* cannot be made for a trial run: "):
            trtpatch.load(pipeline_file(tmp_path, batch=batch), executor="cpu")


def test_a_folder_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    with trtpatch.load(pipeline_file(folder), executor="cpu") as loaded:
        assert len(loaded(picture(3))[0])


def test_a_rule_that_is_named_outweighs_the_names_in_the_file(tmp_path: Path) -> None:
    path = pipeline_file(tmp_path)
    model = onnx.load(tmp_path / "tiny.onnx")
    onnx.helper.set_model_props(model, {"names": str({i: f"class {i}" for i in range(80)})})
    onnx.save(model, tmp_path / "tiny.onnx")
    with pytest.raises(MatchError, match="name 80 classes .* but decode_yolov8 finds 3 in its out"):
        trtpatch.load(path, executor="cpu")
    text = path.read_text()
    path.write_text(f"{text}rule: yolov8\n")
    with trtpatch.load(path, executor="cpu") as loaded:
        assert any("its metadata name 80 classes" in note for note in loaded.notes)
    path.write_text(f"{text}rule: yolov8\nlabels: [red, green, blue]\n")
    with trtpatch.load(path, executor="cpu") as loaded:
        assert not any("classes" in note for note in loaded.notes)
        assert "red" in loaded(picture(3))[0].names
