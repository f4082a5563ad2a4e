"""An author's own `#include`s, inlined: a compiler gets one text and never reads a file.

What a compiler reads by itself is missing from the cache's key, and an edited header would leave
the old kernel running.
"""

from __future__ import annotations

import os.path
import posixpath
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from trtpatch.errors import CompileError, Problem

WITHOUT_HEADERS = (
    "kernels use built-in types and patches/common.cuh, no headers: nothing may depend on what is "
    "installed. For float16 there are load() and store(); see patches/README.md"
)

_TOKEN = re.compile(
    r"""
    //(?:\\\n|[^\n])*  |  /\*.*?\*/                                # comments
    |  R"(?P<raw>[^()\s\\"]*)\(.*?\)(?P=raw)"                      # strings
    |  "(?:\\.|[^"\\\n])*"  |  '(?:\\.|[^'\\\n])'
    |  (?P<directive>
        (?:\#|%:)  (?:[ \t]|\\\n|/\*.*?\*/)*
        (?P<word>include(?:_next)?|import|embed)\b  [ \t]*
        (?:"(?P<name>[^"\n]*)"|<(?P<system>[^>\n]*)>)?
       )
    |  (?P<probe>__has_(?:include|embed)\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE = re.compile(r'^#line (\d+) "([^"\n]*)"$', re.MULTILINE)
_PRAGMA_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b.*$", re.MULTILINE)


def inline_includes(
    text: str, *, folder: Path, file_label: str, present: Collection[Path] = ()
) -> str:
    """Put the files that a kernel includes in place of its `#include "..."` lines.

    A name is looked up beside the file that includes it. A file may lie anywhere in the folder of
    patches. As with `#pragma once`, the compiler sees each file once.

    Args:
        text: of the kernel file.
        folder: the patch's folder, in which the kernel file lies.
        file_label: the kernel file's name in messages, `patches/decode_mine/kernel.cu`.
        present: files that the unit's text holds already; including one changes nothing.

    Returns:
        One text, with `#line` before and after each part of it.

    Raises:
        CompileError: a file is missing, unreadable, in a cycle or outside the folder of patches, or
            a header is asked for; every such line is in its `problems`.
    """
    inliner = _Inliner(folder, file_label, present)
    whole = inliner.expand(text, folder.resolve(), file_label, ())
    if inliner.problems:
        raise CompileError(
            f"{file_label}: cannot put what it includes into one text", problems=inliner.problems
        )
    return whole


def stray_includes(text: str, *, label: str) -> Iterator[Problem]:
    """Every place of a finished text at which a compiler would look for a file."""
    for match in _TOKEN.finditer(text):
        if match["directive"] or match["probe"]:
            what = " ".join(match[0].split())
            yield Problem(*place(text, match.start(), label=label), f"{what}: {WITHOUT_HEADERS}")


def place(text: str, offset: int, *, label: str) -> tuple[str, int, int]:
    """File, line and column of an offset into a text with `#line` in it.

    Args:
        text: one text.
        offset: index of a character.
        label: the file's name up to the first `#line`.
    """
    start = text.rfind("\n", 0, offset) + 1
    file, line, begin = label, 1, 0
    for match in _LINE.finditer(text, 0, start):
        file, line, begin = match[2], int(match[1]), match.end() + 1
    return file, line + text.count("\n", begin, start), offset - start + 1


def by_file(text: str) -> dict[str, str]:
    """What a text with `#line` in it has of each file, in the order in which they first come."""
    found: dict[str, str] = {}
    name, at = "", 0
    for match in (*_LINE.finditer(text), None):
        part = text[at : match.start() if match else None]
        found[name] = found.get(name, "") + part
        if match:
            name, at = match[2], match.end()
    return {name: whole for name, whole in found.items() if whole}


def source_line(text: str, file: str, line: int) -> str:
    """A line of a file in a text with `#line` in it; empty where there is none."""
    at, number = "", 1
    for row in text.splitlines():
        if match := _LINE.fullmatch(row):
            at, number = match[2], int(match[1])
        elif (at, number) == (file, line):
            return row
        else:
            number += 1
    return ""


def without_comments(text: str) -> str:
    """The text with a space for every character of a comment; offsets and lines stay."""
    return _TOKEN.sub(
        lambda match: re.sub(r"[^\n]", " ", match[0]) if match[0].startswith("/") else match[0],
        text,
    )


class _Inliner:
    """Holds what one kernel's files share: where they lie, which came already, what is wrong."""

    def __init__(self, folder: Path, file_label: str, present: Collection[Path]) -> None:
        self.problems: list[Problem] = []
        self._folder = folder.resolve()
        self._label_folder = posixpath.dirname(file_label)
        self._present = {path.resolve() for path in present}
        self._numbers: dict[Path, int] = {}

    def expand(self, text: str, folder: Path, label: str, within: tuple[Path, ...]) -> str:
        """The text of a file in `folder`, included through the files `within`."""
        text = _PRAGMA_ONCE.sub("", text)
        parts, at = [f'#line 1 "{label}"\n'], 0
        for match in _TOKEN.finditer(text):
            if not match["directive"]:
                continue
            _, line, column = place(text, match.start(), label=label)
            try:
                inner = self._included(match, folder, within)
            except ValueError as error:
                self.problems.append(Problem(label, line, column, str(error)))
                inner = ""
            parts += [text[at : match.start()], f'\n{inner}\n#line {line} "{label}"\n']
            at = match.end()
        return "".join([*parts, text[at:]])

    def _included(self, match: re.Match[str], folder: Path, within: tuple[Path, ...]) -> str:
        if match["word"] != "include" or match["name"] is None:
            raise ValueError(f"{' '.join(match[0].split())}: {WITHOUT_HEADERS}")
        name = match["name"]
        path = Path(os.path.realpath(folder / name))
        if path in self._present:
            return ""
        if path in within:
            names = " -> ".join(self._label(one) for one in (*within[within.index(path) :], path))
            raise ValueError(f"files include each other in a circle: {names}")
        if self._folder.parent not in path.parents:
            raise ValueError(
                f"{name!r} is outside the folder of patches, {self._folder.parent}; a patch may "
                "use its own files and those of patches beside it"
            )
        try:
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            from trtpatch.spec.validate import nearest

            there = [file.name for file in path.parent.glob("*.cuh")]
            raise ValueError(f"no file {path}.{nearest(path.name, there)}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from None
        # A guard, and not the text of the first place alone: that place may be in a false #if.
        guard = f"TRTPATCH_INCLUDED_{self._numbers.setdefault(path, len(self._numbers))}"
        inner = self.expand(text, path.parent, self._label(path), (*within, path))
        return f"#ifndef {guard}\n#define {guard}\n{inner}\n#endif"

    def _label(self, path: Path) -> str:
        relative = Path(os.path.relpath(path, self._folder)).as_posix()
        return posixpath.normpath(posixpath.join(self._label_folder, relative))
