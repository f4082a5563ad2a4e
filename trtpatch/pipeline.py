"""A patched engine, loaded once and called with pictures.

`load` reads the pipeline file, opens the engine, finds the chain, binds it to the engine's real
tensors and hands the plan to an executor. Calling the pipeline walks the plan; where pictures ask
for another shape of the engine's input, a plan is made for that one too, and kept.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from trtpatch.engines.recorded import RecordedEngine
from trtpatch.errors import InputError
from trtpatch.executors import Timings
from trtpatch.frame import as_frames
from trtpatch.loaded import Loaded
from trtpatch.modelshape import Size
from trtpatch.plan import Plan
from trtpatch.ready import Ready
from trtpatch.results import Results
from trtpatch.spec.validate import choose
from trtpatch.streaming import Stream

_log = logging.getLogger("trtpatch.pipeline")


class Pipeline:
    """A patched engine; made by `trtpatch.load`.

    Attributes:
        plan: what is run for the largest batch in the best size, as data.
        class_names: names of the classes, or empty.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._go_on_with(loaded, Ready(loaded))
        self._set: dict[str, float] = {}
        self._lock = threading.Lock()
        self._reloading = threading.Lock()
        self._closed = False

    def _go_on_with(self, loaded: Loaded, ready: Ready) -> None:
        self.plan: Plan = loaded.plan
        self.class_names = loaded.class_names
        self._loaded = loaded
        self._ready = ready

    def __repr__(self) -> str:
        loaded, info = self._loaded, self._loaded.engine.info
        rule = loaded.match.rule
        by = f"rule {rule.spec.name}" if rule else f"chain {', '.join(loaded.match.chain)}"
        runs = f"engine {info.flavour} {info.version} {Path(info.path).name}, {by}"
        return f"<Pipeline {loaded.path}: {runs}, executor {self.executor}>"

    @property
    def executor(self) -> str:
        """Name of the executor that walks the plan: `gpu`, `host` or `cpu`."""
        return self._loaded.executor_name

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to know about how it runs, such as options that played no part."""
        return self._ready.notes

    def __call__(
        self,
        images: Any,
        *,
        size: Size | None = None,
        stream: int | None = None,
        timings: Timings | None = None,
    ) -> Results:
        """Find out what is in pictures.

        Args:
            images: a path or an array, on the host or on the GPU, or a list of them; sizes may
                differ. An array is uint8 `[H, W, 3]`, RGB, where the pipeline file says nothing
                else.
            size: height and width of the model's picture in pixels, where the engine leaves them
                open. The first call in a shape takes longer: a plan is made for it.
            stream: CUDA stream, as an integer handle, on which GPU arrays are being written; the
                one that they name themselves where not given, as CuPy's do and PyTorch's do not.
            timings: where given, milliseconds a step are added up in it.

        Returns:
            One result a picture: `Detections`, or what else the chain ends in; see `Results`. On a
            GPU the call does not wait; looking at a result does.

        Raises:
            InputError: a picture cannot be used, or the pipeline is closed.
            EngineError: the engine does not run in that size, or is a recording of others.
            MatchError: a patch does not run in that size.
        """
        layout = self._loaded.spec.frame
        frames = as_frames(images, layout=layout)
        batches = []
        with self._lock:
            self._refuse_closed()
            if self._loaded.spec.frame != layout:  # reloaded meanwhile
                frames = as_frames(images, layout=self._loaded.spec.frame)
            for start in range(0, len(frames), self.plan.batch):
                chunk = frames[start : start + self.plan.batch]
                pictures = [(frame.height, frame.width) for frame in chunk]
                executor = self._ready.at(self._loaded.shapes.shape_for(pictures, size))
                self._loaded.engine.check_pictures(pictures)
                batches.append((executor.run(chunk, stream=stream, timings=timings), pictures))
            return Results(batches, self.class_names, self.plan.more_by_image)

    def stream(self, images: Iterable[Any], *, size: Size | None = None, depth: int = 3) -> Stream:
        """Find out what is in pictures as they come, copying and computing at the same time.

        Args:
            images: pictures as for a call, taken as they are needed.
            size: as for a call.
            depth: batches under way at once, at most.

        Returns:
            An iterator, one result a picture, in order. It may be closed early. Where a picture
            cannot be used, its turn raises what a call would, and the next `next` goes on; but not
            where outputs are played back, which would go to the wrong pictures then.

        Raises:
            InputError: `depth` is no whole number from 1, or `images` is one picture.
        """
        if not isinstance(depth, int) or depth < 1:
            raise InputError(f"depth: expected 1 or more batches under way, found {depth!r}")
        single = isinstance(images, (str, os.PathLike)) or getattr(images, "ndim", 4) < 4
        if single or not isinstance(images, Iterable):
            what = images if isinstance(images, (str, os.PathLike)) else type(images).__name__
            raise InputError(f"expected pictures one after another, such as a list, found {what}")
        with self._lock:
            self._ready.reserve(depth)
        start = partial(self, size=size)
        goes_on = not isinstance(self._loaded.engine, RecordedEngine)
        return Stream(images, start, batch=self.plan.batch, depth=depth, goes_on=goes_on)

    def set(self, /, **params: float) -> None:
        """Change runtime parameters from the next call on.

        Args:
            params: name to value, such as `score_threshold=0.4`; a name that several patches
                have is changed in each.

        Raises:
            InputError: no step has such a runtime parameter, or the value is out of range.
        """
        with self._lock:
            self._apply(params)
            self._set.update(params)

    def _apply(self, params: Mapping[str, float]) -> None:
        checked = []
        for name, value in params.items():
            found = [(step, s) for step, s in self.plan.settings if s.name == name]
            if not found:
                known = {setting.name for _, setting in self.plan.settings}
                if any(name in step.params for step in self.plan.patch_steps):
                    raise InputError(
                        f"no runtime parameter {name!r}: it is compiled in, so give it in the"
                        f" pipeline file. At runtime: {', '.join(sorted(known)) or 'none'}"
                    )
                raise InputError(f"no runtime parameter {name!r}.{choose(name, known)}")
            for step, setting in found:
                try:
                    number = step.check(setting, value)
                except ValueError as error:
                    raise InputError(f"{step.name}: {name}: {error}") from None
                checked.append((setting.buffer, number))
        for buffer, number in checked:
            self._ready.set(buffer, number)

    @property
    def sources(self) -> tuple[Path, ...]:
        """Files that `reload` reads again, and folders of patches."""
        return self._loaded.sources

    def reload(self) -> None:
        """Read the pipeline file, registries, contracts and kernels again, and go over to them.

        Frames go on meanwhile; they wait while the walk is captured again. The engine stays open
        and is not built again. What `set` has set stays set. On an error all stays as it was.

        Raises:
            SpecError: a file has mistakes; or the pipeline file says something else of the engine.
            MatchError: a patch does not fit.
            CompileError: a kernel does not compile.
            CaptureError, InputError, VerifyError: the new patches cannot run.
        """
        with self._reloading:
            loaded = self._loaded.again()
            with self._lock:
                self._refuse_closed()
                before, engines = self._ready, self._ready.engines
            before.compile_ahead(loaded, engines)
            with self._lock:
                self._refuse_closed()
                self._go_on_with(loaded, Ready(loaded, before=before))
                self._set = dict(self._still_valid())
            before.retire()

    def _still_valid(self) -> Iterator[tuple[str, float]]:
        """Apply what was set; what cannot be set any more is told."""
        for name, value in self._set.items():
            try:
                self._apply({name: value})
            except InputError as error:
                _log.warning("%s: set before the reload, and no more: %s", self._loaded.path, error)
            else:
                yield name, value

    def _refuse_closed(self) -> None:
        if self._closed:
            raise InputError("this pipeline is closed")

    def close(self) -> None:
        """Give up the engine and all memory. Results that are still held stay valid."""
        with self._lock:
            if not self._closed:
                self._closed = True
                try:
                    self._ready.close()
                finally:
                    self._loaded.engine.close()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load(path: str | os.PathLike[str], *, executor: str | None = None) -> Pipeline:
    """Load a pipeline file; everything is compiled, allocated and checked here.

    Args:
        path: the pipeline's YAML file; or an engine file, where there is nothing to say of it.
        executor: `gpu`, `host`, `cpu` or `auto`, instead of the one that the file names.

    Raises:
        SpecError: a file has mistakes.
        InputError: there is no such executor or GPU, or too little memory on it.
        MatchError: no chain fits the engine.
        EngineError: the engine cannot be opened.
        CompileError: a kernel does not compile.
        CaptureError: the file requires a CUDA Graph, and a step cannot be captured.
        VerifyError: executor `cpu`, and a patch has no reference that runs.
    """
    loaded = Loaded(Path(path), executor=executor)
    try:
        return Pipeline(loaded)
    except BaseException:
        loaded.engine.close()
        raise
