"""Results of a stream: in order, each in its turn, whatever becomes of a picture."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import trtpatch
from tests.colours import as_lists, picture, pipeline_file
from tests.command import invoke
from trtpatch.errors import InputError
from trtpatch.executors import Raw
from trtpatch.results import Results


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
