"""Which rule real heads go to: names and shapes as exporters and authors write them."""

import pytest

from trtpatch.catalog import Catalog
from trtpatch.engines import Tensor
from trtpatch.errors import MatchError, SpecError
from trtpatch.match import match, match_chain

GRID = (80, 40, 20)


def tensor(name, *shape):
    return Tensor(name, "float32", shape)


def maps(pattern, channels, sizes=GRID):
    """One map a level; `pattern` has the level's number as {i}."""
    return [tensor(pattern.format(i=i), 1, channels, n, n) for i, n in enumerate(sizes)]


def rows(pattern, columns, sizes=(8, 16, 32), model=640):
    """One tensor a stride; `pattern` has the stride as {s}."""
    return [tensor(pattern.format(s=s), 1, (model // s) ** 2, columns) for s in sizes]


def convolutions(module, bins=16, classes=80, prefix=""):
    boxes, scores = (
        f"/model.{module}/{prefix}cv{k}.{{i}}/{prefix}cv{k}.{{i}}.2/Conv" for k in "23"
    )
    return maps(f"{boxes}_output_0", 4 * bins) + maps(f"{scores}_output_0", classes)


NANODET = [
    *(tensor(name, 1, n, 80) for name, n in (("792", 2704), ("814", 676), ("836", 169))),
    *(tensor(name, 1, n, 32) for name, n in (("795", 2704), ("817", 676), ("839", 169))),
]
YUNET = rows("cls_{s}", 1) + rows("obj_{s}", 1) + rows("bbox_{s}", 4) + rows("kps_{s}", 10)


@pytest.mark.parametrize(
    ("rule", "size", "outputs"),
    [
        ("yolov8_split", (640, 640), convolutions("22")),
        ("yolov8_split", (640, 640), convolutions("23", classes=64)),  # names tell them apart
        ("yolov8_split", (640, 640), convolutions("23", bins=1)),
        ("yolo_one2one", (640, 640), convolutions("23", prefix="one2one_")),
        ("yolo_one2one", (640, 640), convolutions("23", bins=1, prefix="one2one_")),
        ("yolov8_seg", (640, 640), [tensor("o0", 1, 116, 8400), tensor("o1", 1, 32, 160, 160)]),
        ("yolov8_seg", (320, 640), [tensor("o1", 1, 32, 80, 160), tensor("o0", 1, 37, 4200)]),
        ("yolov8_seg_split", (640, 640), [
            *convolutions("22"), *maps("/model.22/cv4.{i}/cv4.{i}.2/Conv_output_0", 32),
            tensor("output1", 1, 32, 160, 160),
        ]),
        ("end2end_seg", (640, 640), [tensor("o0", 1, 300, 38), tensor("o1", 1, 32, 160, 160)]),
        ("yolov8_raw", (640, 640), maps("/model.22/Concat_{i}_output_0", 144)),
        ("yolov5_raw", (640, 640), maps("/model.24/m.{i}/Conv_output_0", 255)),
        ("yolov7_raw", (640, 640), maps("/model.105/m.{i}/Conv_output_0", 255)),
        ("yolo_fastest", (320, 320), [
            tensor("head_stride32", 1, 255, 10, 10), tensor("head_stride16", 1, 255, 20, 20),
        ]),
        ("end2end", (640, 640), [tensor("output0", 1, 300, 6)]),
        ("end2end", (320, 320), [tensor("output0", 1, 300, 6)]),
        ("yolov5", (640, 640), [tensor("output0", 1, 25200, 6)]),  # one class
        ("yolov5", (320, 320), [tensor("output0", 1, 1500, 85)]),  # v3-tiny
        ("detr", (640, 640), [tensor("logits", 1, 300, 80), tensor("boxes", 1, 300, 4)]),
        ("detr", (320, 320), [
            tensor("/decoder/Gather_6_output_0", 1, 100, 4),
            tensor("/decoder/Gather_5_output_0", 1, 100, 80),
        ]),
        ("nanodet", (416, 416), NANODET),
        ("rtmdet", (640, 640), [
            *maps("/bbox_head/rtm_cls.{i}/Conv_output_0", 80), *maps("/bbox_head/Mul_{i}", 4),
        ]),
        ("fastestdet", (352, 352), [tensor("758", 1, 85, 22, 22)]),
        ("yunet", (640, 640), YUNET),
    ],
)  # fmt: skip
def test_the_rule_of_a_head(rule, size, outputs):
    catalog = Catalog()
    found = match(catalog.rules, [tensor("input", 1, 3, *size)], outputs)
    assert found.rule.spec.name == rule
    assert all(name == "engine" or catalog.patch(name) for name in found.chain)
    levels = {name: len(group) for name, group in found.outputs.items()}
    assert sum(levels.values()) == len(outputs)


@pytest.mark.parametrize(
    "outputs",
    [
        maps("/model.77/m.{i}/Conv_output_0", 255),  # YOLOv7-tiny: other anchor boxes
        [tensor("output", 1, 8500, 112)],  # NanoDet-Plus: no word on the picture that it wants
        [tensor("output0", 1, 8400, 4, 2)],
        maps("out{i}", 255),
    ],
)
def test_no_guess_where_anchor_boxes_or_pictures_are_unknown(outputs):
    with pytest.raises(MatchError, match="no rule fits this engine"):
        match(Catalog().rules, [tensor("input", 1, 3, 640, 640)], outputs)


@pytest.mark.parametrize(("size", "anchors"), [((240, 320), 4420), ((480, 640), 17640)])
def test_decoded_boxes_of_the_same_shape_are_asked_for(size, anchors):
    outputs = [tensor("scores", 1, anchors, 2), tensor("boxes", 1, anchors, 4)]
    with pytest.raises(MatchError) as caught:
        match(Catalog().rules, [tensor("input", 1, 3, *size)], outputs)
    for rule in ("ulfd", "ulfd_decoded"):
        assert f"\n  rule: {rule} # scores [N, A, 2], boxes [N, A, 4]: " in str(caught.value)


def bound(outputs, **bind):
    chain = ("resize_letterbox", "engine", "decode_yolov8_split", "select_nms")
    patches = [Catalog().patch(name) for name in chain if name != "engine"]
    return match_chain(chain, patches, bind, [tensor("images", 1, 3, 640, 640)], outputs).outputs


def test_groups_are_told_apart_by_what_their_tensors_agree_on():
    found = bound([*maps("a{i}", 81), *maps("b{i}", 64)])
    assert found == {"boxes": ("b0", "b1", "b2"), "classes": ("a0", "a1", "a2")}
    outputs = [*maps("a{i}", 80), *maps("b{i}", 64)]  # 20 bins of 64 classes, or 16 of 80
    with pytest.raises(MatchError) as caught:
        bound(outputs)
    assert "\n  bind: {boxes: [b0, b1, b2], classes: [a0, a1, a2]}" in str(caught.value)
    for classes in (["a*"], ["a0", "a1", "a2"]):
        found = bound(outputs, classes=classes)
        assert found == {"boxes": ("b0", "b1", "b2"), "classes": ("a0", "a1", "a2")}
    with pytest.raises(MatchError, match="gives classes 'c2'.* has not. Did you mean '.2'"):
        bound(outputs, classes=["a0", "a1", "c2"])


def test_a_name_that_does_not_go_with_the_others_of_a_group():
    outputs = [*maps("a{i}", 80), *maps("b{i}", 64), tensor("odd", 1, 81, 40, 40)]
    with pytest.raises(MatchError, match=r"'bind' gives classes odd .* not go with the others"):
        bound(outputs, classes=["a0", "a1", "a2", "odd"], boxes=["b*"])


def test_groups_that_share_their_levels_must_have_the_same():
    with pytest.raises(MatchError, match="wants"):
        bound([*maps("a{i}", 81), *maps("b{i}", 64, (80, 40))])


def test_a_condition_on_what_no_shape_has(tmp_path):
    (tmp_path / "r.yaml").write_text(
        "rules:\n  - {name: mine, outputs: {head: [N, C, A]}, chain: engine, where: Areas > C}\n"
    )
    with pytest.raises(
        SpecError, match=r"r.yaml:2:5: where: 'Areas > C': no shape has Areas\. Known"
    ):
        Catalog([tmp_path / "r.yaml"])
