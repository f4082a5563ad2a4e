"""Wide accesses to memory whose alignment nothing promises.

Every buffer begins at a multiple of 256 bytes, except the engine's own tensors, of which the
alignment of an element is all that is promised. A row inside a buffer is aligned if its size is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from trtpatch.catalog import Patch
from trtpatch.lint.kernel_text import Function, KernelText
from trtpatch.lint.remarks import Remark
from trtpatch.plan import ALIGNMENT
from trtpatch.spec.dtypes import ITEMSIZE
from trtpatch.spec.patch import TensorSpec
from trtpatch.spec.ports import PORTS

_SCALARS = {
    "char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "float": 4, "long": 8,
    "ulong": 8, "longlong": 8, "ulonglong": 8, "double": 8,
}  # fmt: skip
_VECTOR = re.compile(rf"({'|'.join(_SCALARS)})([234])")
_CAST = re.compile(
    r"reinterpret_cast\s*<\s*(?:const\s+|volatile\s+)*(?P<type>[\w:]+(?:\s*<[^<>]*(?:<[^<>]*>)?[^<>]*>)?)"
    r"\s*(?:const\s*)?\*\s*(?:const\s*)?>\s*\("
    r"|\(\s*(?:const\s+|volatile\s+)*(?P<plain>\w+)\s*(?:const\s*)?\*\s*\)\s*\(?"
)
_ALIGNED = re.compile(r"\bstruct\s+(?:alignas|__align__)\s*\(\s*(\d+)\s*\)\s*(\w+)")
_GUARD = re.compile(
    r"\baligned_for\s*<|reinterpret_cast\s*<\s*(?:unsigned long long|uintptr_t|size_t)"
)


def lint_casts(patch: Patch, text: KernelText) -> Iterator[Remark]:
    """Casts to wider types, of fields of `Args` and of pointers into them."""
    widths = {name: int(size) for size, name in _ALIGNED.findall(text.text)}
    for function in text.reached(launch.entry for launch in patch.spec.launch):
        if _GUARD.search(function.body):
            continue
        pointers = _pointers(patch, function)
        for match in _CAST.finditer(function.body):
            wanted = _alignment(match["type"] or match["plain"], widths)
            argument = _argument(function.body, match.end())
            for name in re.findall(r"\w+", argument):
                promised = pointers.get(name)
                if promised is not None and promised[1] < wanted:
                    field, bytes_ = promised
                    message = (
                        f"{match['type'] or match['plain']} needs {wanted} bytes of alignment, and"
                        f" of {field} {bytes_} are promised: test aligned_for<...>(address), and"
                        " read element by element where it does not hold"
                    )
                    place = text.place(function.body_start + match.start())
                    yield Remark("alignment", "error", *place, message)
                    break


def _alignment(type_name: str, widths: dict[str, int]) -> int:
    """What a pointer to a type must be a multiple of; 1 where that is not known."""
    if vector := _VECTOR.fullmatch(type_name):
        size = _SCALARS[vector[1]]
        return size if vector[2] == "3" else min(16, size * int(vector[2]))
    if re.match(r"Wide\b", type_name):
        return 16
    return widths.get(type_name, 1)


def _argument(body: str, start: int) -> str:
    depth = 1
    for at in range(start, len(body)):
        depth += {"(": 1, ")": -1}.get(body[at], 0)
        if depth == 0 or body[at] == ";":
            return body[start:at]
    return body[start:]


def _pointers(patch: Patch, function: Function) -> dict[str, tuple[str, int]]:
    """Names that lead to a buffer: its field, and the alignment that is promised."""
    found = {}
    fields = _promises(patch)
    for use in function.uses():
        if use.name in fields:
            found[use.name] = (use.name, fields[use.name])
    for name, value in re.findall(r"\*\s*(?:__restrict__\s+)?(\w+)\s*=\s*([^;]+);", function.body):
        for word in re.findall(r"\w+", value):
            if word in found:
                found[name] = found[word]
                break
    return found


def _promises(patch: Patch) -> dict[str, int]:
    spec = patch.spec
    promised = {}
    for name, tensor in {**spec.inputs, **spec.outputs}.items():
        if isinstance(tensor, TensorSpec):
            promised[name] = min(ITEMSIZE[dtype] for dtype in tensor.dtype)
        else:
            for field, one in PORTS[name].fields():
                promised[field] = _row(ITEMSIZE[one.dtype], one.shape)
    for name, tensor in spec.scratch.items():
        promised[name] = _row(ITEMSIZE[tensor.dtype[0]], [dim.text for dim in tensor.shape])
    return promised


def _row(itemsize: int, shape: Sequence[object]) -> int:
    """The alignment of every row of the last axis, whatever the sizes that are no numbers."""
    last = shape[-1] if shape else 1
    size = itemsize * (int(str(last)) if str(last).isdecimal() else 1)
    return math.gcd(size, ALIGNMENT)
