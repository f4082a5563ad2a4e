"""The Python files of a patch: run as modules, and what goes wrong in them with its line."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType

from trtpatch.errors import TrtpatchError, VerifyError


def run_script(path: Path, name: str) -> ModuleType:
    """Run a file as a module of some name.

    Raises:
        VerifyError: it does not run.
    """
    module = ModuleType(name)
    module.__file__ = str(path)
    with telling_the_line(path):
        # Not by importlib: its cache of bytecode misses a second edit within one second.
        exec(_compiled(path.read_bytes(), str(path)), module.__dict__)
    return module


@contextmanager
def telling_the_line(path: Path) -> Iterator[None]:
    """Calls into a file that was run.

    Raises:
        VerifyError: they raised something, which is told with the line of the file that led there.
    """
    try:
        yield
    except TrtpatchError:
        raise
    except (Exception, SystemExit) as error:
        line = _line(error, path)
        place = f"{path}:{line}" if line else f"{path}"
        said = error.msg if isinstance(error, SyntaxError) else error
        raise VerifyError(f"{place}: {type(error).__name__}: {said}", line=line) from error


def _line(error: BaseException, path: Path) -> int:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 0
    calls = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in calls if frame.f_code.co_filename == str(path)]
    return lines[-1] if lines else 0


@lru_cache(maxsize=128)
def _compiled(source: bytes, path: str) -> CodeType:
    return compile(source, path, "exec")
