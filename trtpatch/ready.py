"""Executors that are ready for the shapes used last."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import ExitStack

from trtpatch.compiler.cubins import Cubins
from trtpatch.engines import Engine
from trtpatch.executors import Executor, compile_ahead, make_executor
from trtpatch.loaded import Binding, Loaded
from trtpatch.modelshape import ModelShape

_log = logging.getLogger("trtpatch.pipeline")


class Ready:
    """One executor a shape, at most `shapes` of the pipeline file; the one idle longest goes.

    Runtime parameters hold for all of them, those that come later included.

    Attributes:
        notes: what the user was told, each thing once.
    """

    def __init__(self, loaded: Loaded, *, before: Ready | None = None) -> None:
        """Make the executor for the largest batch in the best size.

        Args:
            loaded: what to run.
            before: what ran the same pipeline file as it was. Executors are made for all its
                shapes, on its engines, each of which is run once; it may go on if that fails, and
                is retired if not.

        Raises:
            EngineError, CompileError, CaptureError, InputError, MatchError: see `make_executor`.
        """
        self._loaded = loaded
        self._bundle = loaded.bundle
        self._cubins: Cubins = before._cubins if before else Cubins()
        self._kept: OrderedDict[ModelShape, tuple[Engine, Executor]] = OrderedDict()
        self._settings: dict[str, float] = {}
        self._depth: int = before._depth if before else 0
        self.notes: tuple[str, ...] = before.notes if before else ()
        self._tell(loaded.notes)
        if before is None:
            self._add(loaded.binding)
            return
        try:
            for shape, (engine, executor) in before._kept.items():
                executor.wait()  # two executors must not run one engine at the same time
                self._kept[shape] = engine, self._make(loaded.bind_to(engine, shape))
        except BaseException:
            self.retire()
            raise

    def compile_ahead(self, loaded: Loaded, engines: Mapping[ModelShape, Engine]) -> None:
        """Compile what executors of `loaded` need; those that run meanwhile are not disturbed.

        Raises:
            CompileError, MatchError, VerifyError: a patch does not compile, fit or run.
        """
        bundle = loaded.bundle
        for shape, engine in engines.items():
            plan = loaded.bind_to(engine, shape).plan
            name, device = loaded.executor_name, loaded.spec.device
            compile_ahead(name, plan, device=device, cubins=self._cubins, bundle=bundle)

    @property
    def engines(self) -> dict[ModelShape, Engine]:
        """The engines that are ready, by shape."""
        return {shape: engine for shape, (engine, _) in self._kept.items()}

    @property
    def last(self) -> Executor:
        """The executor used last."""
        return next(reversed(self._kept.values()))[1]

    def __len__(self) -> int:
        return len(self._kept)

    def at(self, shape: ModelShape) -> Executor:
        """The executor for a shape, made now if need be.

        Raises:
            EngineError: the engine does not run in that shape.
            MatchError: a patch does not.
        """
        kept = self._kept.get(shape)
        if kept is not None:
            self._kept.move_to_end(shape)
            return kept[1]
        binding = self._loaded.bind(shape)  # where the engine refuses it, nothing is dropped
        try:
            while len(self._kept) >= self._loaded.spec.shapes:
                self._drop(next(iter(self._kept)))
        except BaseException:
            binding.engine.close()
            raise
        self._add(binding)
        return self.last

    def set(self, buffer: str, value: float) -> None:
        """Change a runtime parameter, by the name of its buffer."""
        self._settings[buffer] = value
        for _, executor in self._kept.values():
            executor.set(buffer, value)

    def reserve(self, depth: int) -> None:
        """Have room for so many batches under way at once, in every shape."""
        for _, executor in self._kept.values():
            executor.reserve(depth)
        self._depth = max(self._depth, depth)

    def close(self) -> None:
        """Close all executors, and the engines that they ran, even if one of them fails to."""
        with ExitStack() as stack:
            for shape in self._kept:
                stack.callback(self._drop, shape)

    def retire(self) -> None:
        """Close all executors, but not the engines, with which another goes on."""
        with ExitStack() as stack:
            for _, executor in self._kept.values():
                stack.callback(executor.close)
        self._kept.clear()

    def _add(self, binding: Binding) -> None:
        try:
            executor = self._make(binding)
        except BaseException:
            binding.engine.close()
            raise
        self._kept[binding.shape] = (binding.engine, executor)

    def _make(self, binding: Binding) -> Executor:
        spec = self._loaded.spec
        executor = make_executor(
            self._loaded.executor_name,
            binding.plan,
            binding.engine,
            device=spec.device,
            graph=spec.graph,
            cubins=self._cubins,
            bundle=self._bundle,
        )
        for buffer, value in self._settings.items():
            executor.set(buffer, value)
        if self._depth:
            executor.reserve(self._depth)
        self._tell(executor.notes)
        return executor

    def _drop(self, shape: ModelShape) -> None:
        engine, executor = self._kept.pop(shape)
        try:
            executor.close()
        finally:
            engine.close()

    def _tell(self, notes: tuple[str, ...]) -> None:
        new = [note for note in dict.fromkeys(notes) if note not in self.notes]
        for note in new:
            _log.warning("%s: %s", self._loaded.path, note)
        self.notes += tuple(new)
