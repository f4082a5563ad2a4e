"""A kernel's text, taken apart as far as the lint needs: functions, who calls whom, fields used.

This is no compiler. It knows comments, strings, braces and names, and is right for text that
compiles; what does not compile is the compiler's to tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from trtpatch.catalog import Patch
from trtpatch.compiler.includes import place, without_comments
from trtpatch.unit import author_text, common_text

_OPENING = re.compile(r"[{};]")
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_TRANSPARENT = re.compile(r'extern\s*"\s*"\s*$|namespace\b[^()]*$')
_TYPE = re.compile(r"\b(?:struct|class|union|enum)\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)")
_ATTRIBUTE = re.compile(
    r"__launch_bounds__\s*\([^()]*\)|__align__\s*\([^()]*\)|alignas\s*\([^()]*\)"
)
_TEMPLATE = re.compile(r"template\s*<[^<>]*(?:<[^<>]*>[^<>]*)*>")
_NAMED = re.compile(r"(\w+)\s*\($")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_TYPENAME = re.compile(r"\b(?:typename|class)\s+(\w+)")
_MEMBER = re.compile(r"\b(\w+)\s*(?:\.|::)\s*([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Use:
    """A field of `Args` that is named in the text.

    Attributes:
        certain: whether it is one of `Args`, and not of a type that a template leaves open.
        offset: in the text.
    """

    name: str
    certain: bool
    offset: int


@dataclass(frozen=True)
class Function:
    """A function or a type with what stands in its braces.

    Attributes:
        header: from the end of what stands before it to its brace.
        body: from brace to brace.
        start: offset of the header in the text; `body_start` of the body.
    """

    name: str
    header: str
    body: str
    start: int
    body_start: int

    @property
    def is_kernel(self) -> bool:
        """Whether it is launched."""
        return "__global__" in self.header

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name in it."""
        return frozenset(_WORD.findall(self.header + self.body))

    def uses(self) -> Iterator[Use]:
        """The fields of `Args` that it names."""
        owners = {"Args": True}
        for typename in {"Args", *_TYPENAME.findall(self.header)}:
            certain = typename == "Args"
            owners.setdefault(typename, certain)
            of_type = rf"\b{typename}\s*&?\s+&?\s*(\w+)\s*[,)]"
            found = re.findall(of_type, self.header + self.body)
            owners |= dict.fromkeys(found, certain)
        for text, start in ((self.header, self.start), (self.body, self.body_start)):
            for match in _MEMBER.finditer(text):
                if match[1] in owners:
                    yield Use(match[2], owners[match[1]], start + match.start(2))


@dataclass
class KernelText:
    """The text that stands behind the generated `Args`: common.cuh, then the author's files.

    Attributes:
        text: without comments, strings and directives, each blank in its place.
        functions: by name; overloads of one name one after the other.
        outside: what is in no function, such as constants.
    """

    patch: Patch
    text: str
    functions: dict[str, list[Function]] = field(default_factory=dict)
    outside: Function = Function("", "", "", 0, 0)
    _marked: str = ""

    @classmethod
    def read(cls, patch: Patch) -> KernelText:
        """Read a patch's kernel with what it includes.

        Raises:
            CompileError: the file cannot be read, or includes what cannot be inlined.
        """
        marked = common_text() + author_text(patch)
        plain = without_comments(marked)
        for pattern in (_STRING, _DIRECTIVE):
            plain = pattern.sub(_blank, plain)
        made = cls(patch, plain, _marked=marked)
        outside = plain
        for function in _functions(plain):
            made.functions.setdefault(function.name, []).append(function)
            end = function.body_start + len(function.body)
            outside = (
                outside[: function.start] + _spaces(plain[function.start : end]) + outside[end:]
            )
        made.outside = Function("", "", outside, 0, 0)
        return made

    @property
    def kernels(self) -> dict[str, Function]:
        """The functions that can be launched."""
        named = self.functions.items()
        return {name: one for name, many in named for one in many if one.is_kernel}

    def reached(self, names: Iterable[str]) -> list[Function]:
        """The named functions, all that they call, directly or not, and what is in none."""
        found: dict[str, list[Function]] = {"": [self.outside]}
        waiting = [name for name in (*names, *self.outside.words) if name in self.functions]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = self.functions[name]
                called = {word for one in found[name] for word in one.words}
                waiting += called & self.functions.keys()
        return [one for many in found.values() for one in many]

    def place(self, offset: int) -> tuple[str, int, int]:
        """File, line and column of an offset, the file as a path from here."""
        label, line, column = place(self._marked, offset, label="")
        return self.path(label), line, column

    def path(self, label: str) -> str:
        """The path of a file that the text names by a label such as `patches/x/kernel.cu`."""
        path = self.patch.folder.parent.parent / label
        return str(path) if path.is_file() else label


def _spaces(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _blank(match: re.Match[str]) -> str:
    text = match[0]
    return f'"{" " * (len(text) - 2)}"' if text.startswith('"') else _spaces(text)


def _functions(text: str) -> Iterator[Function]:
    """Every brace that is not inside another, with what stands before it."""
    before, at = 0, 0
    while match := _OPENING.search(text, at):
        at = match.end()
        if match[0] != "{":
            before = at
            continue
        header = text[before : match.start()]
        if _TRANSPARENT.search(header):
            before = at
            continue
        end = _closing(text, match.start())
        name = _name(header)
        if name:
            yield Function(name, header, text[match.start() : end], before, match.start())
        before = at = end


def _closing(text: str, opening: int) -> int:
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, opening):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _name(header: str) -> str:
    plain = _TEMPLATE.sub("", _ATTRIBUTE.sub("", header))
    if "(" in plain and "=" not in plain.partition("(")[0]:
        named = _NAMED.search(plain[: plain.index("(") + 1])
        return named[1] if named else ""
    kind = _TYPE.search(header)
    return kind[1] if kind else ""
