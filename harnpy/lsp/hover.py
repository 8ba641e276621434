"""What a name is, where the pointer rests on it. Spec: 12 §3.2."""

from __future__ import annotations

from lsprotocol import types as lsp

from harnpy.check.types.type_nodes import shown
from harnpy.lsp import descriptions
from harnpy.lsp.descriptions import Description
from harnpy.lsp.document import Document
from harnpy.lsp.names import Mention, names
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast

_VARIABLES = frozenset(["variable", "param"])


def hover(workspace: Workspace, document: Document, params: lsp.HoverParams) -> lsp.Hover | None:
    """Return the declaration, the type and the documentation of what is at a position."""
    offset = document.text.offset(params.position)
    mention = names(workspace, document).at(offset)
    if mention is not None:
        description = _described(workspace, document, mention)
        span = mention.start, mention.end
    else:
        found = _method(document, offset)
        if found is None:
            return None
        description, span = found
    if description is None:
        return None
    content = lsp.MarkupContent(lsp.MarkupKind.Markdown, description.markdown())
    return lsp.Hover(content, document.text.range(*span))


def _described(workspace: Workspace, document: Document, mention: Mention) -> Description | None:
    """Return what is said of a name; of a variable the type that holds where it stands."""
    found = descriptions.of_meaning(workspace, mention.meaning)
    if found is None or mention.meaning.kind not in _VARIABLES:
        return found
    spot = document.spot(mention.start)
    type = None
    if spot is not None:
        node = ast.Name(spot.offset, spot.offset, mention.meaning.name)
        type = document.type_of(spot._replace(offset=spot.offset + mention.declares), node)
    text = mention.meaning.name if type is None else f"{mention.meaning.name}: {shown(type)}"
    return found._replace(declaration=text)


def _method(document: Document, offset: int) -> tuple[Description, tuple[int, int]] | None:
    """Return the method of a kind of value at an offset, and where its name stands."""
    spot = document.spot(offset)
    node = (
        next((one for one in reversed(spot.nodes) if isinstance(one, ast.MethodCall)), None) if spot else None
    )
    if spot is None or node is None:
        return None
    start, end = document.name_span(ast.Nil(node.object.end, node.end), node.name)
    if not start <= offset <= end:
        return None
    type = document.type_of(spot, node.object)
    kind = type.name if isinstance(type, ast.TypeName) else ""
    found = descriptions.of_method(kind, node.name)
    return None if found is None else (found, (start, end))
