"""The `cpu` executor: each patch by its NumPy reference."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import NoReturn

import numpy as np

from trtpatch.catalog import Patch
from trtpatch.errors import VerifyError
from trtpatch.executors.walker import HostWalker
from trtpatch.plan import PatchStep
from trtpatch.scripts import run_script, telling_the_line
from trtpatch.spec.ports import FRAMEWORK_SIZES, model_size_hint
from trtpatch.spec.validate import nearest


class Args(SimpleNamespace):
    """What a reference takes; a name that it lacks is told."""

    def __getattr__(self, name: str) -> NoReturn:
        known = nearest(name, vars(self))
        hint = f" {model_size_hint(name)}" if name in FRAMEWORK_SIZES else known
        raise AttributeError(f"args has no field {name!r}.{hint}")


Reference = Callable[[Args], None]


class CpuExecutor(HostWalker):
    """Walks a plan in NumPy. The truth that the other executors are compared with."""

    name = "cpu"

    def bind_patch(self, step: PatchStep) -> Callable[[], None]:
        """The patch's reference, bound to the plan's arrays."""
        reference, path = load_reference(step.patch), step.patch.folder / "reference.py"
        args = Args(**step.sizes, **step.params)
        for tensor in step.tensors:
            arrays = tuple(self.arrays[buffer] for buffer in tensor.buffers)
            setattr(args, tensor.name, arrays if tensor.grouped else arrays[0])
        ragged = [tensor.name for tensor in step.tensors if tensor.ragged]
        unused = np.zeros((0, 0, 3), np.uint8)

        def run() -> None:
            for setting in step.settings:
                setattr(args, setting.name, self.arrays[setting.buffer][0].item())
            for name in ragged:
                images = [frame.pixels for frame in self.frames]
                setattr(args, name, images + [unused] * (self.plan.batch - len(images)))
            # An engine may give any number.
            with telling_the_line(path), np.errstate(over="ignore", invalid="ignore"):
                reference(args)

        return run


def load_reference(patch: Patch) -> Reference:
    """The function in `reference.py` that is named like the patch.

    Raises:
        VerifyError: there is none, or the file does not run.
    """
    path = patch.folder / "reference.py"
    if not path.is_file():
        raise VerifyError(f"{path}: {patch.name} has no reference, so it cannot run on the CPU")
    module = run_script(path, f"trtpatch_reference_{patch.name}")
    function = getattr(module, patch.name, None)
    if not callable(function):
        raise VerifyError(f"{path}: expected a function {patch.name}(args); it is not there")
    reference: Reference = function
    return reference
