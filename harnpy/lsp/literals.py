"""What is around a place in a text: comments, strings, brackets, keys of literals. Spec: 12 §3.3."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from harnpy.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.environment import Environment
    from harnpy.check.knowledge import Knowledge

_MARKS = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|r"[^"\n]*(?:"|\Z|(?=\n))|"""|"|[{}]', re.DOTALL)
_IN_STRING = re.compile(r'\\.|\$\{|"|\n', re.DOTALL)
_IN_TEXT = re.compile(r'\\.|\$\{|"""', re.DOTALL)
_BRACKETS = re.compile(r'//[^\n]*|/\*.*?\*/|"""(?:.*?)"""|"(?:[^"\\\n]|\\.)*"|[(\[{]|[)\]}]', re.DOTALL)
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


class Around(NamedTuple):
    """``kind``: ``code``, ``comment`` or ``string``; ``start`` is where the string or comment begins."""

    kind: str
    start: int


def around(source: str, start: int, offset: int) -> Around:
    """Return what an offset is in; ``start`` is an offset in code before it."""
    at = start
    #: Strings with code in them that is open, with the depth of its braces.
    open_: list[tuple[int, re.Pattern[str], int]] = []
    depth = 0
    string: tuple[int, re.Pattern[str]] | None = None
    while True:
        found = (string[1] if string else _MARKS).search(source, at, offset)
        if found is None:
            return Around("string", string[0]) if string else Around("code", offset)
        mark, at = found[0], found.end()
        if string is not None:
            if mark == "${":
                open_.append((*string, depth))
                string, depth = None, 0
            elif not mark.startswith("\\"):
                # A string of one line ends with it, closed or not.
                string = None
        elif mark in ('"', '"""'):
            string = found.start(), _IN_TEXT if mark == '"""' else _IN_STRING
        elif mark == "{":
            depth += 1
        elif mark == "}":
            if open_ and not depth:
                *string_, depth = open_.pop()
                string = string_[0], string_[1]  # type: ignore[assignment]
            depth -= string is None
        elif at == offset and not _is_closed(mark):
            return Around("string" if mark.startswith("r") else "comment", found.start())


def _is_closed(mark: str) -> bool:
    if mark.startswith("/*"):
        return len(mark) >= 4 and mark.endswith("*/")
    return mark.startswith("r") and len(mark) > 2 and mark.endswith('"')


def closing(text: str, offset: int) -> str:
    """Return what closes the brackets that the line before an offset opens, if the text leaves some open.

    With that, what is below the line is read as it was before it was typed.
    """
    lacking = len(_opened(text))
    end = text.find("\n", offset)
    rest = text[offset : end if end >= 0 else len(text)]
    if not lacking or rest.strip():
        return ""
    open_ = _opened(text[text.rfind("\n", 0, offset) + 1 : offset])
    return "".join(_CLOSERS[each] for each in reversed(open_[max(len(open_) - lacking, 0) :]))


def _opened(text: str) -> list[str]:
    """Return the brackets that a text leaves open."""
    found: list[str] = []
    for mark in _BRACKETS.findall(text):
        if mark in _CLOSERS:
            found.append(mark)
        elif mark in _CLOSERS.values() and found:
            found.pop()
    return found


class Argument(NamedTuple):
    """A place in an argument of a call: ``path`` leads from the argument to it, by keys and indexes.

    ``function`` is a builtin. ``place`` is the argument's number.
    """

    function: str
    place: int
    path: tuple[str | int, ...]

    @property
    def whole(self) -> tuple[str | int, ...]:
        return (self.place, *self.path)


def argument_of(nodes: Sequence[ast.Node], knowledge: Knowledge, environment: Environment) -> Argument | None:
    """Return the argument that the innermost of some nodes is in; None outside of calls of builtins.

    The last key of the path is that of the entry whose value the innermost node is.
    """
    path: list[str | int] = []
    for outer, inner in zip(reversed(nodes[:-1]), reversed(nodes), strict=False):
        if isinstance(outer, ast.DictEntry):
            if inner is not outer.key:
                path.insert(0, key_of(outer))
        elif isinstance(outer, ast.List):
            path.insert(0, next(i for i, item in enumerate(outer.items) if item is inner))
        elif isinstance(outer, ast.Call):
            place = next((i for i, arg in enumerate(outer.args) if arg is inner), None)
            return (
                None if place is None else _forwarded(outer.name, place, tuple(path), knowledge, environment)
            )
        elif not isinstance(outer, ast.Dict):
            return None
    return None


def _forwarded(
    name: str, place: int, path: tuple[str | int, ...], knowledge: Knowledge, environment: Environment
) -> Argument | None:
    """Return the argument as the builtin gets it to which a function of a module passes it on."""
    module = environment.module_of(name)
    if module is not None and name not in environment.called_anywhere:
        passed = knowledge.forwarded(module, name)
        if passed is not None:
            builtin, taken = passed
            return next((Argument(builtin, i, path) for i, own in enumerate(taken) if own == place), None)
    known = knowledge.is_builtin(name) and name not in environment.called_anywhere
    return Argument(name, place, path) if known else None


def key_of(entry: ast.Node) -> str:
    """Return the key of a dict's entry, "" if it is computed."""
    key = entry.key if isinstance(entry, ast.DictEntry) else None
    return key.value if isinstance(key, ast.Str) else ""


def keys_given(node: ast.Dict | ast.StructLit) -> set[str]:
    """Return the keys that are written in a literal."""
    return {key_of(entry) for entry in node.entries}
