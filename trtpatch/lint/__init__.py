"""The lint: a patch's contract against its kernel, its reference and its cases; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trtpatch.catalog import Catalog, Patch
from trtpatch.compiler.cubins import Cubins
from trtpatch.errors import CompileError, Problem, VerifyError
from trtpatch.lint.alignment import lint_casts
from trtpatch.lint.build import compile_step
from trtpatch.lint.contract import lint_contract, reference_reads
from trtpatch.lint.coverage import lint_cases
from trtpatch.lint.kernel import lint_kernel
from trtpatch.lint.kernel_text import KernelText
from trtpatch.lint.remarks import Remark
from trtpatch.plan import PatchStep

__all__ = ["Linted", "Remark", "lint"]

_SIZING = ("size", "block")
"""Rules of the contract without which no case can be bound."""


@dataclass(frozen=True)
class Linted:
    """What was found in a patch.

    Attributes:
        remarks: errors, then warnings: those of the contract, then the others in the order of
            files and lines.
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
    from trtpatch.lint.fitting import fit_cases
    from trtpatch.verify.cases import load_cases

    remarks = [*lint_contract(patch, catalog)]
    sound = not any(one.severity == "error" and one.rule in _SIZING for one in remarks)
    used, text = reference_reads(patch), None
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
            used |= {use.name for one in text.reached(text.kernels) for use in one.uses()}
    step = None
    if (patch.folder / "cases.py").is_file():
        try:
            cases = load_cases(patch)
        except VerifyError as error:
            file, line = str(patch.folder / "cases.py"), error.line
            said = str(error).removeprefix(f"{file}:{line}: " if line else f"{file}: ")
            remarks.append(Remark("case", "error", file, line, int(line > 0), said))
        else:
            remarks += lint_cases(patch, cases)
            if sound:  # else each of them would tell of the contract
                step, misfits = fit_cases(patch, cases, used)
                remarks += misfits
    untold = [*_compile(step, text, cubins or Cubins(), remarks)] if compiled and text else []
    remarks.sort(
        key=lambda one: (one.severity, one.file != patch.label, one.file, one.line, one.column)
    )
    return Linted(patch.name, tuple(remarks), tuple(untold))


def _compile(
    step: PatchStep | None, text: KernelText, cubins: Cubins, remarks: list[Remark]
) -> Iterator[str]:
    """Add what the compilers say of lines without a remark; gives what could not be tried."""
    if step is None:
        yield "not compiled: no case gives sizes to compile for"
        return
    places = {(remark.file, remark.line) for remark in remarks}
    nameless = any(one.rule == "entry" and one.severity == "error" for one in remarks)
    for one in compile_step(step, text, cubins):
        if isinstance(one, str):
            yield one
        elif (one.file, one.line) not in places and (one.line or not nameless):
            remarks.append(one)
