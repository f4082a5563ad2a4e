"""What all tests share: the folder of real models, and the rule that CI hides no skipped test."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def assets() -> Path:
    """The folder that TRTPATCH_ASSETS names: `models/`, `images/` and `graphs/`."""
    folder = os.environ.get("TRTPATCH_ASSETS")
    if not folder:
        pytest.skip("TRTPATCH_ASSETS is not set; it names the folder of real models and photos")
    if not (Path(folder) / "models").is_dir():
        pytest.fail(f"TRTPATCH_ASSETS is {folder!r}, which has no folder models/")
    return Path(folder).resolve()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of what is compiled or built, for all tests of a file."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> None:
    """Let what the tests start be interrupted; a shell's background jobs ignore it, heirs too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _unexcused(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tests = _unexcused(terminalreporter.config)
    if tests:
        terminalreporter.section("skipped, which CI does not allow outside tests/gpu", red=True)
        terminalreporter.write("\n".join([*tests, ""]))


def _unexcused(config: pytest.Config) -> list[str]:
    """Tests that CI should have run; a machine without a GPU excuses tests/gpu alone."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("CI"):
        return []
    skipped = (report.nodeid for report in reporter.stats.get("skipped", []))
    return sorted({test for test in skipped if not test.startswith("tests/gpu/")})
