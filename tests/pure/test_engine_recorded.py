"""Engine outputs, recorded and played back."""

import json

import numpy as np
import pytest

from trtpatch.engines import EngineInfo, Metadata, Tensor, open_engine
from trtpatch.engines.options import BuildOptions
from trtpatch.engines.recorded import RecordedFrame, save_recording
from trtpatch.errors import EngineError

INFO = EngineInfo(
    kind="trt",
    path="/somewhere/else/yolo.engine",
    flavour="tensorrt_rtx",
    version="1.4.0.76",
    inputs=(Tensor("images", "float32", (2, 3, 32, 64)),),
    outputs=(
        Tensor("/head/cat_output_0", "float16", (2, 7, 85)),
        Tensor("count", "int32", (2,)),
    ),
    metadata=Metadata(("person", "ça va"), 32, {"task": "detect"}),
    notes=("needs 43 MiB",),
)


def frames(count: int) -> list[RecordedFrame]:
    random = np.random.default_rng(5)
    return [
        RecordedFrame(
            outputs={
                "/head/cat_output_0": random.random((2, 7, 85)).astype(np.float16),
                "count": np.array([i, -i], np.int32),
            },
            sizes=np.array([[480, 640 + i], [0, 0]], np.int32),
        )
        for i in range(count)
    ]


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "bug.npz"
    save_recording(path, info=INFO, frames=iter(frames(3)))
    return path


def test_frames_come_back_bit_for_bit_and_in_order(recording):
    engine = open_engine(recording, gpu=False)
    engine = engine.at({"images": (2, 3, 32, 64)})
    assert engine.info.outputs == INFO.outputs
    for i, frame in enumerate(frames(3)):
        outputs = engine.run({})
        for name, array in frame.outputs.items():
            assert outputs[name].dtype == array.dtype
            np.testing.assert_array_equal(outputs[name], array)
        np.testing.assert_array_equal(engine.sizes[i], frame.sizes)
    assert len(engine) == 3
    assert not engine.needs_inputs
    assert engine.on_device is False


def test_a_gpu_executor_plays_the_same_recording(recording):
    assert open_engine(recording, gpu=True).info.kind == "recorded"


def test_past_the_end_and_again(recording):
    engine = open_engine(recording, gpu=False)
    first = engine.run({})["count"]
    engine.run({})
    engine.run({})
    with pytest.raises(EngineError, match="3 frames were recorded and all have been played"):
        engine.run({})
    engine.rewind()
    np.testing.assert_array_equal(engine.run({})["count"], first)


def test_what_was_recorded_is_kept(recording):
    info = open_engine(recording, gpu=False).info
    assert (info.kind, info.path) == ("recorded", str(recording))
    assert (info.flavour, info.version) == ("tensorrt_rtx", "1.4.0.76")
    assert (info.inputs, info.outputs, info.metadata) == (INFO.inputs, INFO.outputs, INFO.metadata)
    assert info.notes == ("recorded from tensorrt_rtx 1.4.0.76, yolo.engine",)


def test_options_that_change_no_recording_are_told(recording):
    options = BuildOptions(tf32=False, float16=True, batch=2)
    notes = open_engine(recording, gpu=False, options=options).info.notes
    assert notes[1:] == ("without effect: tf32, float16; outputs are as they were recorded",)


def test_other_shapes_than_those_recorded_are_refused(recording):
    engine = open_engine(recording, gpu=False)
    with pytest.raises(EngineError, match=r"takes \[2, 3, 32, 64\], found \[1, 3, 32, 64\]"):
        engine.at({"images": (1, 3, 32, 64)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda outputs: outputs.pop("count"), "expected .*count"),
        (lambda outputs: outputs.update(extra=np.zeros(1)), "has the outputs .*extra"),
        (lambda outputs: outputs.update(count=np.zeros(2, np.int64)), "found int64"),
        (lambda outputs: outputs.update(count=np.zeros(3, np.int32)), r"found int32 \[3\]"),
        (lambda outputs: outputs.update(count=np.array([None, {}])), "found object"),
    ],
)
def test_a_frame_that_is_not_what_the_engine_gives_is_not_recorded(tmp_path, change, message):
    good, bad = frames(2)
    outputs = dict(bad.outputs)
    change(outputs)
    path = tmp_path / "bug.npz"
    with pytest.raises(EngineError, match=f"frame 1 .*{message}"):
        save_recording(path, info=INFO, frames=[good, RecordedFrame(outputs, bad.sizes)])
    assert not path.exists()


def test_nothing_to_record(tmp_path):
    with pytest.raises(EngineError, match="at least one frame"):
        save_recording(tmp_path / "none.npz", info=INFO, frames=[])


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(EngineError, match=r"absent.* cannot be written"):
        save_recording(tmp_path / "absent" / "bug.npz", info=INFO, frames=frames(1))


def test_a_truncated_recording(recording):
    recording.write_bytes(recording.read_bytes()[:-200])
    with pytest.raises(EngineError, match="recording is damaged"):
        open_engine(recording, gpu=False)


def test_a_damaged_recording(recording):
    data = bytearray(recording.read_bytes())
    for at in range(len(data) // 3, len(data) // 3 + 40):
        data[at] ^= 0xFF
    recording.write_bytes(data)
    with pytest.raises(EngineError, match="recording is damaged"):
        open_engine(recording, gpu=False)


def test_pickles_are_not_opened(tmp_path, recording):
    with np.load(recording) as archive:
        arrays = dict(archive)
    np.savez(recording, **{**arrays, "1_1": np.array([print, open])})
    with pytest.raises(EngineError, match="recording is damaged: Object arrays cannot be loaded"):
        open_engine(recording, gpu=False)


def test_another_version_and_another_archive(tmp_path, recording):
    with np.load(recording) as archive:
        arrays = dict(archive)
    head = json.loads(str(arrays["recording"]))
    np.savez(recording, **{**arrays, "recording": np.array(json.dumps({**head, "version": 9}))})
    with pytest.raises(EngineError, match="version 9; this trtpatch reads version 1"):
        open_engine(recording, gpu=False)
    np.savez(tmp_path / "other.npz", boxes=np.zeros(3))
    with pytest.raises(EngineError, match="a NumPy archive, but not a recording"):
        open_engine(tmp_path / "other.npz", gpu=False)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("inputs", 0, "name"), 5),
        (("inputs", 0, "shape"), ["x", 3, 32, 64]),
        (("inputs", 0, "shape"), [2, True, 32, 64]),
        (("outputs", 0, "name"), ["a"]),
        (("outputs", 0, "dtype"), "floaty"),
        (("flavour",), None),
        (("metadata", "names"), [1, 2]),
        (("metadata", "stride"), "32"),
        (("metadata", "extra"), {"task": 3}),
    ],
)
def test_a_head_with_values_of_other_kinds(recording, keys, value):
    arrays = dict(np.load(recording))
    head = json.loads(str(arrays["recording"]))
    place = head["info"]
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    np.savez(recording, **{**arrays, "recording": np.array(json.dumps(head))})
    with pytest.raises(EngineError, match=r"bug\.npz: the recording is damaged"):
        open_engine(recording, gpu=False)


@pytest.mark.parametrize("sizes", [np.int32([480, 640]), np.float32([[480, 640]]), np.int32(5)])
def test_sizes_that_are_none(recording, sizes):
    np.savez(recording, **{**np.load(recording), "sizes_1": sizes})
    with pytest.raises(EngineError, match="frame 1 has .* for the sizes of its pictures"):
        open_engine(recording, gpu=False)


def test_pictures_are_those_of_the_next_frame(recording):
    engine = open_engine(recording, gpu=False)
    engine.check_pictures([(480, 640)])
    with pytest.raises(EngineError, match="picture 2 of recorded frame 1 was none, and this one"):
        engine.check_pictures([(480, 640), (480, 640)])
    engine.run({})
    engine.check_pictures([(480, 641)])
    with pytest.raises(EngineError, match="frame 2 was 641 x 480 px, and this one is 640 x 480 px"):
        engine.check_pictures([(480, 640)])


def test_nothing_is_ever_unpickled(recording, tmp_path):
    class Evil:
        def __reduce__(self):
            return (tmp_path.joinpath("evil").touch, ())

    arrays = dict(np.load(recording))
    for name in ("recording", "sizes_0", "0_0"):
        np.savez(recording, **{**arrays, name: np.array([Evil()], object)})
        with pytest.raises(EngineError, match="the recording is damaged: Object arrays cannot"):
            open_engine(recording, gpu=False)
    assert not (tmp_path / "evil").exists()
