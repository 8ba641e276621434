"""Semantic tokens: what each name is, for colours that no grammar can tell. Spec: 12 §3.5.

The names of an item are read once, and again when it is edited; what a name means that the item doesn't
declare is looked up each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lsprotocol import types as lsp

from harnpy.check.lint.uses import Uses
from harnpy.lsp.document import Document
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast
from harnpy.syntax.names import enum_variant

if TYPE_CHECKING:
    from harnpy.check.edits import Item

TYPES = (
    "namespace type struct enum interface typeParameter parameter variable property enumMember function "
    "method"
).split()
MODIFIERS = "declaration readonly modification defaultLibrary".split()
_DECLARATION, _READONLY, _MODIFICATION, _LIBRARY = 1, 2, 4, 8
_DECLARED: Mapping[type, str] = {
    ast.FnDecl: "function",
    ast.ToolDecl: "function",
    ast.Pipeline: "function",
    ast.Override: "function",
    ast.SkillDecl: "variable",
    ast.EvalPack: "variable",
    ast.StructDecl: "struct",
    ast.EnumDecl: "enum",
    ast.InterfaceDecl: "interface",
    ast.TypeDecl: "type",
    ast.TypeParam: "typeParameter",
    ast.Field: "property",
    ast.ShapeField: "property",
    ast.Variant: "enumMember",
    ast.MethodSig: "method",
}
_BINDINGS = {"param": "parameter", "fn": "function", "tool": "function"}


class Token(NamedTuple):
    """A name at ``start``, an offset of its item's reading; ``type`` is "" where the item doesn't say."""

    start: int
    name: str
    type: str
    modifiers: int = 0


def full(workspace: Workspace, document: Document, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
    """Return the tokens of a whole document."""
    return lsp.SemanticTokens(_encoded(document, document.items))


def in_range(
    workspace: Workspace, document: Document, params: lsp.SemanticTokensRangeParams
) -> lsp.SemanticTokens:
    """Return the tokens of the items that a range touches."""
    start, end = document.text.span(params.range)
    return lsp.SemanticTokens(
        _encoded(document, [item for item in document.items if item.start <= end and item.end >= start])
    )


def _encoded(document: Document, items: Sequence[Item]) -> list[int]:
    """Return tokens as the protocol writes them: lines and characters from the token before."""
    known = _meanings(document)
    data: list[int] = []
    line, character = 0, 0
    for item in items:
        for token in document.kept(item, _of_item):
            type, modifiers = (token.type, token.modifiers) if token.type else known(token.name)
            if type:
                at = document.text.position(token.start + item.moved)
                length = document.text.length(token.name)
                data += [
                    at.line - line,
                    at.character - (character if at.line == line else 0),
                    length,
                    TYPES.index(type),
                    modifiers,
                ]
                line, character = at.line, at.character
    return data


def _meanings(document: Document) -> Callable[[str], tuple[str, int]]:
    """Return what says what a name is that an item doesn't declare."""
    found: dict[str, tuple[str, int]] = {}
    environment = document.environment
    for node in environment.items:
        if isinstance(node, ast.Let):
            for name in ast.bound_names(node.target):
                found[name] = "variable", 0 if node.mutable else _READONLY
        elif type(node) in _DECLARED and not isinstance(node, ast.ImplDecl):
            found[node.name] = _DECLARED[type(node)], 0  # type: ignore[attr-defined]
    for name in environment.foreign_functions:
        found.setdefault(name, ("function", 0))
    for name in environment.imported.types if environment.imported is not None else ():
        found.setdefault(name, ("type", 0))
    knowledge = document.knowledge

    def known(name: str) -> tuple[str, int]:
        if name not in found:
            is_value = knowledge.is_global(name)
            library = ("variable", _LIBRARY | _READONLY) if is_value else ("function", _LIBRARY)
            found[name] = library if is_value or knowledge.is_builtin(name) else ("", 0)
        return found[name]

    return known


def _of_item(document: Document, item: Item) -> list[Token]:
    """Return the names in an item in the order of the text, each place once."""
    found: dict[int, Token] = {}
    for token in _tokens(document, item):
        if token.name and document.source.startswith(token.name, token.start + item.moved):
            found.setdefault(token.start, token)
    return sorted(found.values())


def _tokens(document: Document, item: Item) -> Iterator[Token]:
    enums = document.environment.enums_anywhere
    yield from _bound(document, item, Uses(ast.Program(0, 0, (item.node,)), enums))
    params: set[str] = set()
    for node in ast.walk(item.node):
        params.update(param.name for param in getattr(node, "type_params", ()))
    for node in ast.walk(item.node):
        name = getattr(node, "name", None)
        if isinstance(node, ast.Member | ast.MethodCall):
            kind = "method" if isinstance(node, ast.MethodCall) else "property"
            kind = "enumMember" if enum_variant(node, enums) else kind
            yield Token(_word(document, item, node.name, node.object.end, node.end), node.name, kind)
        elif isinstance(node, ast.TypeName):
            yield Token(node.start, node.name, "typeParameter" if node.name in params else "")
        elif isinstance(node, ast.Name | ast.Call | ast.StructLit):
            yield Token(node.start, node.name, "")
        elif isinstance(node, ast.ImplDecl):
            yield Token(_word(document, item, node.name, node.start, node.end), node.name, "")
            for method in node.methods:
                yield _declared(document, item, method, method.name, "method")
        elif isinstance(node, ast.DictEntry) and isinstance(node.key, ast.Str) and not node.computed:
            yield Token(node.key.start, node.key.value, "property")
        elif type(node) in _DECLARED and name:
            yield _declared(document, item, node, name, _DECLARED[type(node)])


def _bound(document: Document, item: Item, uses: Uses) -> Iterator[Token]:
    """Yield what the item itself binds, and its uses."""
    for binding in uses.bindings:
        if binding.kind == "import":
            place = binding.place
            yield Token(_word(document, item, binding.name, place.start, place.end), binding.name, "")
            continue
        kind = _BINDINGS.get(binding.kind, "variable")
        modifiers = 0 if binding.mutable or kind != "variable" else _READONLY
        token = _declared(document, item, binding.place, binding.name, kind)
        yield token._replace(modifiers=token.modifiers | modifiers)
        for use in binding.writes:
            root: Any = use.target
            while isinstance(root, ast.Member | ast.Index):
                root = root.object
            yield Token(root.start, binding.name, kind, modifiers | _MODIFICATION)
        for read in binding.reads:
            yield Token(read.start, binding.name, kind, modifiers)


def _declared(document: Document, item: Item, node: ast.Node, name: str, type: str) -> Token:
    return Token(_word(document, item, name, node.start, node.end), name, type, _DECLARATION)


def _word(document: Document, item: Item, name: str, start: int, end: int) -> int:
    """Return where a word is first in a stretch of an item, by the offsets of its reading."""
    return document.name_span(ast.Nil(start, end), name)[0] - item.moved
