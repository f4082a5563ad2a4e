"""From a chain of patches and an engine's real tensors to a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trtpatch import plan
from trtpatch.catalog import Patch
from trtpatch.engines import Tensor as EngineTensor
from trtpatch.errors import MatchError
from trtpatch.launches import solve_launch
from trtpatch.match import model_sizes
from trtpatch.plan import Buffer, EngineStep, PatchStep, Plan, Region, Setting, Step
from trtpatch.sizes import counts, size_of, solve_sizes, written_shape
from trtpatch.spec.dtypes import ITEMSIZE
from trtpatch.spec.expressions import Expression, Value
from trtpatch.spec.patch import ParamValue, TensorSpec
from trtpatch.spec.ports import PORTS, FrameLayout
from trtpatch.spec.validate import choose

Params = Mapping[str, Mapping[str, ParamValue]]


def make_plan(
    chain: Sequence[Patch | None],
    *,
    inputs: Mapping[str, tuple[EngineTensor, ...]],
    outputs: Mapping[str, tuple[EngineTensor, ...]],
    params: Params,
    batch: int,
    frame_layout: FrameLayout = "rgb",
) -> Plan:
    """Bind a chain to an engine.

    Args:
        chain: patches in order, None in the engine's place.
        inputs, outputs: the engine's tensors, with their real shapes, under the names that the
            patches use.
        params: for a patch's name, the checked values that differ from its defaults.
        batch: frames that go through at once.
        frame_layout: how the bytes of the frames lie.

    Raises:
        MatchError: a contract does not fit its tensors; both sides are named.
    """
    draft = _Draft(params, batch, frame_layout, inputs, outputs)
    for patch in chain:
        if patch is None:
            draft.add_engine()
        else:
            draft.add_patch(patch)
    given = [name for patch in chain if patch for name in patch.spec.outputs]
    results = tuple(name for name in given if name in PORTS and PORTS[name].result)
    if not results:
        wanted = " or ".join(port.name for port in PORTS.values() if port.result)
        raise MatchError(f"no patch of the chain gives a result: {wanted}")
    return draft.finish(results, tuple(sorted(draft.loose)))


def plan_patches(
    patches: Sequence[Patch],
    *,
    inputs: Mapping[str, tuple[EngineTensor, ...]],
    outputs: Mapping[str, EngineTensor],
    params: Params,
    batch: int,
    model_size: tuple[int, int] | None = None,
    frame_layout: FrameLayout = "rgb",
) -> Plan:
    """Bind patches without an engine, for tests and measurements.

    Args:
        patches: in order.
        inputs: what they take, by field, such as `candidates_boxes`; a group has several tensors.
        outputs: tensors that they give and whose shapes the inputs do not decide.
        params: for a patch's name, the checked values that differ from its defaults.
        batch: images.
        model_size: height and width of the model's picture in pixels.
        frame_layout: how the bytes of the frames lie.

    Raises:
        MatchError: a contract does not fit its tensors.
    """
    named = {name: (tensor,) for name, tensor in outputs.items()}
    draft = _Draft(params, batch, frame_layout, named, {})
    if model_size is not None:
        draft.sizes.update(model_H=model_size[0], model_W=model_size[1])
    for name, group in inputs.items():
        buffers = tuple(
            draft.add_buffer(f"{name}.{index}", tensor.dtype, tensor.shape, "work")
            for index, tensor in enumerate(group)
        )
        shapes = tuple(tensor.shape for tensor in group)
        draft.known[name] = plan.Tensor(name, group[0].dtype, shapes, buffers)
    for patch in patches:
        draft.add_patch(patch)
    return draft.finish((), ())


@dataclass
class _Draft:
    """A plan in the making.

    Attributes:
        known: what the next patch can take, under the name of its field in `Args`.
        sizes: what all patches know.
        loose: names of tensors that a patch gives and no later step takes.
    """

    params: Params
    batch: int
    frame_layout: FrameLayout
    engine_inputs: Mapping[str, tuple[EngineTensor, ...]]
    engine_outputs: Mapping[str, tuple[EngineTensor, ...]]
    buffers: dict[str, Buffer] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    known: dict[str, plan.Tensor] = field(default_factory=dict)
    loose: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        inputs = [t for group in self.engine_inputs.values() for t in group]
        self.sizes: dict[str, Value] = {"N": self.batch, **model_sizes(inputs)}
        for name, tensor in PORTS["frame"].fields():
            dtype = "uint64" if tensor.ragged else tensor.dtype
            shape = (self.batch,) if tensor.ragged else (self.batch, 3)
            self.add_buffer(name, dtype, shape, "frame")
            self.known[name] = plan.Tensor(
                name, tensor.dtype, (shape,), (name,), ragged=tensor.ragged
            )

    def add_buffer(self, name: str, dtype: str, shape: tuple[int, ...], region: Region) -> str:
        unique = name
        while unique in self.buffers:
            unique += "_"
        self.buffers[unique] = Buffer(unique, dtype, shape, region, cleared=region == "cleared")
        return unique

    def _engine_buffers(
        self, group: Sequence[EngineTensor], region: Region = "work"
    ) -> tuple[str, ...]:
        names = tuple(f"engine.{tensor.name}" for tensor in group)
        for name, tensor in zip(names, group, strict=True):
            if tensor.dtype not in ITEMSIZE:
                known = ", ".join(ITEMSIZE)
                raise MatchError(
                    f"the engine's tensor {tensor} is of a type that no buffer can have; these can:"
                    f" {known}. Export the model with a cast to one of them"
                )
            if name not in self.buffers:
                self.add_buffer(name, tensor.dtype, tensor.shape, region)
        return names

    def add_engine(self) -> None:
        made: dict[str, str] = {}
        for name, group in self.engine_outputs.items():
            names = self._engine_buffers(group)
            made.update({t.name: buffer for t, buffer in zip(group, names, strict=True)})
            shapes = tuple(t.shape for t in group)
            self.known[name] = plan.Tensor(name, group[0].dtype, shapes, names)
        given = {}
        for name, group in self.engine_inputs.items():
            for tensor in group:
                buffer = f"engine.{tensor.name}"
                if buffer not in self.buffers:
                    raise MatchError(
                        f"the engine's input {tensor} is written by no patch before it; a patch"
                        f" must give {name!r}"
                    )
                given[tensor.name] = buffer
        self.steps.append(EngineStep(given, made))

    def add_patch(self, patch: Patch) -> None:
        values = {name: spec.check(spec.default) for name, spec in patch.spec.params.items()}
        values.update(self.params.get(patch.name, {}))
        taken = [self._take(patch, *item) for item in patch.spec.inputs.items()]
        inputs = [tensor for group in taken for tensor in group]
        given = {name: group[0].shape for name, group in self.engine_inputs.items()}
        sizes = solve_sizes(patch, inputs, values, known=self.sizes, outputs=given)
        outputs = []
        for name, spec in patch.spec.outputs.items():
            outputs += self._give(patch, name, spec, sizes)
        scratch = [
            self._new(patch, "scratch", name, spec.dtype[0], spec.shape, sizes, cleared=spec.clear)
            for name, spec in patch.spec.scratch.items()
        ]
        self.known.update({tensor.name: tensor for tensor in outputs})
        self.loose -= {tensor.name for tensor in inputs}
        self.loose |= {*patch.spec.outputs} - {*PORTS, *self.engine_inputs}
        settings = tuple(
            self._setting(patch, name, values[name])
            for name, spec in patch.spec.params.items()
            if spec.runtime
        )
        baked = {n: v for n, v in values.items() if not patch.spec.params[n].runtime}
        launches = tuple(
            solve_launch(patch, i, one, sizes) for i, one in enumerate(patch.spec.launch)
        )
        tensors = (*inputs, *outputs, *scratch)
        if "frame" in patch.spec.inputs:
            baked["frame_layout"] = self._layout_for(patch)
        elsewhere = {*patch.spec.params, *counts(inputs, values)}  # in `Args` already
        own = {name: sizes[name] for name in sorted(sizes) if name not in elsewhere}
        self.steps.append(PatchStep(patch, own, baked, settings, tensors, launches))

    def _layout_for(self, patch: Patch) -> FrameLayout:
        if self.frame_layout not in patch.spec.frames:
            message = (
                f"takes frames that are {' or '.join(patch.spec.frames)}; these are"
                f" {self.frame_layout}. Give another 'frame' in the pipeline file, or another patch"
            )
            raise MatchError(patch.problem(("frames",), message))
        return self.frame_layout

    def _setting(self, patch: Patch, name: str, value: ParamValue) -> Setting:
        assert isinstance(value, (int, float))
        dtype = "float32" if patch.spec.params[name].type == "float" else "int32"
        buffer = self.add_buffer(f"{patch.name}.{name}", dtype, (1,), "frame")
        return Setting(name, dtype, value, buffer, room=name in patch.spec.sizing())

    def _take(self, patch: Patch, name: str, spec: TensorSpec | str) -> list[plan.Tensor]:
        """The tensors that the input `name` stands for, as earlier steps left them."""
        fields = [field for field, _ in PORTS[name].fields()] if name in PORTS else [name]
        for one in fields:
            if one not in self.known:
                what = f"port {name!r}" if name in PORTS else f"tensor {name!r}"
                hint = choose(one, self.known)
                message = f"takes the {what}, which no earlier step of the chain gives.{hint}"
                raise MatchError(patch.problem(("inputs", name), message))
        found = [replace(self.known[one], written=False) for one in fields]
        if isinstance(spec, TensorSpec):
            for tensor in found:
                self._check(patch, tensor, spec)
            found = [replace(tensor, grouped=bool(spec.levels)) for tensor in found]
        return found

    def _check(self, patch: Patch, tensor: plan.Tensor, spec: TensorSpec) -> None:
        wanted, given = "", ""
        if tensor.dtype not in spec.dtype:
            wanted, given = " or ".join(spec.dtype), tensor.dtype
        elif not spec.levels and len(tensor.buffers) > 1:
            wanted, given = "one tensor", str(len(tensor.buffers))
        if wanted:
            side = "outputs" if tensor.written else "inputs"
            message = f"takes {tensor.name} as {wanted}; the chain gives {given}"
            raise MatchError(patch.problem((side, tensor.name), message))

    def _give(
        self, patch: Patch, name: str, spec: TensorSpec | str, sizes: Mapping[str, Value]
    ) -> list[plan.Tensor]:
        if isinstance(spec, TensorSpec):
            if name in self.engine_inputs:
                group = self.engine_inputs[name]
                buffers = self._engine_buffers(group, _region(spec.clear))
                tensor = plan.Tensor(name, group[0].dtype, (group[0].shape,), buffers, written=True)
                self._check(patch, tensor, spec)
                return [tensor]
            dtype, cleared = spec.dtype[0], spec.clear
            return [self._new(patch, "outputs", name, dtype, spec.shape, sizes, cleared=cleared)]
        return [
            self._new(patch, "outputs", one, t.dtype, written_shape(t), sizes, cleared=t.cleared)
            for one, t in PORTS[name].fields()
        ]

    def _new(
        self,
        patch: Patch,
        side: str,
        name: str,
        dtype: str,
        written: Sequence[Expression],
        sizes: Mapping[str, Value],
        *,
        cleared: bool,
    ) -> plan.Tensor:
        shape = tuple(size_of(patch, (side, name), dim, sizes) for dim in written)
        buffer = self.add_buffer(f"{patch.name}.{name}", dtype, shape, _region(cleared))
        return plan.Tensor(name, dtype, (shape,), (buffer,), written=True)

    def finish(self, results: tuple[str, ...], more: tuple[str, ...]) -> Plan:
        fields = [one for port in results for one in PORTS[port].fields()]
        regions: dict[str, Region] = {n: "lazy" if t.lazy else "result" for n, t in fields}
        for name in more:
            regions[name] = "result"
        for name, region in regions.items():
            buffer = self.known[name].buffers[0]
            self.buffers[buffer] = replace(self.buffers[buffer], region=region)
        placed = plan.lay_out(self.buffers)
        return Plan(self.batch, self.frame_layout, tuple(self.steps), placed, results, more)


def _region(cleared: bool) -> Region:
    return "cleared" if cleared else "work"
