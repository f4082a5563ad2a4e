"""Results in order while the next pictures are under way."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from trtpatch.results import Results


def stream_results(
    images: Iterable[Any], start: Callable[[list[Any]], Results], *, batch: int, depth: int
) -> Iterator[Any]:
    """Start batches ahead of the one whose results are given.

    Args:
        images: pictures, taken from the iterable as they are needed.
        start: puts a batch under way without waiting for it.
        batch: pictures a batch.
        depth: batches under way at once; 1 waits for each before the next.

    Yields:
        One result a picture, in order. Closing the iterator early drops the rest; where `images`
        or a picture fails, all results before come first.
    """
    under_way: deque[Results] = deque()
    pictures = iter(images)
    try:
        while True:
            try:
                chunk = list(itertools.islice(pictures, batch))
                if not chunk:
                    break
                results = start(chunk)
            except Exception:  # what was found before it is right all the same
                while under_way:
                    yield from under_way.popleft()
                raise
            results.prefetch()
            under_way.append(results)
            if len(under_way) >= depth:
                yield from under_way.popleft()
        while under_way:
            yield from under_way.popleft()
    finally:
        for results in under_way:
            results.wait()
