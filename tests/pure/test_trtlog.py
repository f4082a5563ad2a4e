"""TensorRT's own words, as its libraries (lean 11.4, RTX 1.4) hold them, and what they mean."""

import logging
from types import SimpleNamespace

import pytest

from trtpatch.engines.trtlog import Log, explain, quote

GPU = "The engine plan file is generated on an incompatible device, expecting compute 8.6 got "
LINES = {
    "the plugin 'EfficientNMS_TRT'": (
        "IPluginRegistry::getCreator: Error Code 4: API Usage Error (Cannot find plugin: "
        "EfficientNMS_TRT, version: 1, namespace:.)"
    ),
    "a GPU of compute capability 8.6, and this one has 9.0": f"{GPU}compute 9.0, please rebuild.",
    "capability 8.0 or later": (
        "The current device is not compatible with this hardware-compatible engine. "
        "Expected compute capability >= 8.0 but got compute capability = 7.5"
    ),
    "by another version of TensorRT": (
        "The engine plan file is not compatible with this version of TensorRT, expecting library "
        "version 10.16.1.11 got 10.3.0.26, please rebuild."
    ),
    "another version of TensorRT. Build": (
        "The engine has been created with TensorRT-RTX version 1.7.1.116, but the current runtime "
        "is TensorRT-RTX version 1.4.0.76. Rebuild the engine with the same version"
    ),
    "no plan of this flavour": (
        "Serialization assertion header.magicTag == kEXPECTED_MAGIC_TAG failed.Trying to load an "
        "engine created with incompatible"
    ),
    "truncated or damaged": "Serialization assertion plan.header.size == blobSize failed.",
    "another operating system": (
        "Platform specific tag mismatch detected. TensorRT plan files are only supported on the "
        "target runtime platform they were created on."
    ),
    "NVIDIA_TF32_OVERRIDE is 0, unset it": (
        "ICudaEngine::createExecutionContext: Error Code 1: Myelin ([myelin_graph.h:1250: "
        "attachExceptionMsgToGraph] MyelinCheckException: cudnn_graph_utils.h:405: CHECK(false) "
        "failed. cuDNN graph compilation failed.)"
    ),
    "TF32 TensorRT-RTX 1.4 has none for some": (
        "IExecutionContext::enqueueV3: Error Code 1: Myelin ([cudnn_graph.cpp:351: exec_impl] In "
        "ixn_cudnn_graph_params_t `conv:insn:Conv_0`: In executeMyelinGraph)"
    ),
    "not enough free memory": "Requested size was 45444608 bytes.",
}


@pytest.mark.parametrize("meaning", LINES)
def test_what_tensorrt_says_is_told_in_plain_words(meaning):
    line = LINES[meaning].replace("compute compute", "compute")
    assert meaning in explain(["warning: something else", f"error: {line}"])


def test_what_is_not_understood_is_not_explained():
    assert explain(["error: the sky is falling"]) == ""
    assert explain([]) == ""


def test_the_log_is_quoted_once_each():
    text = quote(["error: a", "error: a", "warning: b"])
    assert text.splitlines() == ["", "TensorRT's log:", "  error: a", "  warning: b"]
    assert "nothing" in quote([])


def test_lines_are_collected_where_they_are_wanted(caplog):
    class ILogger:
        """Stands for TensorRT's: a class to derive from, whose `log` the library calls."""

    log = Log(SimpleNamespace(ILogger=ILogger))

    def say(severity: str, text: str) -> None:
        log.logger.log(SimpleNamespace(name=severity), text)

    with caplog.at_level(logging.INFO, "trtpatch.tensorrt"):
        with log.collect() as lines:
            say("INFO", "all is well")
            say("WARNING", "hm \n")
            say("ERROR", "no")
            say("VERBOSE", "node 1 of 1000")
        say("ERROR", "nobody waits for this")
    assert lines == ["warning: hm", "error: no"]
    assert [record.message for record in caplog.records] == ["hm", "nobody waits for this"]


def test_threads_collect_side_by_side():
    log = Log(SimpleNamespace(ILogger=object))
    first, second = log.collect(), log.collect()
    earlier, later = first.__enter__(), second.__enter__()
    second.__exit__(None, None, None)
    log.logger.log(SimpleNamespace(name="ERROR"), "no")
    first.__exit__(None, None, None)
    assert (earlier, later) == (["error: no"], [])
