"""Executors that are ready for the shapes used last."""

from __future__ import annotations

import logging
from collections import OrderedDict

from trtpatch.engines import Engine
from trtpatch.executors import Executor, make_executor
from trtpatch.loaded import Binding, Loaded
from trtpatch.modelshape import ModelShape

_log = logging.getLogger("trtpatch.pipeline")


class Ready:
    """One executor a shape, at most `shapes` of the pipeline file; the one idle longest goes.

    Runtime parameters hold for all of them, those that come later included.

    Attributes:
        notes: what the user was told, each thing once.
        last: the executor used last.
    """

    def __init__(self, loaded: Loaded) -> None:
        """Make the executor for the largest batch in the best size.

        Raises:
            EngineError, CompileError, CaptureError, InputError: see `make_executor`.
        """
        self._loaded = loaded
        self._kept: OrderedDict[ModelShape, tuple[Engine, Executor]] = OrderedDict()
        self._settings: dict[str, float] = {}
        self._depth = 0
        self.notes: tuple[str, ...] = ()
        self._tell(loaded.notes)
        self.last = self._add(loaded.binding)

    def __len__(self) -> int:
        return len(self._kept)

    def at(self, shape: ModelShape) -> Executor:
        """The executor for a shape, made now if need be.

        Raises:
            EngineError: the engine does not run in that shape.
            MatchError: a patch does not.
        """
        if shape in self._kept:
            self._kept.move_to_end(shape)
            self.last = self._kept[shape][1]
        else:
            while len(self._kept) >= self._loaded.spec.shapes:
                self._drop(next(iter(self._kept)))
            self.last = self._add(self._loaded.bind(shape))
        return self.last

    def set(self, buffer: str, value: float) -> None:
        """Change a runtime parameter, by the name of its buffer."""
        self._settings[buffer] = value
        for _, executor in self._kept.values():
            executor.set(buffer, value)

    def reserve(self, depth: int) -> None:
        """Have room for so many batches under way at once, in every shape."""
        self._depth = max(self._depth, depth)
        for _, executor in self._kept.values():
            executor.reserve(depth)

    def close(self) -> None:
        """Close all executors, and the engines that they ran."""
        while self._kept:
            self._drop(next(iter(self._kept)))

    def _add(self, binding: Binding) -> Executor:
        spec = self._loaded.spec
        try:
            executor = make_executor(
                self._loaded.executor_name,
                binding.plan,
                binding.engine,
                device=spec.device,
                graph=spec.graph,
            )
        except BaseException:
            binding.engine.close()
            raise
        self._kept[binding.shape] = (binding.engine, executor)
        for buffer, value in self._settings.items():
            executor.set(buffer, value)
        if self._depth:
            executor.reserve(self._depth)
        self._tell(executor.notes)
        return executor

    def _drop(self, shape: ModelShape) -> None:
        engine, executor = self._kept.pop(shape)
        executor.close()
        engine.close()

    def _tell(self, notes: tuple[str, ...]) -> None:
        new = [note for note in dict.fromkeys(notes) if note not in self.notes]
        for note in new:
            _log.warning("%s: %s", self._loaded.path, note)
        self.notes += tuple(new)
