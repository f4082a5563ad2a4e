"""The command line itself: light, quiet about its insides, honest exit codes."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import trtpatch
from tests.full_disk import full_disk
from trtpatch.cli import check, main
from trtpatch.errors import TrtpatchError

COMMANDS = {
    "build",
    "cache",
    "check",
    "compile",
    "doctor",
    "inspect",
    "new",
    "patches",
    "record",
    "run",
    "schema",
    "verify",
}
HEAVY = {"numpy", "pydantic", "yaml", "rich", "cupy", "PIL", "onnxruntime", "tensorrt_rtx"}
SLOW = {"dataclasses", "logging", "traceback", "json", "subprocess", "tempfile"}
"""Of the standard library, a millisecond or more each, and click does without."""


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trtpatch", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_help_lists_every_command() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    listed = result.stdout.partition("Commands:")[2].splitlines()
    assert {line.split()[0] for line in listed if line.strip()} == COMMANDS
    assert not [line for line in listed if line.strip() and len(line.split()) < 3], "no help"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([c, "-h"] for c in COMMANDS)])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom trtpatch.cli import main\n"
        f"try: main({arguments!r}, prog_name='trtpatch')\n"
        "except SystemExit as end: assert not end.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stderr.split()}
    assert "click" in loaded
    assert not loaded & HEAVY
    if arguments[0] not in COMMANDS:
        assert not loaded & SLOW


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_command_help_shows_the_common_options(command: str) -> None:
    text = invoke(command, "--help").stdout
    assert text.count("--debug") == 1
    assert text.count("--verbose") == 1
    assert "--version" not in text


def test_as_a_module() -> None:
    run = process("--version")
    assert run.returncode == 0
    assert run.stdout.startswith("trtpatch 0.")


def test_a_misspelt_command_is_guessed() -> None:
    result = invoke("chekc")
    assert result.exit_code == 2
    assert "Did you mean 'check'?" in result.stderr


def test_a_misspelt_option_is_guessed() -> None:
    result = invoke("run", "p.yaml", "a.jpg", "--jason", "x")
    assert result.exit_code == 2
    assert "--json" in result.stderr


def fail_with(error: BaseException) -> Callable[..., None]:
    def run(**_: object) -> None:
        raise error

    return run


@pytest.mark.parametrize("where", ["before", "after", "environment", "nowhere"])
def test_an_error_shows_its_traceback_only_when_asked(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check.command, "callback", fail_with(TrtpatchError("a plain word")))
    if where == "environment":
        monkeypatch.setenv("TRTPATCH_DEBUG", "1")
    before = ["--debug"] if where == "before" else []
    after = ["--debug"] if where == "after" else []
    result = invoke(*before, "check", "p.yaml", *after)
    assert result.exit_code == 2
    assert result.stderr.endswith("error: a plain word\n")
    assert ("Traceback" in result.stderr) == (where != "nowhere")
    assert not result.stdout


@pytest.mark.parametrize("debug", [True, False])
def test_any_other_exception_is_a_bug(debug: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check.command, "callback", fail_with(ZeroDivisionError("oh")))
    result = invoke("check", "p.yaml", *(["--debug"] if debug else []))
    assert result.exit_code == 1
    assert "a bug in trtpatch: ZeroDivisionError: oh" in result.stderr
    assert ("Traceback" in result.stderr) == debug
    assert ("Run again with --debug" in result.stderr) != debug


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BrokenPipeError()], ids=repr)
def test_interrupts_end_quietly(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check.command, "callback", fail_with(error))
    result = invoke("check", "p.yaml")
    assert result.exit_code == 130
    assert not result.output


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send to a process")
def test_ctrl_c_in_a_real_process(tmp_path: Path) -> None:
    fifo = tmp_path / "p.yaml"
    os.mkfifo(fifo)  # reading the pipeline file waits for somebody to write it
    command = [sys.executable, "-m", "trtpatch", "check", str(fifo)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        writer = fifo.open("wb")  # opens once the other side reads
        run.send_signal(signal.SIGINT)
        output = run.communicate(timeout=60)
        writer.close()
    assert run.returncode == 130
    assert output == (b"", b"")


def test_a_closed_pipe_in_a_real_process() -> None:
    command = [sys.executable, "-m", "trtpatch", "schema", "patch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        said = run.stderr.read()
    assert run.returncode == 130
    assert said == b""


@pytest.mark.parametrize("verbose", [True, False])
def test_log_lines_go_to_stderr(verbose: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(**_: object) -> None:
        logging.getLogger("trtpatch.engines").warning("look %s", "out")
        logging.getLogger("trtpatch.engines").info("by the way")
        logging.getLogger("trtpatch.engines").debug("never mind")

    monkeypatch.setattr(check.command, "callback", run)
    result = invoke("check", "p.yaml", *(["-v"] if verbose else []))
    assert result.exit_code == 0
    lines = ["warning: look out", *(["info: by the way"] if verbose else [])]
    assert result.stderr.splitlines() == lines
    assert not logging.getLogger("trtpatch").handlers


def test_a_report_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["verify", "select_nms", "--executor", "gpu", "--case", "chain", "--junit"]
    with full_disk():
        result = invoke(*arguments, "out.xml")
    assert result.exit_code == 2
    assert "error: out.xml: cannot be written: File too large" in result.output
    result = invoke(*arguments, ".")
    assert result.exit_code == 2
    assert "error: .: cannot be written: Is a directory" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "run p.yaml a.jpg --json --save out.png",
            "--json takes a file, or - to print; found '--s",
        ),
        ("run p.yaml a.jpg --jsonl --time", "--jsonl takes a file, or - to print; found '--time'"),
        ("run p.yaml a.jpg --save --json", "--save takes a path; found '--json'"),
        ("build model.onnx -o --float16", "--output takes a path; found '--float16'"),
        ("compile p.yaml --arch sm_75 -o --json", "--output takes a path; found '--json'"),
        ("record p.yaml a.jpg -o --executor", "--output takes a path; found '--executor'"),
        ("verify --junit --json", "--junit takes a path; found '--json'"),
        ("new mine --kind decode --dir --debug", "--dir takes a path; found '--debug'"),
        ("new mine --kind --dir x", "--kind takes a kind of patches; found '--dir'"),
        ("run p.yaml a.jpg --set --json", "--set takes a name and a number; found '--json'"),
        ("patches --registry --rules", "--registry takes a path; found '--rules'"),
    ],
)
def test_an_option_does_not_swallow_the_next(arguments: str, said: str) -> None:
    result = invoke(*arguments.split())
    assert result.exit_code == 2
    assert said in result.stderr


def test_names_that_are_imported_late_can_be_completed() -> None:
    assert {*trtpatch.__all__} <= {*dir(trtpatch)}
