"""What can be run from where it stands: the entry of a program, its tests. Spec: 12 §3.5.

The commands are the client's: `harn.run`, `harn.debug` and `harn.test`, with the file's URI and a name.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types as lsp

from harnpy.lsp.document import Document
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast
from harnpy.vm.resolve import entry_pipeline, is_test

_RUN, _DEBUG, _TEST = ("Run", "harn.run"), ("Debug", "harn.debug"), ("Test", "harn.test")
#: What runs by itself in a file without pipelines is everything else.
_DECLARATIONS = (
    ast.Import,
    ast.FnDecl,
    ast.ToolDecl,
    ast.SkillDecl,
    ast.EvalPack,
    ast.StructDecl,
    ast.EnumDecl,
    ast.InterfaceDecl,
    ast.ImplDecl,
    ast.TypeDecl,
    ast.Let,
)


def code_lenses(workspace: Workspace, document: Document, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
    """Return a lens for each thing that can be done, in the order of the text."""
    return list(_lenses(document))


def _lenses(document: Document) -> Iterator[lsp.CodeLens]:
    nodes = [item.node for item in document.items]
    entry = entry_pipeline(ast.Program(0, 0, tuple(nodes)))
    for node in nodes:
        if isinstance(node, ast.Pipeline) and is_test(node):
            yield _lens(document, node, node.name, _TEST)
        elif node is entry:
            yield from (_lens(document, node, entry.name, what) for what in (_RUN, _DEBUG))
    if entry is None:
        first = next((node for node in nodes if not isinstance(node, _DECLARATIONS)), None)
        if first is not None:
            yield from (_lens(document, first, "", what) for what in (_RUN, _DEBUG))


def _lens(document: Document, node: ast.Node, name: str, what: tuple[str, str]) -> lsp.CodeLens:
    title, command = what
    start, end = document.name_span(node, name) if name else document.span(node)
    line = document.text.line(start)
    range = document.text.range(start, min(end, document.text.line_end(line)))
    return lsp.CodeLens(range, lsp.Command(title, command, arguments=[{"uri": document.uri, "name": name}]))
