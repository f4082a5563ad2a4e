"""A pipeline file read, with the registries that it names; an engine file is the smallest one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trtpatch.catalog import Catalog
from trtpatch.engines.files import is_engine, siblings
from trtpatch.errors import EngineError, MatchError, SpecError, TrtpatchError
from trtpatch.spec import yamlfile
from trtpatch.spec.pipeline import PipelineSpec
from trtpatch.spec.validate import nearest, validate

REGISTRY = "registry.yaml"


def read_pipeline(path: Path) -> tuple[yamlfile.Document, PipelineSpec]:
    """Read a pipeline file; of an engine file, what a file would say that names it alone.

    Raises:
        SpecError: it has mistakes.
    """
    if is_engine(path):
        document = yamlfile.Document(str(path), {"engine": path.name})
    else:
        document = yamlfile.load(path)
    return document, validate(PipelineSpec, document)


def read_catalog(document: yamlfile.Document, spec: PipelineSpec) -> Catalog:
    """What is on offer for a pipeline file.

    Raises:
        SpecError: a registry that it names is not there, or has mistakes.
    """
    folder = Path(document.file).parent
    problems = [
        document.problem(
            ("registry", index),
            f"registry {name!r} is not there.{nearest(name, siblings(folder / name))}",
        )
        for index, name in enumerate(spec.registry)
        if not (folder / name).exists()
    ]
    if problems:
        raise SpecError(*problems)
    return Catalog([folder / name for name in spec.registry])


def registry_hint(
    document: yamlfile.Document, spec: PipelineSpec, find: Callable[[Catalog], object]
) -> str:
    """Say so where a registry beside the pipeline file, which it does not name, would do.

    Args:
        document: the file, and `spec` what it says.
        find: raises an error where a catalog does not have what is looked for.
    """
    folder = Path(document.file).parent
    if REGISTRY in spec.registry or not (folder / REGISTRY).is_file():
        return ""
    try:
        find(Catalog([folder / name for name in (*spec.registry, REGISTRY)]))
    except TrtpatchError:
        return ""
    names, name = ", ".join((*spec.registry, REGISTRY)), Path(document.file).name
    into = "in the pipeline file" if document.values else f"and 'engine: {name}' in a pipeline file"
    return f"\n{REGISTRY} beside {name} has what is missing: write 'registry: [{names}]' {into}"


@contextmanager
def blamed(document: yamlfile.Document, *where: yamlfile.Key) -> Iterator[None]:
    """Put a place in the pipeline file before what does not fit there."""
    try:
        yield
    except (EngineError, MatchError) as error:
        if not document.values:  # an engine file, which the message names
            raise
        raise type(error)(str(document.problem(where, str(error)))) from None
