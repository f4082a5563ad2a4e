"""A pipeline file with all that it names: engine, rule or chain, patches and parameters.

Nothing is compiled here. `Loaded.bind` binds the chain to the engine in given shapes, which is
quick, so that a pipeline can do it when pictures ask for another shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trtpatch import engines, executors
from trtpatch.chain import Chain
from trtpatch.classnames import check_names, read_labels
from trtpatch.compiler.bundle import Bundle
from trtpatch.engines.options import BuildOptions
from trtpatch.errors import SpecError
from trtpatch.modelshape import ModelShape, ModelShapes
from trtpatch.pipelinefile import blamed, read_catalog, read_pipeline
from trtpatch.plan import Plan
from trtpatch.spec import yamlfile
from trtpatch.spec.pipeline import EngineSpec

_OF_ENGINE = ("engine", "batch", "size", "device", "executor")
"""What decides how the engine is opened, so that a reload cannot change it."""


@dataclass(frozen=True)
class Binding:
    """A chain bound to an engine in one shape: all that an executor needs."""

    shape: ModelShape
    engine: engines.Engine
    plan: Plan


class Loaded:
    """A pipeline file, read, checked and bound to its engine.

    Attributes:
        path: the file, `spec` what it says, and `document` where.
        engine: open.
        shapes: that the engine can run in.
        match: the rule, and the engine's tensors under the patches' names.
        binding: to the largest batch in the best size.
        executor_name: `gpu`, `host` or `cpu`.
        class_names: of the labels file, or of the engine's metadata; may be empty.
        notes: what the user is told at load.
    """

    def __init__(
        self,
        path: Path,
        *,
        executor: str | None = None,
        anywhere: bool = False,
        before: Loaded | None = None,
    ) -> None:
        """Read the file, open the engine and bind the chain to it.

        Args:
            path: the pipeline's YAML file, or an engine file.
            executor: instead of the one that the file names.
            anywhere: open an ONNX file without a GPU, whatever is to run it: enough to plan.
            before: the same file as it was read before, whose engine stays open and is not touched.

        Raises:
            SpecError, InputError, MatchError, EngineError: see `trtpatch.load`.
        """
        document, self.spec = read_pipeline(path)
        self.path, self.document = path, document
        self.catalog = read_catalog(document, self.spec)
        self.executor_name = executors.choose_executor(executor or self.spec.executor)
        labels = read_labels(document, self.spec.labels, path.parent)
        if before is None:
            with blamed(document, "engine", "path"):
                self.engine = self._open_engine(anywhere)
        else:
            self._refuse_changes(document, before)
            self.engine = before.engine
        try:
            info = self.engine.info
            self.class_names = labels or info.metadata.names
            with blamed(document, "engine"):
                self.shapes = ModelShapes(
                    info, batch=self.spec.batch, rectangular=self.spec.size == "auto"
                )
            self.notes = (*info.notes, *self.shapes.notes)
            largest = self.shapes.largest
            ready = before.binding.engine if before else None
            ready = ready or self.engine.at(self.shapes.inputs_at(largest))
            self._chain = Chain.find(self.spec, document, self.catalog, ready.info)
            self.match = self._chain.match
            self.binding: Binding = self.bind_to(ready, largest)
            chosen = self.spec.rule is not None or self.spec.chain is not None
            self.notes += tuple(check_names(document, labels, info, self.plan, chosen=chosen))
            self.notes += tuple(self._chain.notes())
        except BaseException:
            if before is None:
                self.engine.close()
            raise

    def again(self) -> Loaded:
        """All files read anew, on the same engine, which stays as it is.

        Raises:
            SpecError, MatchError: see `trtpatch.load`; or something is changed that the engine
                would have to be opened again for.
        """
        return Loaded(self.path, executor=self.executor_name, before=self)

    @property
    def sources(self) -> tuple[Path, ...]:
        """Files that were read, and folders of patches; not the engine, which stays open."""
        folder = self.path.parent
        own = [self.path] if self.document.values else []
        labels = [folder / self.spec.labels] if isinstance(self.spec.labels, str) else []
        return (*own, *labels, *self.catalog.sources)

    @property
    def bundle(self) -> Bundle | None:
        """Where executor `gpu` has its kernels from, read anew; None where they are compiled.

        Raises:
            CompileError: it is no bundle.
        """
        if self.spec.bundle is None or self.executor_name != "gpu":
            return None
        return Bundle.read(self.path.parent / self.spec.bundle)

    @property
    def plan(self) -> Plan:
        """What is run for the largest batch in the best size."""
        return self.binding.plan

    def bind(self, shape: ModelShape) -> Binding:
        """Bind the chain to the engine in one shape.

        Raises:
            EngineError: the engine cannot run in that shape.
            MatchError: a patch of the chain cannot.
        """
        ready = self.engine.at(self.shapes.inputs_at(shape))
        try:
            return self.bind_to(ready, shape)
        except BaseException:
            ready.close()
            raise

    def bind_to(self, ready: engines.Engine, shape: ModelShape) -> Binding:
        """Bind the chain to the engine that is ready in a shape already.

        Raises:
            MatchError: a patch of the chain cannot run in that shape.
        """
        return Binding(shape, ready, self._chain.bind(ready.info, shape.batch))

    def _open_engine(self, anywhere: bool) -> engines.OpenEngine:
        return engines.open_engine(
            self.path.parent / self.spec.engine.path,
            kind="auto" if anywhere else self.spec.engine.kind,
            flavour=self.spec.engine.flavour,
            device=self.spec.device,
            gpu=self.executor_name == "gpu",
            options=_options(self.spec.engine, self.spec.batch),
        )

    def _refuse_changes(self, document: yamlfile.Document, before: Loaded) -> None:
        """Refuse what a running pipeline cannot follow."""
        changed = [n for n in _OF_ENGINE if getattr(self.spec, n) != getattr(before.spec, n)]
        if changed:
            message = (
                f"{' and '.join(changed)}: changed since the pipeline was loaded. This decides how "
                "the engine is opened, and a reload leaves the engine as it is. Load the pipeline "
                "again, or take the change back"
            )
            raise SpecError(document.problem((changed[0],), message))


def _options(spec: EngineSpec, batch: int | None) -> BuildOptions:
    profile = spec.profile
    return BuildOptions(
        tf32=spec.tf32,
        float16=spec.float16,
        input_shape=spec.input_shape,
        profile=(profile.min, profile.opt, profile.max) if profile else None,
        batch=batch or 1,
    )
