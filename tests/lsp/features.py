"""Every registered feature, asked about a place of a document: for tests that go through all of them."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from lsprotocol import types as lsp
from lsprotocol.converters import get_converter
from pygls.exceptions import JsonRpcException

from harnpy.lsp.capabilities import features
from harnpy.lsp.diagnostics import diagnostics
from harnpy.lsp.document import Document
from harnpy.lsp.workspace import Workspace

_CONVERTER = get_converter()
#: How many answers of a first request are asked about by a second one.
_FOLLOWED = 2


def params_of(method: str, document: Document, start: int, end: int, words: Random) -> Any:
    """Return what a request is about that a client might make at ``source[start:end]``."""
    text = document.text
    kind = typing.get_type_hints(lsp.METHOD_TO_TYPES[method][0])["params"]
    place = text.range(start, end)
    given: dict[str, Callable[[], Any]] = {
        "text_document": lambda: lsp.TextDocumentIdentifier(document.uri),
        "position": lambda: place.start,
        "positions": lambda: [place.start, place.end],
        "range": lambda: place,
        "query": lambda: document.source[start : start + 2].strip(),
        "new_name": lambda: words.choice(["renamed", "a", "f", "1", "", "while", "println"]),
        "previous_result_id": lambda: "none",
        "ch": lambda: words.choice("}\n"),
        "options": lambda: lsp.FormattingOptions(tab_size=2, insert_spaces=True),
        "context": lambda: _context(method, document, place),
    }
    fields = kind.__attrs_attrs__
    return kind(**{field.name: given[field.name]() for field in fields if field.name in given})


def _context(method: str, document: Document, place: lsp.Range) -> Any:
    if method == lsp.TEXT_DOCUMENT_REFERENCES:
        return lsp.ReferenceContext(include_declaration=True)
    if method == lsp.TEXT_DOCUMENT_CODE_ACTION:
        return lsp.CodeActionContext(diagnostics=[])
    return None


#: Requests about an answer of another one.
_SECOND = {
    lsp.COMPLETION_ITEM_RESOLVE: lsp.TEXT_DOCUMENT_COMPLETION,
    lsp.CODE_ACTION_RESOLVE: lsp.TEXT_DOCUMENT_CODE_ACTION,
    lsp.CODE_LENS_RESOLVE: lsp.TEXT_DOCUMENT_CODE_LENS,
    lsp.INLAY_HINT_RESOLVE: lsp.TEXT_DOCUMENT_INLAY_HINT,
    lsp.CALL_HIERARCHY_INCOMING_CALLS: lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY,
    lsp.CALL_HIERARCHY_OUTGOING_CALLS: lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY,
}
_ABOUT_ITEMS = {
    lsp.CALL_HIERARCHY_INCOMING_CALLS: lsp.CallHierarchyIncomingCallsParams,
    lsp.CALL_HIERARCHY_OUTGOING_CALLS: lsp.CallHierarchyOutgoingCallsParams,
}


def answers(
    workspace: Workspace, document: Document, start: int, end: int, words: Random
) -> Iterator[tuple[str, Any]]:
    """Yield what each feature answers, as it is sent: its result, or why it is refused."""
    known = features()
    first: dict[str, Any] = {}
    for method, feature in known.items():
        if method in _SECOND:
            continue
        params = params_of(method, document, start, end, words)
        if hasattr(params, "text_document"):
            first[method] = _asked(feature, workspace, document, params)
        else:
            first[method] = _asked(feature, workspace, params)
        yield method, _CONVERTER.unstructure(first[method])
    for method, before in _SECOND.items():
        items = getattr(first.get(before), "items", first.get(before))
        if method in known and isinstance(items, list):
            for item in items[:_FOLLOWED]:
                about = _ABOUT_ITEMS.get(method)
                asked = item if about is None else about(item=item)
                yield method, _CONVERTER.unstructure(_asked(known[method], workspace, asked))


def _asked(feature: Callable[..., Any], *given: Any) -> Any:
    try:
        return feature(*given)
    except JsonRpcException as refused:
        return str(refused)


def published(workspace: Workspace, document: Document) -> Any:
    """Return the diagnostics of a document as they are sent."""
    return _CONVERTER.unstructure(diagnostics(workspace, document))
