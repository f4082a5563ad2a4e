"""Which rule fits an engine: real exporters' shapes against the built-in registry."""

import re
from pathlib import Path

import pytest

from trtpatch.catalog import Catalog
from trtpatch.engines import Tensor
from trtpatch.engines.metadata import read_metadata
from trtpatch.errors import MatchError, SpecError
from trtpatch.match import fit, match, match_chain
from trtpatch.params import check_params
from trtpatch.spec.patch import ParamValue


def tensor(name: str, *shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(name, dtype, shape)


IMAGE_640 = [tensor("images", 1, 3, 640, 640)]


@pytest.mark.parametrize(
    ("inputs", "output", "rule"),
    [
        ([tensor("images", 1, 3, 416, 416)], (1, 3549, 85), "yolox"),
        (IMAGE_640, (1, 8400, 85), "yolox"),
        (IMAGE_640, (1, 25200, 85), "yolov5"),
        ([tensor("images", 1, 3, 1280, 1280)], (1, 102000, 85), "yolov5"),  # P6, four levels
        (IMAGE_640, (1, 84, 8400), "yolov8"),  # fits [N, A, 5 + C] as well: A > C decides
        (IMAGE_640, (1, 5, 8400), "yolov8"),  # one class
        ([tensor("images", 8, 3, 320, 640)], (8, 84, 4200), "yolov8"),
    ],
)
def test_the_shape_decides(inputs: list[Tensor], output: tuple[int, ...], rule: str) -> None:
    found = match(Catalog().rules, inputs, [tensor("out", *output)])
    assert found.rule is not None
    assert found.rule.spec.name == rule
    assert found.outputs == {"head": ("out",)}
    assert found.inputs == {"image": ("images",)}


def test_prototypes_tell_masks_from_classes() -> None:
    outputs = [tensor("output0", 1, 116, 8400), tensor("output1", 1, 32, 160, 160)]
    found = match(Catalog().rules, IMAGE_640, outputs)
    assert found.rule is not None
    assert found.rule.spec.name == "yolov8_seg"
    assert found.symbols["C"] == 80


def test_an_output_that_is_left_over_is_named() -> None:
    outputs = [tensor("output0", 1, 84, 8400), tensor("depth", 1, 160, 160)]
    with pytest.raises(MatchError) as caught:
        match(Catalog().rules, IMAGE_640, outputs)
    message = str(caught.value)
    assert "no rule fits this engine" in message
    assert "output0 float32 [1, 84, 8400]" in message
    assert "depth float32 [1, 160, 160] is left over" in message
    assert "takes images float32 [1, 3, 640, 640]" in message
    assert "yolov8 (" in message
    assert "yunet (" not in message


def registry(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "registry.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_two_rules_that_fit_are_both_shown(tmp_path: Path) -> None:
    rule = "  - name: {}\n    outputs: {{head: [N, 4 + C, A]}}\n    chain: [engine, a]\n"
    path = registry(tmp_path, "rules:\n" + rule.format("mine") + rule.format("other"))
    with pytest.raises(MatchError) as caught:
        match(Catalog([path]).rules, IMAGE_640, [tensor("o", 1, 84, 8400)])
    assert "2 rules fit this engine" in str(caught.value)
    assert re.search(rf"  rule: mine # head \[N, 4 \+ C, A\]: .*\({path}:2\)", str(caught.value))
    assert re.search(rf"  rule: other # .*\({path}:5\)", str(caught.value))


@pytest.mark.parametrize("metadata", [{}, {"task": "pose", "kpt_shape": "[17, 3]"}])
def test_a_rule_of_the_users_own_goes_before_built_in_ones(
    tmp_path: Path, metadata: dict[str, str]
) -> None:
    path = registry(
        tmp_path,
        "rules:\n  - name: mine\n    outputs: {head: [N, 4 + C, A]}\n    chain: [engine, a]\n",
    )
    outputs = [tensor("o", 1, 56, 8400)]
    found = match(Catalog([path]).rules, IMAGE_640, outputs, read_metadata(metadata))
    assert found.chain == ("engine", "a")
    assert [rule.spec.name for rule in found.behind] == ["yolov8", "yolov8_pose"]


def test_where_none_fits_the_users_own_rules_are_shown_first(tmp_path: Path) -> None:
    path = registry(
        tmp_path,
        "rules:\n  - name: mine\n    outputs: {head: [N, 5, 5, 5, 5]}\n    chain: [engine, a]\n",
    )
    with pytest.raises(MatchError) as caught:
        match(Catalog([path]).rules, [tensor("nhwc", 1, 8, 8, 3)], [tensor("o", 1, 84, 8400)])
    lines = str(caught.value).splitlines()
    assert lines[1:3] == ["  takes nhwc float32 [1, 8, 8, 3]", "  gives o float32 [1, 84, 8400]"]
    assert lines[4] == f"  mine ({path}:2): head: none has 5 axes (head [N, 5, 5, 5, 5])"
    assert any(line.startswith("  yolov8 (built-in registry.yaml:") for line in lines[5:8])


@pytest.mark.parametrize("batch", [(1,), ()])
def test_a_postprocessed_detr_is_nearest_to_detr(batch: tuple[int, ...]) -> None:
    inputs = [*IMAGE_640, tensor("orig_target_sizes", 1, 2, dtype="int64")]
    labels, scores = tensor("labels", *batch, 300, dtype="int64"), tensor("scores", *batch, 300)
    with pytest.raises(MatchError) as caught:
        match(Catalog().rules, inputs, [labels, tensor("boxes", *batch, 300, 4), scores])
    nearest = str(caught.value).splitlines()[7]
    assert re.fullmatch(
        r"  detr \(built-in registry\.yaml:\d+\): wants 2 outputs, not 3"
        r" \(logits \[N, Q, C\]; boxes \[N, Q, 4\]\)",
        nearest,
    )


@pytest.mark.parametrize(
    ("outputs", "rule", "reason"),
    [
        (
            [tensor("o", 1, 8401, 85)],
            "yolox",
            "'1024 .*' does not hold: A = 8401, H = 640, W = 640",
        ),
        ([tensor("o", 1, 5, 40, 41)], "fastestdet", "'model_W == 16 \\* W' does not hold"),
        (
            [tensor(f"{c}{n}", 1, n, c) for n in (6400, 1600, 400) for c in (80, 31)],
            "nanodet",
            r"boxes is not 316400 float32 \[1, 6400, 31\]: axis 2 is 31, not 32 \(",
        ),
        (
            [tensor(f"cls_{n}", 1, n, 1) for n in (6400, 1600, 400, 100)],
            "nanodet",
            "boxes is not cls_6400 ",
        ),
    ],
)
def test_the_nearest_rule_says_what_is_in_the_way(
    outputs: list[Tensor], rule: str, reason: str
) -> None:
    with pytest.raises(MatchError) as caught:
        match(Catalog().rules, IMAGE_640, outputs)
    assert re.search(rf"shows all\):\n  {rule} \(built-in [^)]*\): {reason}", str(caught.value))


def test_a_rule_of_the_same_name_replaces_the_built_in_one(tmp_path: Path) -> None:
    path = registry(
        tmp_path,
        "rules:\n  - name: yolov8\n    outputs: {head: [N, 4 + C, A]}\n    chain: [engine, a]\n",
    )
    found = match(Catalog([path]).rules, IMAGE_640, [tensor("o", 1, 84, 8400)])
    assert found.chain == ("engine", "a")


def test_a_registry_that_names_no_folder(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"registry.yaml:1:11: folder of patches .* is not there"):
        Catalog([registry(tmp_path, "patches: [nowhere]\n")])


def test_names_that_are_not_there_are_answered_with_the_nearest() -> None:
    catalog = Catalog()
    with pytest.raises(MatchError, match="Did you mean 'yolox'"):
        catalog.rule("yolx")
    with pytest.raises(MatchError, match="Did you mean 'select_nms'"):
        catalog.patch("select_nmss")


GROUPS = """\
rules:
  - name: levels
    outputs:
      boxes: {shape: [N, 4 * R, H, W], levels: [H, W], tensor: "*cv2*"}
      scores: {shape: [N, C, H, W], levels: [H, W], tensor: "*cv3*"}
    chain: [engine, a]
"""


def test_a_group_takes_its_levels_largest_first(tmp_path: Path) -> None:
    outputs = [
        tensor("cv2.2", 1, 64, 20, 20),
        tensor("cv3.0", 1, 80, 80, 80),
        tensor("cv2.0", 1, 64, 80, 80),
        tensor("cv3.2", 1, 80, 20, 20),
        tensor("cv2.1", 1, 64, 40, 40),
        tensor("cv3.1", 1, 80, 40, 40),
    ]
    rule = Catalog([registry(tmp_path, GROUPS)]).rule("levels")
    found = fit(rule, IMAGE_640, outputs)
    assert found.outputs["boxes"] == ("cv2.0", "cv2.1", "cv2.2")
    assert found.outputs["scores"] == ("cv3.0", "cv3.1", "cv3.2")


COLUMNS = """\
rules:
  - name: masks
    outputs: {protos: [N, K, h, w], head: [N, 4 + C + K, A]}
    chain: [resize_letterbox, engine, decode_yolov8, select_nms]
    params: {decode_yolov8: {K: K, score_threshold: 0.5}, select_nms: {max_detections: 2 * K + 1}}
"""


def test_whole_numbers_of_a_rule_may_be_expressions_of_its_symbols(tmp_path: Path) -> None:
    catalog = Catalog([registry(tmp_path, COLUMNS)])
    rule = catalog.rule("masks")
    found = fit(rule, IMAGE_640, [tensor("a", 1, 116, 8400), tensor("b", 1, 32, 160, 160)])
    assert found.outputs == {"protos": ("b",), "head": ("a",)}
    patches = [catalog.patch(name) for name in found.chain if name != "engine"]
    values: dict[str, dict[str, ParamValue]] = {}
    given = rule.spec.params
    check_params(rule.document, rule.location, given, patches, into=values, symbols=found.symbols)
    assert values["decode_yolov8"] == {"K": 32, "score_threshold": 0.5}
    assert values["select_nms"] == {"max_detections": 65}
    with pytest.raises(SpecError, match="expected a whole number, found 'K'"):
        check_params(rule.document, rule.location, given, patches, into={})
    with pytest.raises(SpecError, match=r"yaml:5:33: decode_yolov8: K: .* has no value"):
        check_params(rule.document, rule.location, given, patches, into={}, symbols={})


def test_a_chain_binds_by_the_contracts_or_by_name() -> None:
    catalog = Catalog()
    chain = ("resize_letterbox", "engine", "decode_yolov8", "select_nms")
    patches = [catalog.patch(name) for name in chain if name != "engine"]
    outputs = [tensor("a", 1, 84, 8400), tensor("b", 1, 84, 8400)]
    with pytest.raises(MatchError) as caught:
        match_chain(chain, patches, {}, IMAGE_640, outputs)
    assert str(caught.value).endswith(":\n  bind: {head: a}\n  bind: {head: b}")
    found = match_chain(chain, patches, {"head": ["b"]}, IMAGE_640, outputs)
    assert found.outputs == {"head": ("b",)}
    with pytest.raises(MatchError, match="'bind' names 'heads'.* Did you mean 'head'"):
        match_chain(chain, patches, {"heads": ["b"]}, IMAGE_640, outputs)
    with pytest.raises(MatchError, match="'bind' gives head 'c', which the engine has not"):
        match_chain(chain, patches, {"head": ["c"]}, IMAGE_640, outputs)


def test_each_contract_of_a_chain_has_symbols_of_its_own() -> None:
    catalog = Catalog()
    chain = ("resize_letterbox", "engine", "decode_yolov8", "gather_columns", "mask_yolo")
    patches = [catalog.patch(name) for name in chain if name != "engine"]
    outputs = [tensor("a", 1, 116, 8400), tensor("b", 1, 32, 160, 160)]  # H is 640 and 160
    found = match_chain(chain, patches, {}, IMAGE_640, outputs)
    assert found.outputs == {"head": ("a",), "protos": ("b",)}
    with pytest.raises(MatchError, match=r"wants image .*; head .*; protos"):
        match_chain(chain, patches, {}, IMAGE_640, [outputs[0], tensor("b", 2, 32, 160, 160)])


def test_a_raw_output_for_a_chain_that_wants_five_tensors(tmp_path: Path) -> None:
    names = ["boxes", "scores", "classes", "count", "extra"]
    wanted = ", ".join(f"{name}: [N, {i + 2}]" for i, name in enumerate(names))
    path = registry(
        tmp_path, f"rules:\n  - name: five\n    outputs: {{{wanted}}}\n    chain: [engine, a]\n"
    )
    with pytest.raises(MatchError) as caught:
        fit(Catalog([path]).rule("five"), IMAGE_640, [tensor("output0", 1, 84, 8400)])
    assert "boxes [N, 2]; scores [N, 3]" in str(caught.value)


def test_a_usual_value_of_what_no_shape_has(tmp_path: Path) -> None:
    rule = "{name: mine, outputs: {head: [N, C]}, chain: engine, usual: {D: 3}}"
    with pytest.raises(SpecError, match=r"registry.yaml:1:\d+: usual: no shape has D"):
        Catalog([registry(tmp_path, f"rules: [{rule}]\n")])
