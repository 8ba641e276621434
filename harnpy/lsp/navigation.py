"""Where a name is declared and used. Spec: 12 §3.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lsprotocol import types as lsp

from harnpy.lsp.document import Document
from harnpy.lsp.inferring import Guess
from harnpy.lsp.names import Meaning, Mention, mentions_everywhere, names, type_named
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast

_TYPES = frozenset(["struct", "enum", "interface", "type"])


def definition(workspace: Workspace, document: Document, params: lsp.DefinitionParams) -> lsp.Location | None:
    """Return where the name at a position is declared; of a module its beginning."""
    mention = mention_at(workspace, document, params.position)
    if mention is None or mention.meaning.uri is None:
        return None
    meaning = mention.meaning
    home = workspace.at(mention.meaning.uri)
    if home is None:
        return None
    length = 0 if meaning.kind == "module" else len(meaning.name)
    return lsp.Location(home.uri, home.text.range(meaning.start, meaning.start + length))


def type_definition(
    workspace: Workspace, document: Document, params: lsp.TypeDefinitionParams
) -> list[lsp.Location]:
    """Return where the type of the name at a position is declared; several if it may be of several."""
    offset = document.text.offset(params.position)
    mention = names(workspace, document).at(offset)
    spot = document.spot(offset)
    if spot is None:
        return []
    if mention is not None and mention.meaning.kind in _TYPES:
        return _places(workspace, [mention.meaning])
    sight = document.scope(spot)
    nodes = [one for one in reversed(spot.nodes) if isinstance(one, ast.Name | ast.Member | ast.MethodCall)]
    node: ast.Node | None = nodes[0] if nodes else None
    if node is None and mention is not None:
        # Where a variable is declared, what it holds is known behind its statement.
        node = ast.Name(spot.offset, spot.offset, mention.meaning.name)
        sight = document.scope(spot._replace(offset=spot.nodes[0].end))
        let = next((one for one in spot.nodes if isinstance(one, ast.Let)), None)
        node = let.value if let is not None else node
    guess = Guess(sight.inference, sight.scope, spot.nodes)
    types = guess.members(None if node is None else guess.of(node))
    found = [type.name for type in types if isinstance(type, ast.TypeName)]
    meanings = [type_named(workspace, document, name) for name in found]
    return _places(workspace, [one for one in meanings if one is not None])


def implementation(
    workspace: Workspace, document: Document, params: lsp.ImplementationParams
) -> list[lsp.Location]:
    """Return the `impl`s of a struct, or of those with an interface's methods; of a method its bodies."""
    mention = mention_at(workspace, document, params.position)
    if mention is None:
        return []
    meaning = mention.meaning
    if meaning.kind not in ("interface", "struct", "method"):
        return []
    owner = meaning.owner or meaning.name
    found = []
    for other, node in _impls(workspace):
        if node.name == owner or _satisfies(other, node.name, owner):
            parts: list[ast.ImplDecl | ast.FnDecl] = [node]
            if meaning.kind == "method":
                parts = [one for one in node.methods if one.name == meaning.name]
            spans = [other.name_span(part, part.name) for part in parts]
            found += [lsp.Location(other.uri, other.text.range(*span)) for span in spans]
    return found


def _impls(workspace: Workspace) -> Iterator[tuple[Document, ast.ImplDecl]]:
    for path in workspace.paths():
        text = workspace.text_at(path)
        document = workspace.at_path(path) if text is not None and "impl" in text else None
        for item in document.items if document is not None else ():
            if document is not None and isinstance(item.node, ast.ImplDecl):
                yield document, item.node


def _satisfies(document: Document, type: str, interface: str) -> bool:
    types = document.environment.types
    known = interface in types.declared.interfaces
    return known and types.unsatisfied(ast.TypeName(0, 0, type, ()), interface) is None


def _places(workspace: Workspace, meanings: Iterable[Meaning]) -> list[lsp.Location]:
    found = []
    for meaning in meanings:
        home = None if meaning.uri is None else workspace.at(meaning.uri)
        if home is not None:
            place = home.text.range(meaning.start, meaning.start + len(meaning.name))
            found.append(lsp.Location(home.uri, place))
    return found


def references(workspace: Workspace, document: Document, params: lsp.ReferenceParams) -> list[lsp.Location]:
    """Return where a name is used, in all files of the workspace."""
    mention = mention_at(workspace, document, params.position)
    if mention is None:
        return []
    found = mentions_everywhere(workspace, mention.meaning)
    return [
        lsp.Location(where.uri, where.text.range(each.start, each.end))
        for where, each in found
        if params.context.include_declaration or not each.declares
    ]


def highlights(
    workspace: Workspace, document: Document, params: lsp.DocumentHighlightParams
) -> list[lsp.DocumentHighlight]:
    """Return where the name at a position stands in this document."""
    mention = mention_at(workspace, document, params.position)
    if mention is None:
        return []
    read, write = lsp.DocumentHighlightKind.Read, lsp.DocumentHighlightKind.Write
    return [
        lsp.DocumentHighlight(
            document.text.range(each.start, each.end), write if each.declares or each.writes else read
        )
        for each in names(workspace, document).of(mention.meaning)
    ]


def mention_at(workspace: Workspace, document: Document, position: lsp.Position) -> Mention | None:
    """Return the name at a position."""
    return names(workspace, document).at(document.text.offset(position))
