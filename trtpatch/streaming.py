"""Results in order while the next pictures are under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from trtpatch.results import Results


class Stream(Iterator[Any]):
    """One result a picture, in order; batches are started ahead of the one that is given.

    Where a picture cannot be used, or taking one fails, that is raised when its turn comes, and
    the `next` after it goes on with the next picture, or ends.
    """

    def __init__(
        self,
        images: Iterable[Any],
        start: Callable[[list[Any]], Results],
        *,
        batch: int,
        depth: int,
        goes_on: bool = True,
    ) -> None:
        """Start nothing yet.

        Args:
            images: pictures, taken from the iterable as they are needed.
            start: puts a batch under way without waiting for it.
            batch: pictures a batch.
            depth: batches under way at once; 1 waits for each before the next.
            goes_on: whether there may be more after a picture that cannot be used.
        """
        self._start = start
        self._batch = batch
        self._depth = depth
        self._alone: deque[Any] = deque()  # of a batch that one of them has spoilt
        self._under_way: deque[Results | Exception] = deque()
        self._goes_on = goes_on
        self._given: Sequence[Any] = ()
        self._turn = 0  # of those that are given
        self._pictures = _each(iter(images))

    def __next__(self) -> Any:
        if self._turn < len(self._given):
            self._turn += 1
            return self._given[self._turn - 1]
        while len(self._under_way) < self._depth and self._start_one():
            pass
        if not self._under_way:
            raise StopIteration
        first = self._under_way.popleft()
        if isinstance(first, Exception):
            raise first
        self._given, self._turn = first, 0
        return next(self)

    def _start_one(self) -> bool:
        """Put a batch, or what is wrong with it, under way; False where there is none left."""
        again = [self._alone.popleft()] if self._alone else []
        chunk = again or list(islice(self._pictures, self._batch))
        if not chunk:
            return False
        try:
            for failure in (one for one in chunk if isinstance(one, Exception)):
                raise failure
            results = self._start(chunk)
            results.prefetch()
        except Exception as error:
            if not self._goes_on:
                self._pictures = iter(())
                self._under_way.append(error)
            elif len(chunk) > 1:
                self._alone.extend(chunk)
            else:
                self._under_way.append(error)
        else:
            self._under_way.append(results)
        return True

    def close(self) -> None:
        """Drop the rest; waits for what is under way."""
        self._pictures, self._given = iter(()), ()
        self._alone.clear()
        while self._under_way:
            results = self._under_way.popleft()
            if isinstance(results, Results):
                results.wait()

    def __del__(self) -> None:
        self.close()


def _each(pictures: Iterator[Any]) -> Iterator[Any]:
    """The pictures; where taking one fails, the error in its place."""
    while True:
        try:
            yield next(pictures)
        except StopIteration:
            return
        except Exception as error:
            yield error
