"""Names of classes: from a labels file, and held against the classes that a chain finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trtpatch.engines import EngineInfo
from trtpatch.errors import MatchError, SpecError
from trtpatch.plan import Plan
from trtpatch.spec.yamlfile import MAX_BYTES, Document


def read_labels(
    document: Document, labels: str | tuple[str, ...] | None, folder: Path
) -> tuple[str, ...]:
    """Class names from the pipeline file: a list, or a text file with one name a line.

    Raises:
        SpecError: the file cannot be read, is empty, or a line between two names is.
    """
    if labels is None or isinstance(labels, tuple):
        return labels or ()
    path = folder / labels
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES} bytes, which no list of class names is")
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n").rstrip()
        names = tuple(map(str.strip, text.split("\n")))
        if not text:
            raise ValueError("there is no name in it")
        if "" in names:
            empty = names.index("") + 1
            raise ValueError(f"line {empty} is empty, and each class has a line; give it a name")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, UnicodeDecodeError):
            reason = "not text in UTF-8"
        message = f"labels file {str(path)!r} cannot be read: {reason}"
        raise SpecError(document.problem(("labels",), message)) from None
    return names


def check_names(
    document: Document, labels: tuple[str, ...], info: EngineInfo, plan: Plan, *, chosen: bool
) -> Iterator[str]:
    """Hold the names of the classes against the classes that the chain finds in the outputs.

    Args:
        document: the pipeline file, and `labels` that it gives.
        info: of the engine, whose metadata may name the classes as well.
        plan: the chain, bound to the engine.
        chosen: whether the user chose the chain; where nobody did, other numbers in the metadata
            tell that it is not for this engine.

    Yields:
        What the user is to be told.

    Raises:
        SpecError: there are fewer labels than classes.
        MatchError: the chain is not for this engine.
    """
    told = info.metadata.names
    for patch, count in _classes_found(plan):
        if labels and count != len(labels):
            each = f"expected a name for each of the {count} classes that {patch} finds"
            what = f"{each}, found {len(labels)}"
            if count > len(labels):
                raise SpecError(document.problem(("labels",), what))
            yield f"labels: {what}; are they for another model?"
        if told and count != len(told):
            what = (
                f"{info.path}: its metadata name {len(told)} classes"
                f" ({', '.join(told[:3])}{', ...' if len(told) > 3 else ''}), but {patch} finds"
                f" {count} in its outputs"
            )
            if not chosen:
                raise MatchError(
                    f"{what}, so these hold something else as well, such as key points or an"
                    " angle. Name the rule that knows them with 'rule:', or a 'chain:'"
                )
            if not labels:
                yield what


def _classes_found(plan: Plan) -> Iterator[tuple[str, int]]:
    """Each patch that tells classes apart, and how many."""
    for step in plan.patch_steps:
        count = step.sizes.get("C")
        if isinstance(count, int) and any(
            tensor.written and tensor.name.endswith("_classes") for tensor in step.tensors
        ):
            yield step.name, count
