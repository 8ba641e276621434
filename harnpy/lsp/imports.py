"""Which modules offer a name, and the edit that imports it. Spec: 12 §3.5."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from harnpy.syntax import ast
from harnpy.syntax.comments import comments_of
from harnpy.syntax.diagnostic import Edit
from harnpy.syntax.lexer import LexError, shebang_end
from harnpy.vm.modules import EXTENSION, Surface

if TYPE_CHECKING:
    from harnpy.lsp.document import Document
    from harnpy.lsp.workspace import Workspace

_BLANK_LINE = re.compile(r"[ \t]*\r?\n[ \t]*\r?\n")


def modules_offering(workspace: Workspace, document: Document, name: str) -> Iterator[str]:
    """Yield what an import of a name may have as its path, the `std/…` modules first."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    for path in document.knowledge.modules():
        place = workspace.module(document, path)
        text = None if place is None else workspace.text_at(place)
        if text is not None and word.search(text) and _offers(workspace.surface(text), name):
            yield path
    here = None if document.path is None else os.path.dirname(document.path)
    for place in workspace.paths() if here is not None else ():
        if place == document.path:
            continue
        text = workspace.text_at(place)
        if text is not None and word.search(text) and _offers(workspace.surface(text), name):
            path = os.path.relpath(place, here).replace(os.sep, "/")
            yield path.removesuffix(EXTENSION)


def offered_elsewhere(workspace: Workspace, document: Document) -> Iterator[tuple[str, str]]:
    """Yield the names that other modules offer, each with an import's path, the `std/…` modules first."""
    for path in document.knowledge.modules():
        place = workspace.module(document, path)
        for name in () if place is None else workspace.offered(place):
            yield name, path
    here = None if document.path is None else os.path.dirname(document.path)
    for place in workspace.paths() if here is not None else ():
        if place != document.path:
            path = os.path.relpath(place, here).replace(os.sep, "/").removesuffix(EXTENSION)
            for name in workspace.offered(place):
                yield name, path


def _offers(surface: Surface, name: str) -> bool:
    """Return whether a module gives others a name when they list it; one that isn't for them is left out."""
    if name in surface.functions:
        return surface.is_open or name in surface.public
    return name in surface.offered


def import_edit(document: Document, path: str, name: str) -> Edit:
    """Return the edit that imports a name: in an import of the module that is there, else in a new one."""
    return Imports(document).edit(path, name)


class Imports:
    """The imports of a document, and where others go."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._items = [item for item in document.items if isinstance(item.node, ast.Import)]

    def edit(self, path: str, name: str) -> Edit:
        """Return the edit that imports a name."""
        source = self._document.source
        for item in self._items:
            node = item.node
            assert isinstance(node, ast.Import)
            if node.path == path and node.names is not None and not node.pub:
                start, end = item.start, item.end
                opening, closing = (source.find(mark, start, end) for mark in "{}")
                if 0 <= opening < closing:
                    return _listed(source, opening + 1, closing, name)
        line = f'import {{ {name} }} from "{path}"\n'
        if self._items:
            text = self._document.text
            at = text.line_start(text.line(self._items[-1].end) + 1)
            ends = at == 0 or source[at - 1] in "\r\n"
            return Edit(at, at, line if ends else f"\n{line}")
        at = self._beginning
        return Edit(at, at, f"{line}\n" if source[at:].strip() else line)

    @cached_property
    def _beginning(self) -> int:
        return _beginning(self._document)


def _listed(source: str, start: int, end: int, name: str) -> Edit:
    """The names between braces with one more, in their order if they have one."""
    inside = source[start:end]
    names = [each.strip() for each in inside.split(",") if each.strip()]
    plain = all(each.isidentifier() for each in names) and "\n" not in inside
    if not plain:
        at = start + len(inside.rstrip())
        comma = "" if inside.rstrip().endswith(",") or not names else ","
        return Edit(at, at, f"{comma} {name}")
    ordered = sorted([*names, name]) if names == sorted(names) else [*names, name]
    return Edit(start, end, f" {', '.join(ordered)} ")


def _beginning(document: Document) -> int:
    """Return where the first import goes: behind the comment at the top, if it stands alone."""
    source = document.source
    at = shebang_end(source)
    at += len(source[at:]) - len(source[at:].lstrip())
    try:
        comments = comments_of(source)
    except LexError:
        return at
    for comment in comments:
        if source[at : comment.start].strip():
            break
        blank = _BLANK_LINE.match(source, comment.end)
        if blank is not None:
            return blank.end()
    return at
