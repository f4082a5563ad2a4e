"""What trtpatch logs, as the command line shows it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


class _Stderr(logging.Handler):
    """Log records as lines such as `warning: ...`."""

    def __init__(self, verbose: Callable[[], bool]) -> None:
        super().__init__()
        self._verbose = verbose

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= (logging.INFO if self._verbose() else logging.WARNING):
            click.echo(f"{record.levelname.lower()}: {record.getMessage()}", err=True)


@contextmanager
def logs_on_stderr(verbose: Callable[[], bool]) -> Iterator[None]:
    """Show warnings inside the block; what is less grave, too, while `verbose` is true."""
    logger, handler = logging.getLogger("trtpatch"), _Stderr(verbose)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
