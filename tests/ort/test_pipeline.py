"""A pipeline as its users call it: pictures in, results in order, mistakes named."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

import trtpatch
from tests.command import invoke
from tests.tiny_model import save_tiny
from trtpatch.errors import EngineError, InputError, MatchError
from trtpatch.executors import Raw
from trtpatch.results import Results

EXECUTORS = ["cpu", "host"]


def picture(seed: int, height: int = 96, width: int = 128) -> np.ndarray:
    """Coloured rectangles on grey."""
    draw = np.random.default_rng(seed)
    pixels = np.full((height, width, 3), 90, np.uint8)
    for color in range(3):
        y, x = draw.integers(0, height - 24), draw.integers(0, width - 24)
        pixels[y : y + 24, x : x + 24] = np.eye(3, dtype=np.uint8)[color] * 255
    return pixels


def pipeline_file(folder: Path, *, batch: int = 2, more: str = "") -> Path:
    save_tiny(folder / "tiny.onnx", batch="N", size=(64, 64))
    path = folder / "pipeline.yaml"
    text = f"engine: {{path: tiny.onnx, kind: ort}}\nbatch: {batch}\n{more}"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(params=EXECUTORS)
def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[trtpatch.Pipeline]:
    with trtpatch.load(pipeline_file(tmp_path), executor=request.param) as loaded:
        yield loaded


def as_lists(found: trtpatch.Detections) -> tuple:
    return found.boxes.tolist(), found.scores.tolist(), found.labels.tolist()


def test_the_tiny_detector_sees_the_three_colours(pipeline: trtpatch.Pipeline) -> None:
    found = pipeline(picture(3))[0]
    assert {"red", "green", "blue"} <= set(found.names)
    assert (found.width, found.height) == (128, 96)


def test_any_number_of_pictures_each_as_if_alone(pipeline: trtpatch.Pipeline) -> None:
    pictures = [picture(i, 60 + 7 * i, 90 - 5 * i) for i in range(7)]
    alone = [as_lists(pipeline(one)[0]) for one in pictures]
    for count in (0, 1, 2, 7):
        assert [as_lists(found) for found in pipeline(pictures[:count])] == alone[:count]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_stream_gives_every_result_in_order(pipeline: trtpatch.Pipeline, depth: int) -> None:
    pictures = [picture(i) for i in range(9)]
    expected = [as_lists(pipeline(one)[0]) for one in pictures]
    assert [as_lists(found) for found in pipeline.stream(iter(pictures), depth=depth)] == expected


def test_a_stream_takes_no_more_pictures_than_it_may(pipeline: trtpatch.Pipeline) -> None:
    taken = []

    def camera() -> Iterator[np.ndarray]:
        for i in range(100):
            taken.append(i)
            yield picture(i)

    results = pipeline.stream(camera(), depth=2)
    next(results)
    assert len(taken) <= 2 * pipeline.plan.batch
    results.close()
    assert as_lists(pipeline(picture(0))[0])


@pytest.mark.parametrize("depth", [1, 3])
def test_a_stream_goes_on_after_a_picture_that_cannot_be_used(
    pipeline: trtpatch.Pipeline, depth: int
) -> None:
    flat = np.zeros((4, 4), np.uint8)
    pictures = [picture(0), flat, picture(1), picture(2), picture(3), flat, "no.jpg", picture(4)]
    results = pipeline.stream(pictures, depth=depth)
    told = []
    for one in pictures:
        if isinstance(one, np.ndarray) and one.ndim == 3:
            assert as_lists(next(results)) == as_lists(pipeline(one)[0])
        else:
            with pytest.raises(InputError) as error:
                next(results)
            told.append(str(error.value))
    assert "expected [height, width, 3] uint8" in told[0]
    assert "no.jpg: no such file" in told[2]
    with pytest.raises(StopIteration):
        next(results)


def test_a_camera_that_fails_is_told_after_what_it_gave(pipeline: trtpatch.Pipeline) -> None:
    def camera() -> Iterator[np.ndarray]:
        yield from (picture(i) for i in range(5))
        raise OSError("unplugged")

    results = pipeline.stream(camera())
    for i in range(5):
        assert as_lists(next(results)) == as_lists(pipeline(picture(i))[0])
    with pytest.raises(OSError, match="unplugged"):
        next(results)
    assert not list(results)


def test_a_stream_of_recorded_outputs_ends_where_a_picture_is_missing(tmp_path: Path) -> None:
    """The outputs after it would go to the wrong pictures."""
    paths = [str(tmp_path / f"{index}.png") for index in range(4)]
    for index, path in enumerate(paths):
        Image.fromarray(picture(index)).save(path)
    file = pipeline_file(tmp_path, batch=1)
    recording = tmp_path / "tiny.npz"
    invoke("record", str(file), *paths, "-o", str(recording), "--executor", "cpu")
    with trtpatch.load(file, executor="cpu") as plain:
        expected = as_lists(plain(paths[0])[0])
    with trtpatch.load(recording, executor="cpu") as played:
        results = played.stream([paths[0], "no.png", *paths[2:]])
        assert as_lists(next(results)) == expected
        with pytest.raises(InputError, match=r"no\.png: no such file"):
            next(results)
        assert not list(results)


def test_each_picture_of_a_batch_has_its_turn_where_results_fail(
    pipeline: trtpatch.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Results._result

    def fails_at_97(self: Results, raw: Raw, row: int, size: tuple[int, int]) -> object:
        if size[0] == 97:
            raise MemoryError("none left")
        return made(self, raw, row, size)

    monkeypatch.setattr(Results, "_result", fails_at_97)
    results = pipeline.stream([picture(i, 96 + i) for i in range(6)])
    for _ in range(2):  # that of 97 px is in the first batch of two
        with pytest.raises(MemoryError):
            next(results)
    assert [found.height for found in results] == [98, 99, 100, 101]


def test_a_pipeline_says_what_it_is(pipeline: trtpatch.Pipeline) -> None:
    (line,) = repr(pipeline).splitlines()
    for part in ("pipeline.yaml", "onnxruntime", ".onnx", "rule ", f"executor {pipeline.executor}"):
        assert part in line


def test_depth_is_one_or_more(pipeline: trtpatch.Pipeline) -> None:
    with pytest.raises(InputError, match="depth: expected 1 or more"):
        pipeline.stream([], depth=0)
    for depth in ("a", None, 1.5):
        with pytest.raises(InputError, match="depth: expected 1 or more"):
            pipeline.stream([], depth=depth)
    with pytest.raises(InputError, match="such as a list, found ndarray"):
        pipeline.stream(picture(0))
    with pytest.raises(InputError, match="such as a list, found int"):
        pipeline.stream(5)
    with pytest.raises(InputError, match=r"one after another, such as a list, found video\.mp4"):
        pipeline.stream("video.mp4")


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


@pytest.mark.parametrize("depth", [1, 3])
def test_what_was_found_before_a_stream_breaks_is_not_lost(
    pipeline: trtpatch.Pipeline, depth: int
) -> None:
    expected = [as_lists(pipeline(picture(i))[0]) for i in range(4)]

    def camera() -> Iterator[np.ndarray]:
        yield from map(picture, range(4))
        raise ConnectionError("the cable is out")

    found = []
    with pytest.raises(ConnectionError, match="cable"):
        found.extend(map(as_lists, pipeline.stream(camera(), depth=depth)))
    assert found == expected


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
