"""The `cpu` executor: each patch by its NumPy reference."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import CodeType, ModuleType, SimpleNamespace
from typing import NoReturn

import numpy as np

from trtpatch.catalog import Patch
from trtpatch.errors import VerifyError
from trtpatch.executors.walker import HostWalker
from trtpatch.plan import PatchStep
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
        reference = load_reference(step.patch)
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
            with np.errstate(over="ignore", invalid="ignore"):  # an engine may give any number
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
    module = ModuleType(f"trtpatch_reference_{patch.name}")
    module.__file__ = str(path)
    try:  # not by importlib: its cache of bytecode misses a second edit within one second
        exec(_compiled(path.read_bytes(), str(path)), module.__dict__)
    except (Exception, SystemExit) as error:
        raise VerifyError(f"{path}: {type(error).__name__}: {error}") from error
    function = getattr(module, patch.name, None)
    if not callable(function):
        raise VerifyError(f"{path}: expected a function {patch.name}(args); it is not there")
    reference: Reference = function
    return reference


@lru_cache(maxsize=128)
def _compiled(source: bytes, path: str) -> CodeType:
    return compile(source, path, "exec")
