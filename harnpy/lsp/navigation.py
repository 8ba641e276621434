"""Where a name is declared and used, and giving it another one. Spec: 12 §3.4."""

from __future__ import annotations

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams

from harnpy.lsp.document import Document
from harnpy.lsp.names import Mention, mentions_everywhere, names
from harnpy.lsp.workspace import Workspace
from harnpy.syntax.lexer import RESERVED

#: What has a name that can't be changed from here.
_FOREIGN = frozenset(["builtin", "global", "module"])


def definition(workspace: Workspace, document: Document, params: lsp.DefinitionParams) -> lsp.Location | None:
    """Return where the name at a position is declared; of a module its beginning."""
    mention = _mention(workspace, document, params.position)
    if mention is None or mention.meaning.uri is None:
        return None
    meaning = mention.meaning
    home = workspace.at(mention.meaning.uri)
    if home is None:
        return None
    length = 0 if meaning.kind == "module" else len(meaning.name)
    return lsp.Location(home.uri, home.text.range(meaning.start, meaning.start + length))


def references(workspace: Workspace, document: Document, params: lsp.ReferenceParams) -> list[lsp.Location]:
    """Return where a name is used, in all files of the workspace."""
    mention = _mention(workspace, document, params.position)
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
    mention = _mention(workspace, document, params.position)
    if mention is None:
        return []
    read, write = lsp.DocumentHighlightKind.Read, lsp.DocumentHighlightKind.Write
    return [
        lsp.DocumentHighlight(
            document.text.range(each.start, each.end), write if each.declares or each.writes else read
        )
        for each in names(workspace, document).of(mention.meaning)
    ]


def prepare_rename(
    workspace: Workspace, document: Document, params: lsp.PrepareRenameParams
) -> lsp.PrepareRenamePlaceholder | None:
    """Return the name at a position if it can be given another one."""
    mention = _mention(workspace, document, params.position)
    if mention is None or _fixed(workspace, mention):
        return None
    return lsp.PrepareRenamePlaceholder(document.text.range(mention.start, mention.end), mention.meaning.name)


def rename(workspace: Workspace, document: Document, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
    """Return the edits that give a name another one, in all files of the workspace.

    Raises JsonRpcInvalidParams where the new name is none, or the name isn't one of these files.
    """
    mention = _mention(workspace, document, params.position)
    if mention is None:
        return None
    new = params.new_name
    if not new.isidentifier() or new in RESERVED:
        raise JsonRpcInvalidParams(f"`{new}` can't be a name")
    if _fixed(workspace, mention):
        raise JsonRpcInvalidParams(f"`{mention.meaning.name}` is declared in no file of this workspace")
    changes: dict[str, list[lsp.TextEdit]] = {}
    for where, each in mentions_everywhere(workspace, mention.meaning):
        edit = lsp.TextEdit(where.text.range(each.start, each.end), new)
        changes.setdefault(where.uri, []).append(edit)
    return lsp.WorkspaceEdit(changes)


def _mention(workspace: Workspace, document: Document, position: lsp.Position) -> Mention | None:
    return names(workspace, document).at(document.text.offset(position))


def _fixed(workspace: Workspace, mention: Mention) -> bool:
    """Return whether a name is declared in none of these files: a builtin's, or that of a bundled module."""
    return mention.meaning.kind in _FOREIGN or not workspace.owns(mention.meaning.uri)
