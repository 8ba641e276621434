"""Sources opened in a workspace, with `|` where the cursor is; no process is needed.

here = opened("fn f() { return x| }")
hover.hover(here.workspace, here.document, here.params(lsp.HoverParams))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import pytest
from lsprotocol import types as lsp

from harnpy.lsp.document import Document
from harnpy.lsp.uris import uri_of
from harnpy.lsp.workspace import Workspace

_Params = TypeVar("_Params")

#: The cursor. `||`, `|>`, and a bar between two operands and blanks, as in `int | nil`, are the program's.
_CURSOR = re.compile(r"""(?<!\|)\|(?![|>])(?:(?<![\w">)\]}]\ \|)|(?!\ [\w"(\[{]))""")


class Opened(NamedTuple):
    """Open documents, and the one with the cursor; without a cursor it is the first, at its beginning."""

    workspace: Workspace
    document: Document
    offset: int
    root: str

    @property
    def position(self) -> lsp.Position:
        return self.document.text.position(self.offset)

    def params(self, kind: type[_Params], **more: Any) -> _Params:
        """Return the parameters of a request: the document, the cursor if the kind has one, and others."""
        fields = {field.name for field in kind.__attrs_attrs__}  # type: ignore[attr-defined]
        here = {
            "text_document": lsp.TextDocumentIdentifier(self.document.uri),
            "position": self.position,
        }
        return kind(**{name: value for name, value in here.items() if name in fields}, **more)

    def file(self, name: str) -> Document:
        """Return another of the open documents."""
        return self.workspace.documents[uri_of(f"{self.root}/{name}")]

    def at(self, words: str, name: str | None = None) -> lsp.Position:
        """Return where words stand first, in a document: that with the cursor unless another is named."""
        document = self.document if name is None else self.file(name)
        return document.text.position(document.source.index(words))

    def text_of(self, place: lsp.Range, name: str | None = None) -> str:
        """Return what stands in a range."""
        document = self.document if name is None else self.file(name)
        start, end = document.text.span(place)
        return document.source[start:end]


class Open(Protocol):
    """``sources``: the text of `main.harn`, or texts by names of files. ``root``: the folder they are in.

    Files that are on disk alone are written there by the test.
    """

    def __call__(
        self,
        sources: str | Mapping[str, str],
        root: str | Path = "/project",
        encoding: lsp.PositionEncodingKind = lsp.PositionEncodingKind.Utf16,
    ) -> Opened: ...


def open_all(
    sources: str | Mapping[str, str],
    root: str | Path = "/project",
    encoding: lsp.PositionEncodingKind = lsp.PositionEncodingKind.Utf16,
) -> Opened:
    texts = {"main.harn": sources} if isinstance(sources, str) else sources
    workspace = Workspace([str(root)], encoding)
    found: list[tuple[Document, int]] = []
    for name, text in texts.items():
        cursors = [match.start() for match in _CURSOR.finditer(text)]
        assert len(cursors) <= 1, f"{name} has {len(cursors)} cursors"
        source = text if not cursors else text[: cursors[0]] + text[cursors[0] + 1 :]
        document = workspace.open(uri_of(f"{root}/{name}"), source, 1)
        found += [(document, at) for at in cursors]
    assert len(found) <= 1, "more than one file has a cursor"
    # What one imports may have been opened behind it.
    for document in workspace.documents.values():
        workspace.refresh(document)
    document, offset = found[0] if found else (next(iter(workspace.documents.values())), 0)
    return Opened(workspace, document, offset, str(root))


@pytest.fixture
def opened() -> Open:
    """Return a function that opens sources: see `Open`."""
    return open_all
