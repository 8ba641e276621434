"""Completion and documentation in a cell: what the language server knows, and what ran. Spec: 12 §5.4."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types as lsp

from harnpy.cli.repl import described
from harnpy.lsp import completion, hover
from harnpy.lsp.text import Text
from harnpy.lsp.workspace import Workspace

if TYPE_CHECKING:
    from harnpy.cli.repl import Shell
    from harnpy.lsp.document import Document

_ENCODING = lsp.PositionEncodingKind.Utf32
#: A variable, perhaps with keys behind it, and what is being typed behind the last dot.
_MEMBER = re.compile(r"(?<![\w.)\]])([^\W\d]\w*(?:\.[^\W\d]\w*)*)\.(\w*)\Z")
_TYPED = re.compile(r"\w*\Z")
_WORD = re.compile(r"[^\W\d]\w*")
_COMMAND = re.compile(r"\s*:\w*\Z")


class Match(NamedTuple):
    """``text`` replaces the cell from ``start`` on, up to the cursor."""

    text: str
    kind: str


class Answers:
    """``ran`` are the texts of the cells that ran, in their order."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self._workspace = Workspace(encoding=_ENCODING)
        self._document: Document | None = None

    def matches(self, shell: Shell | None, cell: str, cursor: int) -> tuple[int, list[Match]]:
        """Return what may stand at the cursor, and where the word begins that it replaces."""
        before = cell[:cursor]
        if shell is not None and _COMMAND.match(before):
            start = before.index(":")
            names = [name for name in shell.command_names if name.startswith(before[start:])]
            return start, [Match(name, "keyword") for name in names]
        typed = _TYPED.search(before)
        assert typed is not None
        found: dict[str, Match] = {}
        member = _MEMBER.search(before)
        if shell is not None and member is not None and _root(member[1]) in shell.session.values:
            # A value that is there is more certain than what could be inferred of it.
            found = {name: Match(name, "property") for name in shell.members(member[1])}
        else:
            document, offset = self._at(cell, cursor)
            params = lsp.CompletionParams(
                lsp.TextDocumentIdentifier(document.uri), document.text.position(offset)
            )
            items = completion.completion(self._workspace, document, params).items
            for item in sorted(items, key=lambda item: item.sort_text or item.label):
                kind = "" if item.kind is None else lsp.CompletionItemKind(item.kind).name.lower()
                found[item.label] = Match(item.insert_text or item.label, kind)
            if shell is not None and member is None:
                found |= {
                    name: Match(name, "variable") for name in shell.session.names() if name not in found
                }
        word = typed[0].lower()
        return typed.start(), [match for name, match in found.items() if name.lower().startswith(word)]

    def markdown(self, shell: Shell | None, cell: str, cursor: int) -> str | None:
        """Return what is known of the name at the cursor; None where there is none."""
        document, offset = self._at(cell, cursor)
        params = lsp.HoverParams(lsp.TextDocumentIdentifier(document.uri), document.text.position(offset))
        found = hover.hover(self._workspace, document, params)
        parts = []
        if found is not None and isinstance(found.contents, lsp.MarkupContent):
            parts.append(found.contents.value)
        word = next((word for word in _WORD.finditer(cell) if word.start() <= cursor <= word.end()), None)
        bound = {} if shell is None else shell.session.values
        if word is not None and word[0] in bound and not cell[: word.start()].endswith("."):
            parts.append(f"```text\n{described(bound[word[0]])}\n```")
        return "\n\n".join(parts) or None

    def _at(self, cell: str, cursor: int) -> tuple[Document, int]:
        """Return the document of all cells, with this one last, and where the cursor is in it."""
        before = "".join(f"{text}\n" for text in self.ran)
        text = before + cell
        if self._document is None:
            self._document = self._workspace.open("harn-notebook:cells", text)
        else:
            self._workspace.edit(self._document, Text(text, _ENCODING), None)
        return self._document, len(before) + cursor


def _root(path: str) -> str:
    return path.partition(".")[0]
