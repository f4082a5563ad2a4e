"""The options of NVRTC: those of every kernel, and those that a contract may set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trtpatch.errors import CompileError

if TYPE_CHECKING:
    from trtpatch.unit import Unit

_ALWAYS = ("--std=c++17", "--restrict", "--generate-line-info", "--ptxas-options=-v")
_EXACT = ("--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--fmad=false")
_FAST = ("--use_fast_math",)  # turns all of _EXACT round, and sinf into __sinf

_ALLOWED = re.compile(r"--(fmad=(true|false)|maxrregcount=\d+|extra-device-vectorization)")
_ALLOWED_TEXT = "--fmad=true, --maxrregcount=N, --extra-device-vectorization"
_REFUSED = {
    r"--?(gpu-)?(arch|code)": "the architecture is the GPU's own, or that of 'trtpatch compile'",
    r"-I|--?(pre-)?include": "no file is read while compiling; put yours beside kernel.cu and "
    "#include it there, it is inlined",
    r"--?(default-device|device-as-default)": "write __device__; executor 'host' builds the same "
    "text with a C++ compiler",
    r"--?(use_fast_math|ftz|prec-)": "write 'fast_math: true' among the options",
    r"-[DU]|--(un)?define": "use a parameter of the contract, or #define in kernel.cu",
    r"--?(std|restrict|generate-line-info|lineinfo)": "it is the same for every patch",
    r"--?(dlto|rdc|relocatable)": "one text gives one cubin, with nothing to link",
}


def options_of(unit: Unit) -> tuple[str, ...]:
    """All options of NVRTC that a unit is compiled with, but for the architecture.

    Raises:
        CompileError: the contract has one that is not its to set.
    """
    chosen = _contract_options(unit)
    maths = list(_FAST if unit.fast_math else _EXACT)
    if any(option.startswith("--fmad=") for option in chosen) and not unit.fast_math:
        maths.remove("--fmad=false")
    return (*_ALWAYS, *maths, *chosen)


def _contract_options(unit: Unit) -> list[str]:
    """The contract's options, each with two dashes.

    Raises:
        CompileError: one is not a contract's to set.
    """
    chosen = []
    for written in unit.options:
        option = re.sub(r"^-(?=\w{2})", "--", written.strip())
        if not _ALLOWED.fullmatch(option):
            reasons = (why for form, why in _REFUSED.items() if re.match(form, written.strip()))
            raise CompileError(
                f"patch {unit.name}: option {written!r} in the contract is refused: "
                f"{next(reasons, 'it is unknown here')}. Allowed: {_ALLOWED_TEXT}"
            )
        chosen.append(option)
    return chosen
