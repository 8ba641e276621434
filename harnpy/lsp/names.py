"""What a name in a document means, where that is declared, and where else it is used. Spec: 12 §3.4.

A document is read once for all of its names; a question about one of them is a look-up then. Two names mean
the same thing where their meanings are equal, in whichever files they stand.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.check.checker import ABOVE, VISITS
from harnpy.check.walk import Walk
from harnpy.lsp.uris import path_of
from harnpy.syntax import ast
from harnpy.syntax.names import enum_variant

if TYPE_CHECKING:
    from harnpy.check.lint.uses import Binding
    from harnpy.check.types.type_nodes import Type
    from harnpy.lsp.document import Document
    from harnpy.lsp.workspace import Workspace

_WORD = re.compile(r"[^\W\d]\w*")
_TYPES = {
    ast.StructDecl: "struct",
    ast.EnumDecl: "enum",
    ast.InterfaceDecl: "interface",
    ast.TypeDecl: "type",
}
_BINDINGS = {"param": "param", "fn": "fn", "tool": "tool", "skill": "skill", "eval_pack": "eval_pack"}
#: What only the file that declares it can name.
_LOCAL = frozenset(["variable", "param", "type_param"])


class Meaning(NamedTuple):
    """What a name stands for.

    ``kind``: ``variable``, ``param``, ``fn``, ``tool``, ``skill``, ``eval_pack``, ``pipeline``, ``struct``,
    ``enum``, ``interface``, ``type``, ``type_param``, ``variant``, ``field``, ``method``, ``builtin``,
    ``global`` or ``module``. ``uri`` and ``start`` are where the name is declared; builtins and globals are
    in no file. ``owner`` is the type that a variant, field or method belongs to.
    """

    kind: str
    name: str
    uri: str | None = None
    start: int = 0
    owner: str = ""

    @property
    def is_local(self) -> bool:
        """Whether only the file that declares it can name it."""
        return self.kind in _LOCAL


class Mention(NamedTuple):
    """A name where it stands in a text. ``declares``: it is declared there; ``writes``: it is assigned."""

    start: int
    end: int
    meaning: Meaning
    declares: bool = False
    writes: bool = False


class Names:
    """All names of one document, in the order of the text."""

    def __init__(self, mentions: list[Mention]) -> None:
        # What is assigned is read from the tree, too, as the name that it also is.
        found: dict[int, Mention] = {}
        for each in mentions:
            before = found.get(each.start)
            if before is None or (each.declares, each.writes) > (before.declares, before.writes):
                found[each.start] = each
        self.mentions = sorted(found.values())
        self._starts = [each.start for each in self.mentions]

    def at(self, offset: int) -> Mention | None:
        """Return the name that an offset is in, or at the end of."""
        index = bisect_right(self._starts, offset)
        found = self.mentions[index - 1] if index else None
        return found if found is not None and offset <= found.end else None

    def of(self, meaning: Meaning) -> Iterator[Mention]:
        """Yield where a meaning is named."""
        return (each for each in self.mentions if each.meaning == meaning)


def names(workspace: Workspace, document: Document) -> Names:
    """Return the names of a document; they are read when first asked for after an edit."""
    return document.once("names", lambda: Names(list(_Reader(workspace, document).read())))


def mentions_everywhere(workspace: Workspace, meaning: Meaning) -> Iterator[tuple[Document, Mention]]:
    """Yield where a meaning is named, in all files of the workspace."""
    home = next((one for one in workspace.documents.values() if one.uri == meaning.uri), None)
    paths = workspace.paths() if home is None or not meaning.is_local else (home.path,)
    seen = set()
    for path in [*paths, *(() if meaning.uri is None else (path_of(meaning.uri),))]:
        document = home if path is None or (home and home.path == path) else workspace.at_path(path)
        if document is None or document.uri in seen or meaning.name not in document.source:
            continue
        seen.add(document.uri)
        for mention in names(workspace, document).of(meaning):
            yield document, mention


def declaration(workspace: Workspace, document: Document, name: str) -> Meaning | None:
    """Return what a module declares or passes on under a name that others import."""
    return _declaration(workspace, document, name, set())


def _declaration(workspace: Workspace, document: Document, name: str, seen: set[str]) -> Meaning | None:
    seen.add(document.uri)
    passed_on = []
    for item in document.items:
        node = item.node
        if isinstance(node, ast.Import):
            if node.pub and (node.names is None or name in node.names):
                passed_on.append(node.path)
        elif getattr(node, "name", None) == name and not isinstance(node, ast.ImplDecl | ast.Call):
            return Meaning(_kind(node), name, document.uri, document.name_span(node, name)[0])
    for path in passed_on:
        place = workspace.module(document, path)
        module = None if place is None else workspace.at_path(place)
        if module is not None and module.uri not in seen:
            found = _declaration(workspace, module, name, seen)
            if found is not None:
                return found
    return None


def _kind(node: ast.Node) -> str:
    if type(node) in _TYPES:
        return _TYPES[type(node)]
    kinds: dict[type, str] = {
        ast.FnDecl: "fn",
        ast.ToolDecl: "tool",
        ast.SkillDecl: "skill",
        ast.EvalPack: "eval_pack",
        ast.Pipeline: "pipeline",
    }
    return kinds.get(type(node), "variable")


class _Reader:
    """Reads the names of one document."""

    def __init__(self, workspace: Workspace, document: Document) -> None:
        self._workspace = workspace
        self._document = document
        self._knowledge = document.knowledge
        self._imports = [item.node for item in document.items if isinstance(item.node, ast.Import)]
        self._imported: dict[str, Meaning | None] = {}
        self._types: dict[str, Meaning] = {}
        self._members: dict[tuple[str, str], Meaning] = {}
        self._bound: dict[int, Meaning] = {}
        self._objects: dict[int, str] = {}

    def read(self) -> Iterator[Mention]:
        document = self._document
        yield from self._declarations()
        yield from self._bindings()
        for item in document.items:
            types = _Objects(document.environment, item.node)
            types.visit(item.node)
            self._objects.update(types.structs)
        for item in document.items:
            yield from self._uses(item.node, {})

    def _meaning(self, kind: str, name: str, node: ast.Node, owner: str = "") -> tuple[Mention, Meaning]:
        """Return a name that ``node`` declares."""
        start, end = self._document.name_span(node, name)
        meaning = Meaning(kind, name, self._document.uri, start, owner)
        return Mention(start, end, meaning, declares=True), meaning

    # --- what the file declares -------------------------------------------------------------------

    def _declarations(self) -> Iterator[Mention]:
        """Yield types with what belongs to them, and pipelines: they hold in the whole file."""
        for item in self._document.items:
            for node in ast.walk(item.node):
                if type(node) in _TYPES or isinstance(node, ast.Pipeline):
                    mention, meaning = self._meaning(_kind(node), node.name, node)  # type: ignore[attr-defined]
                    self._types.setdefault(meaning.name, meaning)
                    yield mention
                    yield from self._parts(node, meaning.name)
                elif isinstance(node, ast.ImplDecl):
                    for method in node.methods:
                        yield self._member("method", method.name, method, node.name)

    def _parts(self, node: Any, owner: str) -> Iterator[Mention]:
        for field in getattr(node, "fields", ()):
            yield self._member("field", field.name, field, owner)
        for variant in getattr(node, "variants", ()):
            yield self._member("variant", variant.name, variant, owner)
        for member in getattr(node, "members", ()):
            yield self._member("method", member.name, member, owner)

    def _member(self, kind: str, name: str, node: ast.Node, owner: str) -> Mention:
        mention, meaning = self._meaning(kind, name, node, owner)
        self._members.setdefault((owner, name), meaning)
        return mention

    def _bindings(self) -> Iterator[Mention]:
        """Yield variables, parameters and functions where they are declared, read and assigned."""
        document = self._document
        bindings = document.uses.bindings
        for binding in bindings:
            if binding.kind == "import":
                meaning = self._import(binding.name) or Meaning("module", binding.name)
                start, end = document.name_span(binding.place, binding.name)
                mention = Mention(start, end, meaning)
            else:
                kind = _BINDINGS.get(binding.kind, "variable")
                mention, meaning = self._meaning(kind, binding.name, self._named(binding))
            yield mention
            for use in (*binding.reads, *binding.writes):
                known = self._bound.get(id(use))
                # A call may mean any of several: the last one that is declared before it, or else the first.
                if known is None or meaning.start <= document.place(use.start):
                    self._bound[id(use)] = meaning
        for use_id, binding in document.uses.meaning.items():
            if binding.kind != "import":
                self._bound[use_id] = self._meaning(
                    _BINDINGS.get(binding.kind, "variable"), binding.name, self._named(binding)
                )[1]

    def _named(self, binding: Binding) -> ast.Node:
        return binding.place

    # --- where names are used ---------------------------------------------------------------------

    def _uses(self, root: ast.Node, params: dict[str, Meaning]) -> Iterator[Mention]:
        # A stack of our own: a sum of twenty thousand terms is a tree that deep.
        stack: list[tuple[ast.Node, dict[str, Meaning]]] = [(root, params)]
        while stack:
            node, params = stack.pop()
            declared = getattr(node, "type_params", ())
            if declared:
                params = dict(params)
                for param in declared:
                    mention, params[param.name] = self._meaning("type_param", param.name, param)
                    yield mention
            use = _USES.get(type(node))
            if use is not None:
                yield from use(self, node, params)
            stack.extend((child, params) for child in node.children())

    def _mention(
        self, start: int, name: str, meaning: Meaning | None, writes: bool = False
    ) -> Iterator[Mention]:
        at = self._document.place(start)
        if meaning is not None and self._document.source.startswith(name, at) and name:
            yield Mention(at, at + len(name), meaning, writes=writes)

    def _name(self, node: ast.Name, params: dict[str, Meaning]) -> Iterator[Mention]:
        yield from self._mention(node.start, node.name, self._bound.get(id(node)) or self._free(node.name))

    def _call(self, node: ast.Call, params: dict[str, Meaning]) -> Iterator[Mention]:
        yield from self._mention(node.start, node.name, self._bound.get(id(node)) or self._free(node.name))

    def _assign(self, node: ast.Assign, params: dict[str, Meaning]) -> Iterator[Mention]:
        root = node.target
        while isinstance(root, ast.Member | ast.Index):
            root = root.object
        if isinstance(root, ast.Name):
            meaning = self._bound.get(id(node))
            if meaning is not None:
                self._bound[id(root)] = meaning
                yield from self._mention(root.start, root.name, meaning, writes=True)

    def _free(self, name: str) -> Meaning | None:
        """Return what a name means that the file binds nowhere."""
        found = self._types.get(name) or self._import(name)
        if found is None and self._knowledge.is_builtin(name):
            return Meaning("builtin", name)
        if found is None and self._knowledge.is_global(name):
            return Meaning("global", name)
        return found

    def _type_name(self, node: ast.TypeName, params: dict[str, Meaning]) -> Iterator[Mention]:
        meaning = params.get(node.name) or self._types.get(node.name) or self._import(node.name)
        yield from self._mention(node.start, node.name, meaning)

    def _struct(self, node: ast.StructLit, params: dict[str, Meaning]) -> Iterator[Mention]:
        meaning = self._types.get(node.name) or self._import(node.name)
        yield from self._mention(node.start, node.name, meaning)
        for entry in node.entries:
            if isinstance(entry, ast.DictEntry) and isinstance(entry.key, ast.Str):
                yield from self._mention(
                    entry.key.start, entry.key.value, self._part(node.name, entry.key.value)
                )

    def _impl(self, node: ast.ImplDecl, params: dict[str, Meaning]) -> Iterator[Mention]:
        start, end = self._document.name_span(node, node.name)
        meaning = self._types.get(node.name)
        if meaning is not None:
            yield Mention(start, end, meaning)

    def _pipeline(self, node: ast.Pipeline, params: dict[str, Meaning]) -> Iterator[Mention]:
        if node.extends and node.extends in self._types:
            start, end = self._document.span(node)
            at = self._document.source.find(node.extends, self._document.source.find("extends", start, end))
            yield Mention(at, at + len(node.extends), self._types[node.extends])

    def _member_use(self, node: ast.Member | ast.MethodCall, params: dict[str, Meaning]) -> Iterator[Mention]:
        variant = enum_variant(node, self._document.environment.enums_anywhere)
        owner = variant[0] if variant else self._objects.get(id(node))
        meaning = None if owner is None else self._part(owner, node.name)
        if meaning is not None:
            start, end = self._document.name_span(_Rest(node.object.end, node.end), node.name)
            if end - start == len(node.name):
                yield Mention(start, end, meaning)

    def _part(self, owner: str, name: str) -> Meaning | None:
        """Return a field, variant or method of a type, of this file or of an imported one."""
        found = self._members.get((owner, name))
        if found is None and owner not in self._types:
            home = self._import(owner)
            module = None if home is None or home.uri is None else self._workspace.at(home.uri)
            if module is not None and module is not self._document:
                return next(
                    (
                        each.meaning
                        for each in names(self._workspace, module).mentions
                        if each.declares and each.meaning.owner == owner and each.meaning.name == name
                    ),
                    None,
                )
        return found

    def _import_use(self, node: ast.Import, params: dict[str, Meaning]) -> Iterator[Mention]:
        path = self._workspace.module(self._document, node.path)
        start, end = self._document.span(node)
        at = self._document.source.rfind(node.path, start, end)
        if path is not None and at >= 0:
            uri = self._workspace.uri(path)
            yield Mention(at, at + len(node.path), Meaning("module", node.path, uri))

    def _import(self, name: str) -> Meaning | None:
        """Return what an import brings under a name."""
        if name not in self._imported:
            self._imported[name] = None
            for node in self._imports:
                if node.names is None or name in node.names:
                    path = self._workspace.module(self._document, node.path)
                    module = None if path is None else self._workspace.at_path(path)
                    if module is not None and module.uri != self._document.uri:
                        self._imported[name] = declaration(self._workspace, module, name)
                if self._imported[name] is not None:
                    break
        return self._imported[name]


class _Rest(ast.Node):
    """A stretch of the text behind a node."""


_USES: dict[type, Any] = {
    ast.Name: _Reader._name,
    ast.Call: _Reader._call,
    ast.Assign: _Reader._assign,
    ast.TypeName: _Reader._type_name,
    ast.StructLit: _Reader._struct,
    ast.ImplDecl: _Reader._impl,
    ast.Pipeline: _Reader._pipeline,
    ast.Member: _Reader._member_use,
    ast.MethodCall: _Reader._member_use,
    ast.Import: _Reader._import_use,
}


class _Objects(Walk):
    """The checker's walk, which notes of which struct the object of a field or method is."""

    def __init__(self, environment: Any, item: ast.Node) -> None:
        super().__init__(environment, item, VISITS, {**ABOVE, ast.Member: _noting, ast.MethodCall: _noting})
        self.structs: dict[int, str] = {}


def _note(walk: _Objects, node: Any, object: Type | None) -> None:
    if isinstance(object, ast.TypeName):
        walk.structs[id(node)] = object.name


_noting = ("object", _note)


def word_at(source: str, offset: int) -> tuple[int, int] | None:
    """Return where the word is that an offset is in, or at the end of."""
    line = source.rfind("\n", 0, offset) + 1
    for word in _WORD.finditer(source, line):
        if word.start() > offset:
            return None
        if offset <= word.end():
            return word.span()
    return None
