"""The command line, run within the test's own process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from trtpatch.cli import main


def invoke(*arguments: str, code: int = 0) -> Result:
    """Run `trtpatch` with arguments, which must end it with that code and with no traceback."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result
