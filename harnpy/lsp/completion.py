"""What may stand at the cursor. Spec: 12 §3.3.

A word of our own is put where one is being typed; what it would be there says what is offered.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from harnpy.builtins import catalog
from harnpy.check.types.type_nodes import shown
from harnpy.lsp import descriptions
from harnpy.lsp.document import Document, Supposed
from harnpy.lsp.names import word_at
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast
from harnpy.syntax.explain import STATEMENT_STARTS
from harnpy.vm.run.methods import LISTED

if TYPE_CHECKING:
    from harnpy.check.scopes import Scope
    from harnpy.check.types.type_nodes import Type
    from harnpy.formats.options import Option, OptionTable

#: What stands for the word that is being typed. No program has it.
_CURSOR = "__harnpy_cursor__"
_IMPORT_PATH = re.compile(r'import\s+(?:\{[^{}"]*\}\s+from\s+)?"([^"\n]*)\Z')
_IMPORT_NAMES = re.compile(r"import\s+\{([^{}\"]*)\Z")
_FROM = re.compile(r'[^{}"]*\}\s+from\s+"([^"\n]+)"')
#: Words that begin expressions.
_EXPRESSIONS = frozenset("fn if match try retry parallel spawn select true false nil".split())
_KIND = lsp.CompletionItemKind
_KINDS = {
    ast.FnDecl: _KIND.Function,
    ast.ToolDecl: _KIND.Function,
    ast.StructDecl: _KIND.Struct,
    ast.EnumDecl: _KIND.Enum,
    ast.InterfaceDecl: _KIND.Interface,
    ast.TypeDecl: _KIND.TypeParameter,
}
#: The order of what is offered: what is nearest comes first.
_NEAR, _OWN, _BUILTIN, _WORD, _FAR = "0", "1", "2", "3", "4"


def completion(workspace: Workspace, document: Document, params: lsp.CompletionParams) -> lsp.CompletionList:
    """Return what may stand at a position."""
    offset = document.text.offset(params.position)
    start, end = word_at(document.source, offset) or (offset, offset)
    typed = document.source[start:offset]
    found = {
        item.label: item for item in _offered(workspace, document, start, end) if _fits(typed, item.label)
    }
    return lsp.CompletionList(is_incomplete=bool(typed), items=list(found.values()))


def resolve(workspace: Workspace, item: lsp.CompletionItem) -> lsp.CompletionItem:
    """Return an item with its documentation, which is looked up for the one that is looked at."""
    data = item.data if isinstance(item.data, dict) else {}
    found = None
    if "builtin" in data:
        found = descriptions.of_builtin(data["builtin"])
    elif "method" in data:
        found = descriptions.of_method(data["kind"], data["method"])
    if found is not None:
        item.detail = found.declaration
        item.documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text)
    return item


def _fits(typed: str, label: str) -> bool:
    """Return whether the letters that were typed are in a word, in their order."""
    letters = iter(label.lower())
    return all(letter in letters for letter in typed.lower())


def _offered(workspace: Workspace, document: Document, start: int, end: int) -> Iterator[lsp.CompletionItem]:
    line = document.source[document.source.rfind("\n", 0, start) + 1 : start]
    path = _IMPORT_PATH.search(line)
    if path is not None:
        yield from _modules(workspace, document, path[1])
        return
    listed = _IMPORT_NAMES.search(document.source, max(0, start - 2_000), start)
    if listed is not None:
        yield from _module_names(workspace, document, document.source[end : end + 2_000])
        return
    found = document.supposed(start, end, _CURSOR)
    if found is None:
        yield from _words(STATEMENT_STARTS)
        yield from _builtins()
        return
    yield from _at(document, found)


def _at(document: Document, found: Supposed) -> Iterator[lsp.CompletionItem]:
    node = next((one for one in reversed(found.nodes) if _is_cursor(one)), None)
    if isinstance(node, ast.Member | ast.MethodCall):
        yield from _members(document, found, node.object)
    elif isinstance(node, ast.TypeName):
        yield from _types(document, found)
    elif isinstance(node, ast.Name | ast.Call):
        table = _table(document, found)
        if table is not None:
            yield from _keys(table[0], table[1])
        else:
            yield from _names(document, found)
    elif isinstance(found.nodes[-1], ast.Str):
        table = _table(document, found)
        if table is not None:
            yield from _keys(table[0], table[1])


def _is_cursor(node: ast.Node) -> bool:
    return getattr(node, "name", None) == _CURSOR


# What belongs to a value.


def _members(document: Document, found: Supposed, object: ast.Node) -> Iterator[lsp.CompletionItem]:
    environment = found.sight.inference.environment
    if isinstance(object, ast.Name):
        prefix = f"{object.name}."
        if document.knowledge.is_global(object.name) and found.sight.scope.find(object.name) is None:
            for name in catalog.names():
                if name.startswith(prefix):
                    yield _item(name.removeprefix(prefix), _KIND.Function, _OWN, {"builtin": name})
            return
    enum = found.sight.inference.enum_of(ast.Member(0, 0, object, _CURSOR, False), found.sight.scope)
    if enum is not None:
        for variant in enum.variants:
            yield _item(variant.name, _KIND.EnumMember, _NEAR)
        return
    type = found.sight.inference.of(object, found.sight.scope)
    for member in environment.types.members(type) if type is not None else ():
        yield from _of_type(document, found, member)
    if type is None:
        # Nothing is known of it: any method may be meant.
        for kind in LISTED:
            for name in document.knowledge.methods(kind):
                yield _item(name, _KIND.Method, _FAR, {"kind": kind, "method": name})


def _of_type(document: Document, found: Supposed, type: Type) -> Iterator[lsp.CompletionItem]:
    environment = found.sight.inference.environment
    kind = type.name if isinstance(type, ast.TypeName) else "dict"
    shape = type if isinstance(type, ast.TypeShape) else None
    if isinstance(type, ast.TypeName) and type.name in environment.types.declared.structs:
        shape = environment.types.shape_of(type)
        for method in sorted(environment.methods.get(type.name, ())):
            yield _item(method, _KIND.Method, _OWN)
    for field in shape.fields if shape is not None else ():
        yield _item(field.name, _KIND.Field, _NEAR, detail=shown(field.type))
    for name in document.knowledge.properties(kind):
        yield _item(name, _KIND.Property, _OWN)
    for name in document.knowledge.methods(kind):
        yield _item(name, _KIND.Method, _BUILTIN, {"kind": kind, "method": name})


# Names, types, words.


def _names(document: Document, found: Supposed) -> Iterator[lsp.CompletionItem]:
    environment = found.sight.inference.environment
    yield from _in_sight(found.sight.scope)
    for item in environment.items:
        kind = _KINDS.get(type(item))
        if kind is not None:
            yield _item(item.name, kind, _OWN)  # type: ignore[attr-defined]
    for name in environment.foreign_functions:
        yield _item(name, _KIND.Function, _OWN)
    for name in document.knowledge.globals():
        yield _item(name, _KIND.Constant, _BUILTIN)
    yield from _builtins()
    begins = len(found.nodes) > 1 and isinstance(found.nodes[-2], ast.Block | ast.Program)
    yield from _words(STATEMENT_STARTS | _EXPRESSIONS if begins or len(found.nodes) == 1 else _EXPRESSIONS)


def _in_sight(scope: Scope | None) -> Iterator[lsp.CompletionItem]:
    while scope is not None:
        for name, binding in scope.names.items():
            if name != _CURSOR:
                kind = _KIND.Function if binding.fn is not None else _KIND.Variable
                detail = None if binding.type is None else shown(binding.type)
                yield _item(name, kind, _NEAR, detail=detail)
        scope = scope.parent


def _types(document: Document, found: Supposed) -> Iterator[lsp.CompletionItem]:
    environment = found.sight.inference.environment
    for name in "any bool bytes callable dict duration float int iter list nil range set string".split():
        yield _item(name, _KIND.Keyword, _BUILTIN)
    for name in sorted(environment.types_anywhere):
        yield _item(name, _KIND.Struct, _OWN)
    for name in environment.imported.types if environment.imported is not None else ():
        yield _item(name, _KIND.Struct, _OWN)


def _builtins() -> Iterator[lsp.CompletionItem]:
    for name in catalog.names():
        if not name.startswith("__") and "." not in name:
            yield _item(name, _KIND.Function, _BUILTIN, {"builtin": name})


def _words(words: Iterable[str]) -> Iterator[lsp.CompletionItem]:
    for word in sorted(words):
        yield _item(word, _KIND.Keyword, _WORD)


# The options of a builtin.


def _table(document: Document, found: Supposed) -> tuple[Sequence[Option], set[str]] | None:
    """Return the options that a dict at the cursor may have, and those that it has."""
    keys: list[str] = []
    given: set[str] | None = None
    for outer, inner in zip(reversed(found.nodes[:-1]), reversed(found.nodes), strict=False):
        if isinstance(outer, ast.Dict) and given is None:
            given = {_key(entry) for entry in outer.entries}
        if isinstance(outer, ast.DictEntry) and inner is outer.value and given is not None:
            keys.insert(0, _key(outer))
        if isinstance(outer, ast.Closure) and given is None:
            given = set()
        if isinstance(outer, ast.Call) and given is not None:
            known = document.knowledge.options(outer.name)
            if known is None or known[0] >= len(outer.args) or outer.args[known[0]] is not inner:
                return None
            rows = _rows(known[1], keys)
            return None if not rows else (rows, given)
    return None


def _rows(table: OptionTable, keys: Sequence[str]) -> list[Option]:
    prefix = "".join(f"{key}." for key in keys)
    rows = [row for row in table.rows() if row.name.startswith(prefix)]
    inner = [row._replace(name=row.name.removeprefix(prefix)) for row in rows]
    return [row for row in inner if "." not in row.name]


def _key(entry: ast.Node) -> str:
    key = entry.key if isinstance(entry, ast.DictEntry) else None
    return key.value if isinstance(key, ast.Str) else ""


def _keys(rows: Sequence[Option], given: set[str]) -> Iterator[lsp.CompletionItem]:
    for row in rows:
        if row.name not in given:
            item = _item(row.name, _KIND.Property, _NEAR, detail=row.type)
            item.insert_text = f"{row.name}: "
            item.documentation = row.meaning
            yield item


# Imports.


def _modules(workspace: Workspace, document: Document, typed: str) -> Iterator[lsp.CompletionItem]:
    """The `std/…` modules, and the files and folders beside the document."""
    folder = typed.rpartition("/")[0]
    for name in document.knowledge.modules():
        if not folder or name.startswith(f"{folder}/"):
            yield _item(name.removeprefix(f"{folder}/") if folder else name, _KIND.Module, _OWN)
    if document.path is None:
        return
    directory = os.path.join(os.path.dirname(document.path), folder)
    for entry in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
        path = os.path.join(directory, entry)
        if entry.startswith(".") or path == document.path:
            continue
        if os.path.isdir(path):
            yield _item(entry, _KIND.Folder, _BUILTIN)
        elif entry.endswith(".harn"):
            yield _item(entry.removesuffix(".harn"), _KIND.File, _NEAR)


def _module_names(workspace: Workspace, document: Document, rest: str) -> Iterator[lsp.CompletionItem]:
    source = _FROM.match(rest)
    path = None if source is None else workspace.module(document, source[1])
    module = None if path is None else workspace.at_path(path)
    if module is not None:
        for item in module.items:
            kind = _KINDS.get(type(item.node))
            if kind is not None:
                yield _item(item.node.name, kind, _NEAR)  # type: ignore[attr-defined]


def _item(
    label: str,
    kind: lsp.CompletionItemKind,
    rank: str,
    data: dict[str, str] | None = None,
    detail: str | None = None,
) -> lsp.CompletionItem:
    return lsp.CompletionItem(label, kind=kind, sort_text=f"{rank}{label}", data=data, detail=detail)
