"""The lint: a patch's contract against its kernel, its reference and its cases; nothing is run."""

from __future__ import annotations

from dataclasses import dataclass

from trtpatch.catalog import Catalog, Patch
from trtpatch.compiler.cubins import Cubins
from trtpatch.errors import CompileError, Problem, TrtpatchError
from trtpatch.lint.alignment import lint_casts
from trtpatch.lint.build import compile_first
from trtpatch.lint.contract import lint_contract
from trtpatch.lint.coverage import lint_cases
from trtpatch.lint.kernel import lint_kernel
from trtpatch.lint.kernel_text import KernelText
from trtpatch.lint.remarks import Remark

__all__ = ["Linted", "Remark", "lint"]


@dataclass(frozen=True)
class Linted:
    """What was found in a patch.

    Attributes:
        remarks: in the order of files and lines.
        untold: what could not be looked at, and why.
    """

    patch: str
    remarks: tuple[Remark, ...]
    untold: tuple[str, ...]

    @property
    def errors(self) -> int:
        """How many remarks are errors."""
        return sum(remark.severity == "error" for remark in self.remarks)


def lint(
    patch: Patch, catalog: Catalog, *, compiled: bool = True, cubins: Cubins | None = None
) -> Linted:
    """Look at a patch without running it.

    Args:
        patch: which.
        catalog: the patches that its kind is compared with.
        compiled: whether to ask the compilers that are at hand as well.
        cubins: the cache of compiled kernels; the user's own when not given.
    """
    from trtpatch.verify.cases import load_cases

    remarks, untold = [*lint_contract(patch, catalog)], []
    cases = []
    if (patch.folder / "cases.py").is_file():
        try:
            cases = load_cases(patch)
            remarks += lint_cases(patch, cases)
        except TrtpatchError as error:
            place = str(patch.folder / "cases.py")
            remarks.append(
                Remark("case", "error", place, 0, 0, str(error).removeprefix(f"{place}: "))
            )
    if patch.kernel.is_file():
        try:
            text = KernelText.read(patch)
        except CompileError as error:
            whole = Problem(str(patch.kernel), 0, 0, str(error))
            remarks += [
                Remark("compile", "error", p.file, p.line, p.column, p.message)
                for p in error.problems or [whole]
            ]
        else:
            remarks += [*lint_kernel(patch, text), *lint_casts(patch, text)]
            places = {(remark.file, remark.line) for remark in remarks}
            built = compile_first(patch, text, cases, cubins or Cubins()) if compiled else ()
            for one in built:
                if isinstance(one, str):
                    untold.append(one)
                elif (one.file, one.line) not in places:
                    remarks.append(one)
    remarks.sort(key=lambda remark: (remark.file, remark.line, remark.column))
    return Linted(patch.name, tuple(remarks), tuple(untold))
