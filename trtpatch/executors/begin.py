"""The kernel that begins a walk: it brings the frame table and zeroes what kernels count in.

One launch does it all, since in a CUDA Graph a copy or a fill costs as much as a small kernel, and
more where the copy engine or another branch has to be waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trtpatch.plan import Launch
from trtpatch.unit import Unit

_PIECES = 16
"""Those of one launch."""
_WORD = 16
_BLOCK = 128
_MOST_BLOCKS = 256
_FILE = Path(__file__).with_suffix(".cu")
_PIECE = np.dtype([("to", np.uint64), ("from", np.uint64), ("words", np.uint64)])
_ARGS = np.dtype([("pieces", _PIECE, (_PIECES,))], align=True)


class Piece(NamedTuple):
    """Memory that is filled when a walk begins.

    Attributes:
        address: on the GPU; a multiple of 16.
        nbytes: as many are filled, and up to 15 more.
        source: address of what it is filled with, in pinned host memory; 0 where zeros are wanted.
    """

    address: int
    nbytes: int
    source: int = 0


def begin_unit() -> Unit:
    """The kernel's text, to be compiled as those of patches are."""
    constants = f"constexpr int PIECES = {_PIECES};\n"
    text = _FILE.read_text(encoding="utf-8")
    return Unit(
        name=_FILE.stem,
        text=f'{constants}#line 1 "trtpatch/executors/{_FILE.name}"\n{text}',
        options=(),
        entries=(_FILE.stem,),
        fast_math=False,
        args_dtype=_ARGS,
    )


def launches(pieces: Sequence[Piece]) -> Iterator[tuple[Launch, np.ndarray[Any, Any]]]:
    """The launches that fill all pieces, each with its `Args`."""
    for start in range(0, len(pieces), _PIECES):
        some = pieces[start : start + _PIECES]
        args = np.zeros(1, _ARGS)
        for place, piece in zip(args["pieces"][0], some, strict=False):
            place["to"], place["from"] = piece.address, piece.source
            place["words"] = -(-piece.nbytes // _WORD)
        blocks = -(-int(args["pieces"]["words"].max()) // _BLOCK)
        grid = (min(max(1, blocks), _MOST_BLOCKS), len(some), 1)
        yield Launch(_FILE.stem, grid, (_BLOCK, 1, 1)), args
