"""A patched engine, loaded once and called with pictures.

`load` reads the pipeline file, opens the engine, finds the chain, binds it to the engine's real
tensors and hands the plan to an executor. Calling the pipeline walks the plan.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trtpatch import engines, executors
from trtpatch.catalog import Catalog, Patch
from trtpatch.detections import Detections, Results
from trtpatch.engines.build import BuildOptions
from trtpatch.errors import EngineError, InputError, MatchError
from trtpatch.executors import Timings
from trtpatch.frame import as_frames
from trtpatch.match import Match, fit, match, match_chain
from trtpatch.plan import Plan
from trtpatch.planner import make_plan
from trtpatch.settings import check_params, read_labels
from trtpatch.spec import yamlfile
from trtpatch.spec.patch import ParamValue
from trtpatch.spec.pipeline import PipelineSpec
from trtpatch.spec.registry import ENGINE
from trtpatch.spec.validate import choose, validate
from trtpatch.streaming import stream_results


class Loaded:
    """A pipeline file with all that it names, bound and checked but not yet compiled.

    Attributes:
        spec: the pipeline file.
        engine: open, with its shapes fixed.
        match: the rule, and the engine's tensors under the patches' names.
        plan: steps and buffers.
        executor_name: `gpu`, `host` or `cpu`.
        class_names: of the labels file, or of the engine's metadata; may be empty.
    """

    def __init__(self, path: Path, *, executor: str | None = None) -> None:
        document = yamlfile.load(path)
        self.path = path
        self.spec = validate(PipelineSpec, document)
        folder = path.parent
        self.catalog = Catalog([folder / name for name in self.spec.registry])
        self.executor_name = executors.choose_executor(executor or self.spec.executor)
        self.class_names = read_labels(document, self.spec.labels, folder)
        self.engine = engines.open_engine(
            folder / self.spec.engine.path,
            kind=self.spec.engine.kind,
            flavour=self.spec.engine.flavour,
            input_shape=self.spec.engine.input_shape,
            device=self.spec.device,
            gpu=self.executor_name == "gpu",
            options=BuildOptions(tf32=self.spec.engine.tf32, float16=self.spec.engine.float16),
        )
        try:
            self._bind(document)
        except BaseException:
            self.engine.close()
            raise

    def _bind(self, document: yamlfile.Document) -> None:
        self.class_names = self.class_names or self.engine.info.metadata.names
        info = self.engine.info
        batch = self.spec.batch or max(1, info.inputs[0].shape[0])
        shapes = {t.name: _concrete(t, batch) for t in info.inputs}
        outputs = tuple(self.engine.prepare(shapes).values())
        inputs = tuple(engines.Tensor(t.name, t.dtype, shapes[t.name]) for t in info.inputs)
        self.match = self._match(inputs, outputs)
        chain: list[Patch | None] = [
            None if name == ENGINE else self.catalog.patch(name) for name in self.match.chain
        ]
        rule = self.match.rule
        params: dict[str, dict[str, ParamValue]] = {}
        patches = [patch for patch in chain if patch is not None]
        if rule is not None:
            check_params(rule.document, rule.location, rule.spec.params, patches, into=params)
        check_params(document, (), self.spec.params, patches, into=params)
        self.plan = make_plan(
            chain,
            inputs=_named(self.match.inputs, inputs),
            outputs=_named(self.match.outputs, outputs),
            params=params,
            batch=batch,
            frame_bgr=self.spec.color == "bgr",
        )

    def _match(self, inputs: Sequence[engines.Tensor], outputs: Sequence[engines.Tensor]) -> Match:
        rule, chain = self.spec.rule, self.spec.chain
        if rule is None and chain is None:
            return match(self.catalog.rules, inputs, outputs)
        named = self.catalog.rule(rule) if rule is not None else None
        patches = [self.catalog.patch(name) for name in chain or () if name != ENGINE]
        try:
            if named is not None:
                return fit(named, inputs, outputs)
            return match_chain(chain or (), patches, self.spec.bind, inputs, outputs)
        except MatchError as error:
            who = f"rule {rule} ({named.place})" if named else f"the chain of {self.path}"
            takes, gives = (", ".join(map(str, side)) for side in (inputs, outputs))
            raise MatchError(
                f"{who} does not fit {self.engine.info.path}, which takes {takes} and gives"
                f" {gives}: {error}"
            ) from None


class Pipeline:
    """A patched engine; made by `trtpatch.load`.

    Attributes:
        plan: what is run, as data.
        class_names: names of the classes, or empty.
        executor: `gpu`, `host` or `cpu`.
    """

    def __init__(self, loaded: Loaded) -> None:
        self.plan: Plan = loaded.plan
        self.class_names = loaded.class_names
        self._color = loaded.spec.color
        self._engine = loaded.engine
        self._executor = executors.make_executor(
            loaded.executor_name,
            loaded.plan,
            loaded.engine,
            device=loaded.spec.device,
            graph=loaded.spec.graph,
        )
        self._lock = threading.Lock()
        self._closed = False

    @property
    def executor(self) -> str:
        """Name of the executor that walks the plan."""
        return self._executor.name

    def __call__(
        self, images: Any, *, stream: int | None = None, timings: Timings | None = None
    ) -> Results:
        """Detect objects.

        Args:
            images: a path or `[H, W, 3]` uint8 array in the pipeline's channel order, on the
                host or on the GPU, or a list of them; sizes may differ.
            stream: CUDA stream, as an integer handle, on which GPU arrays are being written.
            timings: where given, milliseconds a step are added up in it.

        Returns:
            One `Detections` a picture. On a GPU the call does not wait; looking at a result does.

        Raises:
            InputError: a picture cannot be used.
        """
        frames = as_frames(images, color=self._color)
        batches = []
        with self._lock:
            if self._closed:
                raise InputError("this pipeline is closed")
            for start in range(0, len(frames), self.plan.batch):
                chunk = frames[start : start + self.plan.batch]
                spent: Timings | None = {} if timings is not None else None
                raw = self._executor.run(chunk, stream=stream, timings=spent)
                batches.append((raw, [(frame.height, frame.width) for frame in chunk]))
                for name, milliseconds in (spent or {}).items():
                    assert timings is not None
                    timings[name] = timings.get(name, 0.0) + milliseconds
        return Results(batches, self.class_names)

    def stream(self, images: Iterable[Any], *, depth: int = 3) -> Iterator[Detections]:
        """Detect objects in pictures as they come, copying and computing at the same time.

        Args:
            images: pictures as for a call, taken as they are needed.
            depth: batches under way at once, at most.

        Returns:
            One `Detections` a picture, in order. It may be closed early.

        Raises:
            InputError: `depth` is less than 1, or a picture cannot be used.
        """
        if depth < 1:
            raise InputError(f"depth: expected 1 or more batches under way, found {depth}")
        self._executor.reserve(depth)
        return stream_results(images, self, batch=self.plan.batch, depth=depth)

    def set(self, /, **params: float) -> None:
        """Change runtime parameters from the next call on.

        Args:
            params: name to value, such as `score_threshold=0.4`; a name that several patches
                have is changed in each.

        Raises:
            InputError: no step has such a runtime parameter, or the value is out of range.
        """
        checked = []
        for name, value in params.items():
            found = [(step, s) for step, s in self.plan.settings if s.name == name]
            if not found:
                known = {setting.name for _, setting in self.plan.settings}
                raise InputError(f"no runtime parameter {name!r}.{choose(name, known)}")
            for step, setting in found:
                try:
                    number = step.patch.spec.params[name].check(value)
                except ValueError as error:
                    raise InputError(f"{step.name}: {name}: {error}") from None
                assert isinstance(number, (int, float))
                checked.append((setting.buffer, number))
        with self._lock:
            for buffer, number in checked:
                self._executor.set(buffer, number)

    def close(self) -> None:
        """Give up the engine and all memory. Results that are still held stay valid."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._executor.close()
                self._engine.close()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load(path: str | os.PathLike[str], *, executor: str | None = None) -> Pipeline:
    """Load a pipeline file; everything is compiled, allocated and checked here.

    Args:
        path: the pipeline's YAML file.
        executor: instead of the one that the file names.

    Raises:
        SpecError: a file has mistakes.
        MatchError: no chain fits the engine.
        EngineError: the engine cannot be opened.
        CompileError: a kernel does not compile.
    """
    loaded = Loaded(Path(path), executor=executor)
    try:
        return Pipeline(loaded)
    except BaseException:
        loaded.engine.close()
        raise


def _concrete(tensor: engines.Tensor, batch: int) -> tuple[int, ...]:
    """The input's shape with the batch in its first axis, where that is open."""
    shape = tuple(batch if axis == 0 and n < 0 else n for axis, n in enumerate(tensor.shape))
    if any(size < 0 for size in shape):
        raise EngineError(
            f"the engine's input {tensor.name} {list(tensor.shape)} is open in more than the"
            " batch. Give its size with 'input_shape' under 'engine' in the pipeline file"
        )
    if shape and shape[0] != batch:
        raise EngineError(
            f"the pipeline asks for batch {batch}, but the engine's input {tensor.name} is fixed"
            f" to {list(tensor.shape)}"
        )
    return shape


def _named(
    names: Mapping[str, tuple[str, ...]], tensors: Sequence[engines.Tensor]
) -> dict[str, tuple[engines.Tensor, ...]]:
    """Tensors under the names of the patches; one that no patch names goes by its own."""
    by_name = {tensor.name: tensor for tensor in tensors}
    named = {name: tuple(by_name.pop(one) for one in group) for name, group in names.items()}
    return {**named, **{name: (tensor,) for name, tensor in by_name.items()}}
