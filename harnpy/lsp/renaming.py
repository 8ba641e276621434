"""Giving a name another one, in all files, if each name means afterwards what it meant. Spec: 12 §3.4.

What would be captured or hidden isn't worked out by rules: the new texts are read, and their names compared.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams

from harnpy.lsp.document import Document
from harnpy.lsp.names import Meaning, Mention, mentions_everywhere, names
from harnpy.lsp.navigation import mention_at
from harnpy.lsp.uris import path_of
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast
from harnpy.syntax.lexer import LexError, lex

#: What has a name that can't be changed from here.
_FOREIGN = frozenset(["builtin", "global", "module"])
#: What is called by its name, and may be called from functions that it calls (02 §7.4).
_CALLABLE = frozenset(["fn", "tool", "param", "variable"])

_TYPES = frozenset(["struct", "enum", "interface", "type"])


def prepare_rename(
    workspace: Workspace, document: Document, params: lsp.PrepareRenameParams
) -> lsp.PrepareRenamePlaceholder | None:
    """Return the name at a position if it can be given another one."""
    mention = mention_at(workspace, document, params.position)
    if mention is None or _is_foreign(workspace, mention):
        return None
    return lsp.PrepareRenamePlaceholder(document.text.range(mention.start, mention.end), mention.meaning.name)


def rename(workspace: Workspace, document: Document, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
    """Return the edits that give a name another one, in all files of the workspace.

    Raises JsonRpcInvalidParams where the new name is none, where the name isn't one of these files, and where
    a name would mean something else afterwards.
    """
    mention = mention_at(workspace, document, params.position)
    if mention is None:
        return None
    old, new = mention.meaning, params.new_name
    if not _is_name(new):
        raise JsonRpcInvalidParams(f"`{new}` can't be a name")
    if _is_foreign(workspace, mention):
        raise JsonRpcInvalidParams(f"`{old.name}` is declared in no file of this workspace")
    edited = {where.uri: edited for where, edited in _edited(workspace, old, new) if new != old.name}
    for why in _objections(workspace, old, new, edited):
        raise JsonRpcInvalidParams(f"can't rename `{old.name}` to `{new}`: {why}")
    return lsp.WorkspaceEdit(
        {
            uri: [lsp.TextEdit(one.document.text.range(at, end), text) for at, end, text in one.edits]
            for uri, one in edited.items()
        }
    )


def _is_foreign(workspace: Workspace, mention: Mention) -> bool:
    """Return whether a name is declared in none of these files: a builtin's, or that of a bundled module."""
    return mention.meaning.kind in _FOREIGN or not workspace.owns(mention.meaning.uri)


def _is_name(text: str) -> bool:
    try:
        kinds = lex(text, 0, len(text)).kinds
    except LexError:
        return False
    return text != "_" and len(kinds) == 2 and kinds[0].startswith(("IDENT", "~")) and text.isidentifier()


class _Edited(NamedTuple):
    """A document and its edits, by offsets and in their order."""

    document: Document
    edits: Sequence[tuple[int, int, str]]

    @property
    def source(self) -> str:
        """The text behind the edits."""
        parts, at = [], 0
        for start, end, text in self.edits:
            parts += [self.document.source[at:start], text]
            at = end
        return "".join([*parts, self.document.source[at:]])

    def place(self, offset: int, inside: int = 0) -> int:
        """Return where an offset is behind the edits; ``inside``: so far into what an edit there puts in."""
        before = bisect_left(self.edits, (offset,))
        return offset + inside + sum(len(text) - (end - start) for start, end, text in self.edits[:before])


def _edited(workspace: Workspace, old: Meaning, new: str) -> Iterator[tuple[Document, _Edited]]:
    found: dict[str, tuple[Document, set[tuple[int, int, str]]]] = {}
    for where, each in mentions_everywhere(workspace, old):
        text = new
        if each.short:
            text = f"{new}: {old.name}" if old.kind == "field" else f"{old.name}: {new}"
        found.setdefault(where.uri, (where, set()))[1].add((each.start, each.end, text))
    for where, edits in found.values():
        yield where, _Edited(where, sorted(edits))


def _objections(workspace: Workspace, old: Meaning, new: str, edited: Mapping[str, _Edited]) -> Iterator[str]:
    """Yield why a name can't be given another one."""
    if not edited:
        return
    home = edited.get(old.uri or "")
    if home is None or not any(start == old.start for start, _, _ in home.edits):
        yield "its declaration doesn't have it as a word"
        return
    yield from _by_others(workspace, old, new, home.document)
    after = Workspace(workspace.roots, workspace.encoding)
    for document in workspace.documents.values():
        after.open(document.uri, document.source)
    for uri, one in edited.items():
        after.open(uri, one.source)
    for document in after.documents.values():
        after.refresh(document)
    for document in _concerned(workspace, old, new):
        one = edited.get(document.uri) or _Edited(document, ())
        other = after.at(document.uri)
        if other is None:
            yield f"{document.uri} can't be read"
            continue
        yield from _differences(workspace, after, one, other, old, new, edited)


def _by_others(workspace: Workspace, old: Meaning, new: str, home: Document) -> Iterator[str]:
    """Yield what else gets at a declaration by its name."""
    if old.kind == "param" and _is_of_pipeline(home, old):
        yield "a host gives a pipeline's parameters by their names"
    if old.kind in _CALLABLE:
        for name in (old.name, new):
            if any(call.name == name and _may_mean(home, call, old, name) for call in home.uses.undefined):
                yield f"functions see those of their callers, and one here calls `{name}`"
    uses: Counter[int] = Counter()
    for binding in home.uses.bindings:
        if binding.name == old.name:
            uses.update(id(use) for use in binding.reads)
    if old.kind in _CALLABLE:
        for binding in home.uses.bindings:
            if binding.name == old.name and any(uses[id(use)] > 1 for use in binding.reads):
                yield f"a call of `{old.name}` may mean several things"
                return
    if old.kind == "method":
        interfaces = {
            item.node.name
            for path in workspace.paths()
            if (document := workspace.at_path(path)) is not None
            for item in document.items
            if isinstance(item.node, ast.InterfaceDecl)
            and any(getattr(member, "name", None) == old.name for member in item.node.members)
        }
        for name in sorted(interfaces):
            yield f"the interface `{name}` has a method of that name, and types have it by its name"
            return


def _may_mean(home: Document, call: ast.Call, old: Meaning, name: str) -> bool:
    """Return whether a call that nothing here declares may mean a function of its caller's."""
    return not (home.knowledge.is_builtin(name) and old.kind == "variable")


def _is_of_pipeline(home: Document, old: Meaning) -> bool:
    return any(
        binding.name == old.name
        and isinstance(binding.node, ast.Pipeline | ast.Override)
        and home.span(binding.node)[0] <= old.start < home.place(binding.node.body.start)
        for binding in home.uses.bindings
        if binding.kind == "param"
    )


def _concerned(workspace: Workspace, old: Meaning, new: str) -> Iterator[Document]:
    """Yield the documents that have either name as a word."""
    word = re.compile(rf"\b(?:{re.escape(old.name)}|{re.escape(new)})\b")
    seen = set()
    for path in [*workspace.paths(), *(() if old.uri is None else (path_of(old.uri),))]:
        text = None if path is None else workspace.text_at(path)
        if text is not None and word.search(text):
            document = workspace.at_path(path or "")
            if document is not None and document.uri not in seen:
                seen.add(document.uri)
                yield document
    for document in workspace.documents.values():
        if document.path is None and word.search(document.source):
            yield document


def _differences(
    workspace: Workspace,
    after: Workspace,
    one: _Edited,
    other: Document,
    old: Meaning,
    new: str,
    edited: Mapping[str, _Edited],
) -> Iterator[str]:
    """Yield how the names of a document differ from what they should be behind its edits."""
    expected = {_renamed(each, old, new, one, edited) for each in names(workspace, one.document).mentions}
    found = {each._replace(short=False) for each in names(after, other).mentions}
    where = re.sub(r".*/", "", one.document.uri)
    for each in sorted(expected ^ found):
        line = other.text.line(each.start) + 1
        yield f"`{other.source[each.start : each.end]}` in {where}:{line} would mean something else"
        return
    if other.uri == old.uri and _hiding(other) > _hiding(one.document):
        yield f"`{new}` would hide another one"
        return
    if other.uri == old.uri and sum(_is_like(each, old, new) for each in found) > 1:
        yield f"there is another `{new}`"
        return
    if len(one.document.checked.draft.broken) != len(other.checked.draft.broken):
        yield f"{where} would not parse"
    if Counter(each.code for each in one.document.findings) != Counter(each.code for each in other.findings):
        yield f"{where} would have other errors than it has"


def _hiding(document: Document) -> int:
    """Return how many variables hide another one, or take its place."""
    bindings = document.uses.bindings
    return sum(each.shadows is not None or each.redeclares is not None for each in bindings)


def _is_like(each: Mention, old: Meaning, new: str) -> bool:
    """Return whether a name is declared that counts as one with the new one: a type, or of the same type."""
    meaning = each.meaning
    is_same_owner = meaning.owner == old.owner and (bool(old.owner) or meaning.kind in _TYPES)
    return each.declares and meaning.name == new and is_same_owner and (bool(old.owner) or old.kind in _TYPES)


def _renamed(each: Mention, old: Meaning, new: str, one: _Edited, edited: Mapping[str, _Edited]) -> Mention:
    """Return what a name should be behind the edits."""
    meaning = each.meaning
    inside = 0
    if each.short and meaning.kind != "field":
        # The variable of a short entry comes behind its key.
        texts = (text for start, _, text in one.edits if start == each.start)
        inside = next((text.index(": ") + 2 for text in texts), 0)
    start = one.place(each.start, inside)
    is_it = meaning == old
    name = new if is_it else meaning.name
    home = edited.get(meaning.uri or "")
    if home is not None and meaning.kind != "module":
        shift = 0
        if meaning.kind != "field":
            texts = (text for at, _, text in home.edits if at == meaning.start and ": " in text)
            shift = next((text.index(": ") + 2 for text in texts), 0)
        meaning = meaning._replace(start=home.place(meaning.start, shift))
    owner = new if old.owner == "" and meaning.owner == old.name and _owns(old) else meaning.owner
    return Mention(
        start,
        start + each.end - each.start + (len(new) - len(old.name)) * is_it,
        meaning._replace(name=name, owner=owner),
        each.declares,
        each.writes,
    )


def _owns(old: Meaning) -> bool:
    return old.kind in _TYPES
