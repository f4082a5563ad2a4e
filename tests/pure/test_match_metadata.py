"""Which rule an engine gets where its metadata say what its head is."""

import pytest

from trtpatch.catalog import Catalog
from trtpatch.engines import Tensor
from trtpatch.engines.metadata import read_metadata
from trtpatch.errors import MatchError
from trtpatch.match import fit, match


def tensor(name: str, *shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(name, dtype, shape)


IMAGE_640 = [tensor("images", 1, 3, 640, 640)]


def pose(task: str = "pose", points: str = "[17, 3]") -> dict[str, str]:
    return {"task": task, "kpt_shape": points}


@pytest.mark.parametrize(
    ("output", "metadata", "rule", "symbols"),
    [
        ((1, 56, 8400), pose(), "yolov8_pose", {"C": 1, "J": 17, "V": 3}),
        ((1, 16, 8400), pose(points="[5, 2]"), "yolov8_pose", {"C": 2, "J": 5, "V": 2}),
        ((1, 56, 8400), {"task": "detect"}, "yolov8", {"C": 52}),
        ((1, 20, 8400), {"task": "obb"}, "yolov8_obb", {"C": 15}),
        ((1, 8, 8400), {"task": "obb"}, "yolov8_obb", {"C": 3}),
        ((1, 300, 57), pose(), "end2end_pose", {"J": 17, "V": 3}),
        ((1, 300, 57), {}, "end2end_pose", {"J": 17, "V": 3}),  # no other rule has such rows
    ],
)
def test_the_metadata_decide_between_heads_of_one_shape(
    output: tuple[int, ...], metadata: dict[str, str], rule: str, symbols: dict[str, int]
) -> None:
    outputs = [tensor("output0", *output)]
    found = match(Catalog().rules, IMAGE_640, outputs, read_metadata(metadata))
    assert found.rule is not None
    assert found.rule.spec.name == rule
    assert symbols.items() <= found.symbols.items()


@pytest.mark.parametrize(("channels", "rule"), [(56, "yolov8_pose"), (20, "yolov8_obb")])
def test_where_they_say_nothing_the_user_is_asked(channels: int, rule: str) -> None:
    outputs = [tensor("output0", 1, channels, 8400)]
    with pytest.raises(MatchError) as caught:
        match(Catalog().rules, IMAGE_640, outputs)
    assert "2 rules fit this engine" in str(caught.value)
    for name in ("yolov8", rule):
        assert f"\n  rule: {name} # " in str(caught.value)
        found = fit(Catalog().rule(name), IMAGE_640, outputs, named=True)
        assert found.symbols["C"] == {"yolov8": channels - 4, "yolov8_pose": 1}.get(name, 15)


def test_a_rule_that_is_named_needs_no_metadata() -> None:
    rule, outputs = Catalog().rule("yolov8_obb"), [tensor("output0", 1, 8, 8400)]
    assert fit(rule, IMAGE_640, outputs, named=True).symbols["C"] == 3
    segments = read_metadata({"task": "segment"})
    assert fit(rule, IMAGE_640, outputs, segments, named=True).symbols["C"] == 3
    with pytest.raises(MatchError, match="wants metadata task: obb; they say segment"):
        fit(rule, IMAGE_640, outputs, segments)
    with pytest.raises(MatchError, match=r"head \[N, 4 \+ C \+ J \* V, A\]"):
        fit(Catalog().rule("yolov8_pose"), IMAGE_640, outputs, named=True)


@pytest.mark.parametrize("points", ["17", "[17]", "[17, 3, 2]", "seventeen", "{}", "[true, null]"])
def test_metadata_that_are_no_shape(points: str) -> None:
    metadata = read_metadata(pose(points=points))
    with pytest.raises(MatchError, match=r"wants metadata kpt_shape: \[J, V\]; they say"):
        fit(Catalog().rule("yolov8_pose"), IMAGE_640, [tensor("o", 1, 56, 8400)], metadata)
