"""What a name in a document means, where that is declared, and where else it is used. Spec: 12 §3.4.

A document is read once for all of its names; a question about one of them is a look-up then. Two names mean
the same thing where their meanings are equal, in whichever files they stand.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.check.checker import ABOVE, VISITS
from harnpy.check.types import type_nodes
from harnpy.check.walk import Walk
from harnpy.lsp.uris import path_of
from harnpy.syntax import ast
from harnpy.syntax.names import enum_variant

if TYPE_CHECKING:
    from harnpy.check.edits import Item
    from harnpy.check.lint.uses import Binding
    from harnpy.check.types.type_nodes import Type
    from harnpy.lsp.document import Document
    from harnpy.lsp.workspace import Workspace

_WORD = re.compile(r"[^\W\d]\w*")
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
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
    """A name where it stands in a text. ``declares``: it is declared there; ``writes``: it is assigned.

    ``short``: it is the entry `{name}` of a pattern, which names a key and a variable.
    """

    start: int
    end: int
    meaning: Meaning
    declares: bool = False
    writes: bool = False
    short: bool = False


class Names:
    """All names of one document, in the order of the text."""

    def __init__(self, mentions: list[Mention]) -> None:
        # What is assigned is read from the tree, too, as the name that it also is.
        found: dict[tuple[int, bool], Mention] = {}
        for each in mentions:
            key = each.start, each.short and each.meaning.kind == "field"
            before = found.get(key)
            if before is None or (each.declares, each.writes) > (before.declares, before.writes):
                found[key] = each
        # Of a key and a variable, the variable is what is there.
        self.mentions = sorted(found.values(), key=lambda each: (each.start, each.declares, each.writes))
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
        document = home if path is None or (home and home.path == path) else None
        if document is None and path is not None:
            # Most files have no such word, and needn't be parsed for that.
            text = workspace.text_at(path)
            document = workspace.at_path(path) if text is not None and meaning.name in text else None
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


def type_named(workspace: Workspace, document: Document, name: str) -> Meaning | None:
    """Return the type that a name stands for in a document: one of its own, or an imported one."""
    for item in document.items:
        for node in ast.walk(item.node):
            if type(node) in _TYPES and node.name == name:  # type: ignore[attr-defined]
                return Meaning(_kind(node), name, document.uri, document.name_span(node, name)[0])
    for item in document.items:
        node = item.node
        if isinstance(node, ast.Import):
            path = workspace.module(document, node.path)
            module = None if path is None else workspace.at_path(path)
            found = None if module is None else declaration(workspace, module, name)
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
        self._known: dict[int, tuple[Mention, Meaning]] = {}

    def read(self) -> Iterator[Mention]:
        document = self._document
        yield from self._declarations()
        yield from self._bindings()
        for item in document.items:
            self._objects.update(document.lasting(item, _objects))
        for item in document.items:
            yield from self._uses(item)

    def _meaning(self, kind: str, name: str, node: ast.Node, owner: str = "") -> tuple[Mention, Meaning]:
        """Return a name that ``node`` declares."""
        return self._declared(kind, name, *self._document.name_span(_beyond_attributes(node), name), owner)

    def _declared(
        self, kind: str, name: str, start: int, end: int, owner: str = "", short: bool = False
    ) -> tuple[Mention, Meaning]:
        meaning = Meaning(kind, name, self._document.uri, start, owner)
        return Mention(start, end, meaning, declares=True, short=short), meaning

    # --- what the file declares -------------------------------------------------------------------

    def _declarations(self) -> Iterator[Mention]:
        """Yield types with what belongs to them, and pipelines: they hold in the whole file."""
        for item in self._document.items:
            for node in self._document.kept(item, _declaring):
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
                mention, meaning = self._binding(binding)
            if mention.end - mention.start == len(binding.name):
                # The name of an eval pack may come from its id.
                yield mention
            for use in (*binding.reads, *binding.writes):
                known = self._bound.get(id(use))
                # A call may mean any of several: the last one that is declared before it, or else the first.
                at = document.place(use.start)
                if known is None or _nearness(meaning, at) > _nearness(known, at):
                    self._bound[id(use)] = meaning
        for use_id, binding in document.uses.meaning.items():
            if binding.kind != "import":
                self._bound[use_id] = self._binding(binding)[1]

    def _binding(self, binding: Binding) -> tuple[Mention, Meaning]:
        known = self._known.get(id(binding))
        if known is None:
            short, start, end = _named(self._document, binding)
            kind = _BINDINGS.get(binding.kind, "variable")
            known = self._known[id(binding)] = self._declared(kind, binding.name, start, end, short=short)
        return known

    # --- where names are used ---------------------------------------------------------------------

    def _uses(self, item: Item) -> Iterator[Mention]:
        known: dict[int, dict[str, Meaning]] = {}
        for node, around in self._document.kept(item, _naming):
            params = known.get(id(around))
            if params is None:
                mentions = [self._meaning("type_param", param.name, param) for param in around]
                params = known[id(around)] = {meaning.name: meaning for _, meaning in mentions}
                yield from (mention for mention, _ in mentions)
            yield from _USES[type(node)](self, node, params)

    def _mention(
        self, start: int, name: str, meaning: Meaning | None, writes: bool = False
    ) -> Iterator[Mention]:
        at = self._document.place(start)
        if meaning is not None and self._document.source.startswith(name, at) and name:
            yield Mention(at, at + len(name), meaning, writes=writes)

    def _where(self, node: ast.FnDecl, params: dict[str, Meaning]) -> Iterator[Mention]:
        """Yield the type parameters and interfaces of `where T: I`, which are no nodes."""
        start = max((each.end for each in (*node.type_params, *node.params, node.returns) if each), default=0)
        for pair in node.where:
            for name in pair:
                begin, end = self._document.name_span(_Rest(start or node.start, node.body.start), name)
                meaning = params.get(name) or self._types.get(name) or self._import(name)
                if meaning is not None and end - begin == len(name):
                    yield Mention(begin, end, meaning)

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
                yield from self._key(entry.key, self._part(node.name, entry.key.value))

    def _key(self, key: ast.Str, meaning: Meaning | None) -> Iterator[Mention]:
        """Yield a key as a name, which may be quoted."""
        quoted = self._document.source.startswith('"', self._document.place(key.start))
        yield from self._mention(key.start + quoted, key.value, meaning)

    def _dict_pattern(self, node: ast.DictPattern, params: dict[str, Meaning]) -> Iterator[Mention]:
        owner = self._objects.get(id(node))
        for entry in node.entries if owner is not None else ():
            meaning = self._part(owner or "", entry.key or "")
            if meaning is not None:
                at = self._document.place(entry.start)
                short = not _is_aliased(self._document, entry)
                yield Mention(at, at + len(meaning.name), meaning, short=short)

    def _match(self, node: ast.Match, params: dict[str, Meaning]) -> Iterator[Mention]:
        owner = self._objects.get(id(node))
        for arm in node.arms if owner is not None else ():
            for pattern in arm.patterns:
                for entry in pattern.entries if isinstance(pattern, ast.Dict) else ():
                    if isinstance(entry, ast.DictEntry) and isinstance(entry.key, ast.Str):
                        yield from self._key(entry.key, self._part(owner or "", entry.key.value))

    def _impl(self, node: ast.ImplDecl, params: dict[str, Meaning]) -> Iterator[Mention]:
        start, end = self._document.name_span(_beyond_attributes(node), node.name)
        meaning = self._types.get(node.name) or self._import(node.name)
        if meaning is not None:
            yield Mention(start, end, meaning)

    def _pipeline(self, node: ast.Pipeline, params: dict[str, Meaning]) -> Iterator[Mention]:
        if node.extends and node.extends in self._types:
            clause = self._document.name_span(_beyond_attributes(node), "extends")[1]
            rest = _Rest(node.end - (self._document.place(node.end) - clause), node.end)
            start, end = self._document.name_span(rest, node.extends)
            yield Mention(start, end, self._types[node.extends])

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
    ast.FnDecl: _Reader._where,
    ast.DictPattern: _Reader._dict_pattern,
    ast.Match: _Reader._match,
    ast.Pipeline: _Reader._pipeline,
    ast.Member: _Reader._member_use,
    ast.MethodCall: _Reader._member_use,
    ast.Import: _Reader._import_use,
}


def _declaring(document: Document, item: Item) -> Sequence[ast.Node]:
    """Return the nodes of an item that declare types, methods or pipelines."""
    kinds = (*_TYPES, ast.Pipeline, ast.ImplDecl)
    return [node for node in ast.walk(item.node) if isinstance(node, kinds)]


def _naming(document: Document, item: Item) -> Sequence[tuple[ast.Node, Sequence[ast.TypeParam]]]:
    """Return the nodes of an item that name something, each with the type parameters around it.

    Nodes with the same parameters around have the same sequence of them.
    """
    found: list[tuple[ast.Node, Sequence[ast.TypeParam]]] = []
    # A stack of our own: a sum of twenty thousand terms is a tree that deep.
    stack: list[tuple[ast.Node, Sequence[ast.TypeParam]]] = [(item.node, [])]
    while stack:
        node, around = stack.pop()
        declared = getattr(node, "type_params", ())
        if declared:
            around = [*around, *declared]
        if type(node) in _USES:
            found.append((node, around))
        elif declared:
            # It names nothing itself; what is around its parts is to be known.
            found.append((ast.Name(node.start, node.start, ""), around))
        stack.extend((child, around) for child in node.children())
    return found


def _nearness(meaning: Meaning, at: int) -> tuple[bool, int]:
    """Return by what a call at that place means one of several functions of a name: the greatest."""
    start = meaning.start
    return (True, start) if start <= at else (False, -start)


def _beyond_attributes(node: ast.Node) -> ast.Node:
    """Return the part of a declaration that its attributes don't belong to."""
    attributes = getattr(node, "attrs", ())
    return _Rest(attributes[-1].end, node.end) if attributes else node


def _named(document: Document, binding: Binding) -> tuple[bool, int, int]:
    """Return where a binding has its name, and whether that is the short entry of a pattern."""
    place, name = binding.place, binding.name
    start = place.start
    match place:
        case ast.PatternEntry(key=str()):
            aliased = _is_aliased(document, place)
            return (
                not aliased,
                *document.name_span(_behind(document, place, ":") if aliased else place, name),
            )
        case ast.DictPattern(entries=entries, rest=rest) | ast.ListPattern(entries=entries, rest=rest):
            start = entries[-1].end if entries and name == rest else start
        case ast.PairPattern(second=second) if name == second:
            return (False, *document.name_span(_behind(document, place, ","), name))
        case ast.Pipeline() | ast.Override():
            return (False, *document.name_span(_behind(document, _beyond_attributes(place), "("), name))
        case ast.Parallel(source=source, max_concurrent=limit):
            start = (limit or source).end
        case ast.EvalPack() if binding.kind == "field":
            # Its id or version, which stands nowhere as a name.
            start = place.end
        case _:
            return (False, *document.name_span(_beyond_attributes(place), name))
    return (False, *document.name_span(_Rest(start, place.end), name))


def _behind(document: Document, node: ast.Node, mark: str) -> ast.Node:
    """Return the part of a node behind the first of some marks in its code; all of it, where a text that was
    mended has none."""
    start, end = document.span(node)
    code = _COMMENTS.sub(lambda comment: " " * len(comment[0]), document.source[start:end])
    return _Rest(node.start + code.find(mark) + 1, node.end)


def _is_aliased(document: Document, entry: ast.PatternEntry) -> bool:
    """Return whether an entry of a dict pattern is written `key: name`."""
    start, end = document.span(entry)
    code = _COMMENTS.sub("", document.source[start:end])
    return code[len(entry.key or "") :].lstrip().startswith(":")


def _objects(document: Document, item: Item) -> dict[int, str]:
    """Return the structs that the objects of an item's fields and methods are of, by the nodes' identity."""
    walk = _Objects(document.environment, item.node)
    walk.visit(item.node)
    return walk.structs


class _Objects(Walk):
    """The checker's walk, which notes of which struct an object is, or what a pattern takes apart."""

    def __init__(self, environment: Any, item: ast.Node) -> None:
        visits = VISITS.with_entries({ast.Let: _let, ast.For: _for, ast.Match: _match})
        above = ABOVE.with_entries({ast.Member: _note, ast.MethodCall: _note})
        super().__init__(environment, item, visits, above)
        self.structs: dict[int, str] = {}


def _note(walk: _Objects, node: Any, object: Type | None) -> None:
    if isinstance(object, ast.TypeName):
        walk.structs[id(node)] = object.name


def _let(walk: _Objects, node: ast.Let) -> object:
    if isinstance(node.target, ast.DictPattern):
        _note(walk, node.target, node.type or walk.type(node.value))
    return VISITS[ast.Let](walk, node)


def _for(walk: _Objects, node: ast.For) -> object:
    if isinstance(node.pattern, ast.DictPattern):
        _note(walk, node.pattern, type_nodes.element(walk.type(node.iterable)))
    return VISITS[ast.For](walk, node)


def _match(walk: _Objects, node: ast.Match) -> object:
    _note(walk, node, walk.type(node.value))
    return VISITS[ast.Match](walk, node)


def word_at(source: str, offset: int) -> tuple[int, int] | None:
    """Return where the word is that an offset is in, or at the end of."""
    line = source.rfind("\n", 0, offset) + 1
    for word in _WORD.finditer(source, line):
        if word.start() > offset:
            return None
        if offset <= word.end():
            return word.span()
    return None
