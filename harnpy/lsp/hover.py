"""What a name or key is, where the pointer rests on it. Spec: 12 §3.2."""

from __future__ import annotations

from lsprotocol import types as lsp

from harnpy.check.types.type_nodes import shown
from harnpy.lsp import descriptions
from harnpy.lsp.descriptions import Description
from harnpy.lsp.document import Document, Spot
from harnpy.lsp.inferring import Guess
from harnpy.lsp.literals import argument_of
from harnpy.lsp.names import Mention, names
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast

_VARIABLES = frozenset(["variable", "param"])


def hover(workspace: Workspace, document: Document, params: lsp.HoverParams) -> lsp.Hover | None:
    """Return the declaration, the type and the documentation of what is at a position."""
    offset = document.text.offset(params.position)
    mention = names(workspace, document).at(offset)
    found: tuple[Description | None, tuple[int, int]] | None
    if mention is not None:
        found = _described(workspace, document, mention), (mention.start, mention.end)
    else:
        spot = document.spot(offset)
        found = None if spot is None else _member(document, spot, offset) or _key(document, spot)
    if found is None or found[0] is None:
        return None
    content = lsp.MarkupContent(lsp.MarkupKind.Markdown, found[0].markdown())
    return lsp.Hover(content, document.text.range(*found[1]))


def _described(workspace: Workspace, document: Document, mention: Mention) -> Description | None:
    """Return what is said of a name; of a variable the type that holds where it stands."""
    found = descriptions.of_meaning(workspace, mention.meaning)
    if found is None or mention.meaning.kind not in _VARIABLES:
        return found
    spot = document.spot(mention.start)
    type = None
    if spot is not None:
        sight = document.scope(spot._replace(offset=spot.offset + mention.declares))
        node = ast.Name(spot.offset, spot.offset, mention.meaning.name)
        type = Guess(sight.inference, sight.scope, spot.nodes).of(node)
    text = mention.meaning.name if type is None else f"{mention.meaning.name}: {shown(type)}"
    return found._replace(declaration=text)


def _member(document: Document, spot: Spot, offset: int) -> tuple[Description, tuple[int, int]] | None:
    """Return the method, property or field that is at an offset, and where its name stands."""
    kinds = (ast.MethodCall, ast.Member)
    node = next((one for one in reversed(spot.nodes) if isinstance(one, kinds)), None)
    if node is None:
        return None
    start, end = document.name_span(ast.Nil(node.object.end, node.end), node.name)
    if not start <= offset <= end:
        return None
    sight = document.scope(spot)
    guess = Guess(sight.inference, sight.scope, spot.nodes)
    object = guess.of(node.object)
    for type in guess.members(object):
        kind = type.name if isinstance(type, ast.TypeName) else "dict"
        found = descriptions.of_method(kind, node.name) if isinstance(node, ast.MethodCall) else None
        if found is not None:
            return found, (start, end)
    field = guess.field(object, node.name) if isinstance(node, ast.Member) else None
    return None if field is None else (Description(f"{node.name}: {shown(field)}"), (start, end))


def _key(document: Document, spot: Spot) -> tuple[Description, tuple[int, int]] | None:
    """Return the key of a dict that a builtin takes, and where it stands."""
    entry = spot.nodes[-2] if len(spot.nodes) > 1 else None
    if (
        not isinstance(entry, ast.DictEntry)
        or spot.node is not entry.key
        or not isinstance(entry.key, ast.Str)
    ):
        return None
    name = entry.key.value
    argument = argument_of(spot.nodes[:-2], document.knowledge, document.environment)
    rows = () if argument is None else document.knowledge.keys(argument.function, argument.whole)
    row = next((one for one in rows if one.name == name), None)
    return None if row is None else (descriptions.of_option(row), document.span(entry.key))
