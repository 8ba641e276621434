"""The callers of a function and what it calls, over the modules of the workspace. Spec: 12 §3.4."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from harnpy.lsp.descriptions import header
from harnpy.lsp.document import Document
from harnpy.lsp.names import Mention, mentions_everywhere, names
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast

if TYPE_CHECKING:
    from harnpy.lsp.names import Meaning

_CALLABLE = frozenset(["fn", "tool", "method", "pipeline"])
_BODIES = (ast.FnDecl, ast.ToolDecl, ast.Pipeline, ast.Override)
_KINDS = {
    "fn": lsp.SymbolKind.Function,
    "tool": lsp.SymbolKind.Function,
    "method": lsp.SymbolKind.Method,
    "pipeline": lsp.SymbolKind.Module,
}


def prepare(
    workspace: Workspace, document: Document, params: lsp.CallHierarchyPrepareParams
) -> list[lsp.CallHierarchyItem]:
    """Return the function whose name is at a position."""
    mention = names(workspace, document).at(document.text.offset(params.position))
    item = None if mention is None else _item_of(workspace, mention.meaning)
    return [] if item is None else [item]


def incoming(
    workspace: Workspace, params: lsp.CallHierarchyIncomingCallsParams
) -> list[lsp.CallHierarchyIncomingCall]:
    """Return the callers of a function: other functions, and files in their statements."""
    meaning = _meaning(workspace, params.item)
    found: dict[tuple[str, int], lsp.CallHierarchyIncomingCall] = {}
    for document, mention in mentions_everywhere(workspace, meaning) if meaning is not None else ():
        if not _is_call(document, mention):
            continue
        caller = _enclosing(document, mention.start)
        key = document.uri, -1 if caller is None else document.place(caller.start)
        if key not in found:
            item = _file(document) if caller is None else _declared(document, caller)
            found[key] = lsp.CallHierarchyIncomingCall(item, [])
        ranges = [*found[key].from_ranges, document.text.range(mention.start, mention.end)]
        found[key].from_ranges = ranges
    return list(found.values())


def outgoing(
    workspace: Workspace, params: lsp.CallHierarchyOutgoingCallsParams
) -> list[lsp.CallHierarchyOutgoingCall]:
    """Return what a function calls that is declared in a file."""
    document = workspace.at(params.item.uri)
    if document is None:
        return []
    start, end = document.text.span(params.item.range)
    is_file = params.item.kind == lsp.SymbolKind.File
    found: dict[Meaning, lsp.CallHierarchyOutgoingCall] = {}
    for mention in names(workspace, document).mentions:
        if not start <= mention.start < end or not _is_call(document, mention):
            continue
        if is_file and _enclosing(document, mention.start) is not None:
            continue
        if mention.meaning not in found:
            item = _item_of(workspace, mention.meaning)
            if item is None:
                continue
            found[mention.meaning] = lsp.CallHierarchyOutgoingCall(item, [])
        call = found[mention.meaning]
        call.from_ranges = [*call.from_ranges, document.text.range(mention.start, mention.end)]
    return list(found.values())


def _is_call(document: Document, mention: Mention) -> bool:
    """Return whether a name is called where it stands: `f(x)`, `x.f()`, `x |> f`."""
    if mention.declares or mention.meaning.kind not in _CALLABLE:
        return False
    spot = document.spot(mention.start)
    around = () if spot is None else tuple(reversed(spot.nodes))
    for node, outer in zip(around, [*around[1:], None], strict=True):
        if isinstance(node, ast.Call | ast.MethodCall):
            return node.name == mention.meaning.name
        if isinstance(node, ast.Name):
            return isinstance(outer, ast.Pipe) and node is outer.right
        if isinstance(node, ast.Pipeline):
            return node.extends == mention.meaning.name
    return False


def _enclosing(document: Document, offset: int) -> ast.Node | None:
    """Return the innermost function around an offset."""
    spot = document.spot(offset)
    nodes: Iterable[ast.Node] = () if spot is None else reversed(spot.nodes)
    return next((node for node in nodes if isinstance(node, _BODIES)), None)


def _meaning(workspace: Workspace, item: lsp.CallHierarchyItem) -> Meaning | None:
    document = workspace.at(item.uri)
    if document is None:
        return None
    mention = names(workspace, document).at(document.text.offset(item.selection_range.start))
    return None if mention is None else mention.meaning


def _item_of(workspace: Workspace, meaning: Meaning) -> lsp.CallHierarchyItem | None:
    """Return a function that is declared in a file; None for all else."""
    home = None if meaning.uri is None or meaning.kind not in _CALLABLE else workspace.at(meaning.uri)
    node = None if home is None else _enclosing(home, meaning.start)
    if home is None or node is None or getattr(node, "name", None) != meaning.name:
        return None
    return _declared(home, node, _KINDS[meaning.kind])


def _declared(
    document: Document, node: ast.Node, kind: lsp.SymbolKind | None = None
) -> lsp.CallHierarchyItem:
    name: str = node.name  # type: ignore[attr-defined]
    return lsp.CallHierarchyItem(
        name,
        kind or (lsp.SymbolKind.Module if isinstance(node, ast.Pipeline) else lsp.SymbolKind.Function),
        document.uri,
        document.text.range(*document.span(node)),
        document.text.range(*document.name_span(node, name)),
        detail=header(document, node),
    )


def _file(document: Document) -> lsp.CallHierarchyItem:
    """The statements of a file, which call, too."""
    name = document.uri.rpartition("/")[2]
    whole = document.text.range(0, len(document.source))
    return lsp.CallHierarchyItem(name, lsp.SymbolKind.File, document.uri, whole, document.text.range(0, 0))
