"""How a document is built: symbols, what can be folded, what a selection grows to, links. Spec: 12 §3.5."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby

from lsprotocol import types as lsp

from harnpy.lsp.descriptions import header
from harnpy.lsp.document import Document
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast
from harnpy.syntax.comments import Comment, comments_of
from harnpy.syntax.lexer import LexError

_KIND = lsp.SymbolKind
_KINDS: dict[type, lsp.SymbolKind] = {
    ast.FnDecl: _KIND.Function,
    ast.ToolDecl: _KIND.Function,
    ast.Pipeline: _KIND.Module,
    ast.Override: _KIND.Function,
    ast.SkillDecl: _KIND.Object,
    ast.EvalPack: _KIND.Object,
    ast.StructDecl: _KIND.Struct,
    ast.EnumDecl: _KIND.Enum,
    ast.InterfaceDecl: _KIND.Interface,
    ast.TypeDecl: _KIND.TypeParameter,
    ast.ImplDecl: _KIND.Class,
    ast.Field: _KIND.Field,
    ast.Variant: _KIND.EnumMember,
    ast.MethodSig: _KIND.Method,
}
#: What has parts that are symbols, too.
_PARTS = ("fields", "variants", "members", "methods")


def document_symbols(
    workspace: Workspace, document: Document, params: lsp.DocumentSymbolParams
) -> list[lsp.DocumentSymbol]:
    """Return what a document declares at its top, with what belongs to it."""
    return [symbol for item in document.items for symbol in _symbols(document, item.node)]


def _symbols(document: Document, node: ast.Node) -> Iterator[lsp.DocumentSymbol]:
    if isinstance(node, ast.Let):
        kind = _KIND.Variable if node.mutable else _KIND.Constant
        for name in ast.bound_names(node.target):
            yield _symbol(document, node, name, kind)
    elif type(node) in _KINDS:
        symbol = _symbol(document, node, node.name, _KINDS[type(node)])  # type: ignore[attr-defined]
        parts: Iterator[ast.Node] = chain.from_iterable(getattr(node, name, ()) for name in _PARTS)
        inside = list(parts)
        body = getattr(node, "body", None)
        inside += [
            one for one in getattr(body, "statements", ()) if isinstance(one, ast.FnDecl | ast.ToolDecl)
        ]
        symbol.children = [each for part in inside for each in _symbols(document, part)]
        if symbol.name:
            yield symbol


def _symbol(document: Document, node: ast.Node, name: str, kind: lsp.SymbolKind) -> lsp.DocumentSymbol:
    return lsp.DocumentSymbol(
        name,
        kind,
        document.text.range(*document.span(node)),
        document.text.range(*document.name_span(node, name)),
        detail=header(document, node) if isinstance(node, ast.FnDecl | ast.ToolDecl) else None,
    )


def workspace_symbols(workspace: Workspace, params: lsp.WorkspaceSymbolParams) -> list[lsp.WorkspaceSymbol]:
    """Return what the workspace declares under names that have the letters of the query in their order."""
    query = params.query.lower()
    found = []
    for path in workspace.paths():
        document = workspace.at_path(path)
        for item in document.items if document is not None else ():
            for symbol in _symbols(document, item.node):  # type: ignore[arg-type]
                letters = iter(symbol.name.lower())
                if all(letter in letters for letter in query):
                    place = lsp.Location(document.uri, symbol.selection_range)  # type: ignore[union-attr]
                    found.append(lsp.WorkspaceSymbol(place, symbol.name, symbol.kind))
    return found


def folding_ranges(
    workspace: Workspace, document: Document, params: lsp.FoldingRangeParams
) -> list[lsp.FoldingRange]:
    """Return what can be folded: blocks and literals of several lines, comments, imports."""
    lines = {start: end for start, end in sorted(_blocks(document)) if end > start}
    found = [lsp.FoldingRange(start, end) for start, end in lines.items()]
    found += _runs(document, _comment_lines(document), lsp.FoldingRangeKind.Comment)
    found += _runs(document, _import_lines(document), lsp.FoldingRangeKind.Imports)
    return found


def _blocks(document: Document) -> Iterator[tuple[int, int]]:
    """Yield the first line of each node of several lines, and the line before its closing bracket."""
    text = document.text
    for item in document.items:
        for node in ast.walk(item.node):
            if isinstance(node, ast.Import):
                continue
            start, end = document.span(node)
            first, last = text.line(start), text.line(end)
            if last > first:
                closes = text.source[end - 1 : end] in ("}", ")", "]")
                yield first, last - 1 if closes else last


def _comments(document: Document) -> tuple[Comment, ...]:
    try:
        return comments_of(document.source)
    except LexError:
        return ()


def _comment_lines(document: Document) -> Iterator[int]:
    text = document.text
    for comment in _comments(document):
        line = text.line(comment.start)
        if not text.source[text.line_start(line) : comment.start].strip():
            yield from range(line, text.line(comment.end) + 1)


def _import_lines(document: Document) -> Iterator[int]:
    for item in document.items:
        if isinstance(item.node, ast.Import):
            start, end = document.text.line(item.start), document.text.line(item.end)
            yield from range(start, end + 1)


def _runs(document: Document, lines: Iterator[int], kind: lsp.FoldingRangeKind) -> Iterator[lsp.FoldingRange]:
    """Yield the runs of lines that follow each other."""
    for _, run in groupby(enumerate(dict.fromkeys(lines)), key=lambda pair: pair[1] - pair[0]):
        numbers = [line for _, line in run]
        if len(numbers) > 1:
            yield lsp.FoldingRange(numbers[0], numbers[-1], kind=kind)


def selection_ranges(
    workspace: Workspace, document: Document, params: lsp.SelectionRangeParams
) -> list[lsp.SelectionRange]:
    """Return, for each position, the nodes around it from the innermost outward."""
    found = []
    for position in params.positions:
        offset = document.text.offset(position)
        spot = document.spot(offset)
        spans = [(0, len(document.source)), *(document.span(node) for node in (spot.nodes if spot else ()))]
        outer: lsp.SelectionRange | None = None
        before = None
        for start, end in spans:
            if (start, end) != before and start <= offset <= end:
                outer = lsp.SelectionRange(document.text.range(start, end), outer)
                before = start, end
        found.append(outer or lsp.SelectionRange(lsp.Range(position, position)))
    return found


def document_links(
    workspace: Workspace, document: Document, params: lsp.DocumentLinkParams
) -> list[lsp.DocumentLink]:
    """Return the imports whose files are there."""
    found = []
    for item in document.items:
        node = item.node
        if isinstance(node, ast.Import):
            path = workspace.module(document, node.path)
            start, end = document.span(node)
            at = document.source.rfind(node.path, start, end)
            if path is not None and at >= 0:
                range = document.text.range(at, at + len(node.path))
                found.append(lsp.DocumentLink(range, workspace.uri(path)))
    return found
