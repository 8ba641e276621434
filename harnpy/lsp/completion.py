"""What may stand at the cursor. Spec: 12 §3.3.

A word of our own is put where one is being typed; what it would be there says what is offered.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lsprotocol import types as lsp

from harnpy.builtins import catalog
from harnpy.check.types.type_nodes import shown
from harnpy.lsp import descriptions, imports
from harnpy.lsp.document import CURSOR, Document, Supposed
from harnpy.lsp.inferring import Guess
from harnpy.lsp.literals import argument_of, around, closing, keys_given
from harnpy.lsp.names import declaration, word_at
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast
from harnpy.syntax.lexer import RESERVED
from harnpy.syntax.mending import acceptable
from harnpy.vm.run.methods import LISTED

if TYPE_CHECKING:
    from harnpy.check.scopes import Scope
    from harnpy.check.types.type_nodes import Type

_IMPORT_PATH = re.compile(r"import\s+(?:\{[^{}\"]*\}\s+from\s+)?\Z")
_IMPORT_NAMES = re.compile(r"import\s+\{([^{}\"]*)\Z")
_FROM = re.compile(r'[^{}"]*\}\s+from\s+"([^"\n]+)"')
_KIND = lsp.CompletionItemKind
_KINDS = {
    ast.FnDecl: _KIND.Function,
    ast.ToolDecl: _KIND.Function,
    ast.SkillDecl: _KIND.Constant,
    ast.EvalPack: _KIND.Constant,
    ast.StructDecl: _KIND.Struct,
    ast.EnumDecl: _KIND.Enum,
    ast.InterfaceDecl: _KIND.Interface,
    ast.TypeDecl: _KIND.TypeParameter,
}
#: Words that the parser knows by tokens of their own, and in which places.
_WORD_KINDS = {**{word: word for word in RESERVED}, "each": "EACH", "settle": "SETTLE"}
#: What a declaration or statement goes on with, for clients that jump from one place to the next.
_SNIPPETS = {
    "fn": "fn ${1:name}(${2}) {\n  $0\n}",
    "tool": "tool ${1:name}(${2:input: string}) -> ${3:any} {\n  description \"${4:What it does.}\"\n  $0\n}",
    "pipeline": "pipeline ${1:default}(${2:task}) {\n  $0\n}",
    "struct": "struct ${1:Name} {\n  ${2:field}: ${3:string}\n}",
    "enum": "enum ${1:Name} {\n  ${2:First}\n  ${3:Second}\n}",
    "interface": "interface ${1:Name} {\n  fn ${2:method}(self)\n}",
    "impl": "impl ${1:Name} {\n  fn ${2:method}(self) {\n    $0\n  }\n}",
    "skill": "skill ${1:name} {\n  description \"${2:What it is for.}\"\n  $0\n}",
    "if": "if ${1:condition} {\n  $0\n}",
    "for": "for ${1:item} in ${2:items} {\n  $0\n}",
    "while": "while ${1:condition} {\n  $0\n}",
    "match": "match ${1:value} {\n  ${2:pattern} -> { $0 }\n}",
    "try": "try {\n  $1\n} catch (${2:error}) {\n  $0\n}",
    "import": 'import { $2 } from "$1"',
}  # fmt: skip
#: The order of what is offered: what is nearest comes first.
_FIRST, _NEAR, _OWN, _WORD, _BUILTIN, _FAR = "0", "1", "2", "3", "4", "5"
_TYPE_NAMES = "any bool bytes callable dict duration float int iter list nil range set string".split()


class Offer(NamedTuple):
    """One item, before it is known whether it fits what was typed."""

    label: str
    kind: lsp.CompletionItemKind
    rank: str
    detail: str | None = None
    #: What `resolve` finds the documentation by.
    data: Mapping[str, Any] | None = None
    #: What is put in, if that isn't the label.
    insert: str | None = None
    documentation: str | None = None
    deprecated: bool = False
    snippet: bool = False
    #: The module that it must be imported from.
    module: str | None = None


def completion(workspace: Workspace, document: Document, params: lsp.CompletionParams) -> lsp.CompletionList:
    """Return what may stand at a position."""
    offset = document.text.offset(params.position)
    here = _Here(workspace, document, offset)
    typed = document.source[here.start : offset]
    found: dict[str, lsp.CompletionItem] = {}
    for offer in here.offers():
        if offer.label not in found and _fits(typed, offer.label):
            found[offer.label] = here.item(offer)
    return lsp.CompletionList(is_incomplete=bool(typed), items=list(found.values()))


def resolve(workspace: Workspace, item: lsp.CompletionItem) -> lsp.CompletionItem:
    """Return an item with its documentation, which is looked up for the one that is looked at."""
    data = item.data if isinstance(item.data, dict) else {}
    found = None
    if "builtin" in data:
        found = descriptions.of_builtin(data["builtin"])
    elif "method" in data:
        found = descriptions.of_method(data["kind"], data["method"])
    elif "uri" in data:
        home = workspace.at(data["uri"])
        meaning = None if home is None else declaration(workspace, home, data["name"])
        found = None if meaning is None else descriptions.of_meaning(workspace, meaning)
    if found is not None:
        item.detail = found.declaration
        item.documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text)
    return item


def _fits(typed: str, label: str) -> bool:
    """Return whether the letters that were typed are in a word, in their order."""
    letters = iter(label.lower())
    return all(letter in letters for letter in typed.lower())


class _Here:
    """The place of the cursor. What is between ``start`` and ``end`` is being typed."""

    def __init__(self, workspace: Workspace, document: Document, offset: int) -> None:
        self.workspace = workspace
        self.document = document
        self.offset = offset
        self.knowledge = document.knowledge
        self.piece = document.checked.draft.piece_at(offset)
        self.around = around(document.source, self.piece.start, offset)
        self.start, self.end = word_at(document.source, offset) or (offset, offset)
        self.typed = document.source[self.start : offset]
        self.before = document.source[self.piece.start : self.start]
        completing = workspace.client.text_document and workspace.client.text_document.completion
        self.client = completing and completing.completion_item
        self.imports: imports.Imports | None = None
        self._acceptable: set[str] = set()

    def item(self, offer: Offer) -> lsp.CompletionItem:
        """Return an offer as the client gets it."""
        item = lsp.CompletionItem(
            offer.label,
            kind=offer.kind,
            sort_text=f"{offer.rank}{offer.label}",
            detail=offer.detail,
            data=offer.data,
            documentation=offer.documentation,
            insert_text=offer.insert,
        )
        if offer.snippet:
            item.insert_text_format = lsp.InsertTextFormat.Snippet
        if offer.deprecated:
            item.tags = [lsp.CompletionItemTag.Deprecated]
        if offer.module is not None:
            self.imports = self.imports or imports.Imports(self.document)
            edit = self.imports.edit(offer.module, offer.label)
            place = self.document.text.range(edit.start, edit.end)
            item.additional_text_edits = [lsp.TextEdit(place, edit.text)]
            item.label_details = lsp.CompletionItemLabelDetails(description=offer.module)
        if self.end > self.offset:
            item.text_edit = self._edit(offer.insert or offer.label)
        return item

    def _edit(self, text: str) -> lsp.TextEdit | lsp.InsertReplaceEdit:
        """Put a text in the place of the word that the cursor is in the middle of."""
        position = self.document.text.position
        start, end = position(self.start), position(self.end)
        if self.client and self.client.insert_replace_support:
            insert = lsp.Range(start, position(self.offset))
            return lsp.InsertReplaceEdit(text, insert, lsp.Range(start, end))
        return lsp.TextEdit(lsp.Range(start, end), text)

    def offers(self) -> Iterator[Offer]:
        """Yield what may stand here."""
        if self.around.kind == "comment":
            return
        if self.around.kind == "string":
            yield from self._in_string()
            return
        listed = _IMPORT_NAMES.search(self.before)
        if listed is not None:
            given = {name.strip() for name in listed[1].split(",")}
            rest = self.document.source[self.end : self.end + 2_000]
            yield from (each for each in self._module_names(rest) if each.label not in given)
            return
        found = self._supposed()
        if found is None:
            yield from self._everywhere()
        else:
            yield from self._at(found)

    def _supposed(self) -> Supposed | None:
        """Return what is here if there is a name, or a key where only that makes sense."""
        closers = closing(self.piece.text, self.end - self.piece.start)
        if closers and self._may_be_key():
            return self.document.supposed(self.start, self.end, f"{CURSOR}: nil{closers}")
        found = self.document.supposed(self.start, self.end, f"{CURSOR}{closers}")
        if self._may_be_key() and (found is None or not _is_key(found)):
            other = self.document.supposed(self.start, self.end, f"{CURSOR}: nil")
            if other is not None and _is_key(other) and (found is None or self._has_keys(other)):
                return other
        return found

    def _may_be_key(self) -> bool:
        code = self.before.rstrip()
        follows = self.document.source[self.end : self.end + 80].lstrip()[:1]
        return code.endswith(("{", ",")) and follows != ":"

    def _has_keys(self, found: Supposed) -> bool:
        return next(_Supposing(self, found).keys(), None) is not None

    def _at(self, found: Supposed) -> Iterator[Offer]:
        place = _Supposing(self, found)
        node = next((one for one in reversed(found.nodes) if _is_cursor(one)), None)
        if isinstance(node, ast.Member | ast.MethodCall):
            yield from place.members(node.object)
        elif isinstance(node, ast.TypeName):
            yield from place.types()
        elif _is_key(found):
            yield from place.keys()
        elif isinstance(node, ast.Name | ast.Call | ast.StructLit):
            yield from place.values(quoted=False)
            yield from place.names()
        elif node is None:
            yield from self._words()
        elif isinstance(node, ast.PatternEntry) and node.key == CURSOR:
            yield from place.pattern_keys()

    def _everywhere(self) -> Iterator[Offer]:
        words = list(self._words())
        yield from words
        if "IDENT" in self._acceptable:
            yield from _builtins(self.knowledge.names())

    def _words(self) -> Iterator[Offer]:
        """Yield the reserved words that the parser would take here."""
        self._acceptable = acceptable(self.before, [*_WORD_KINDS.values(), "IDENT"])
        snippets = bool(self.client and self.client.snippet_support)
        for word, kind in sorted(_WORD_KINDS.items()):
            if kind in self._acceptable:
                yield Offer(word, _KIND.Keyword, _WORD)
        for word, text in _SNIPPETS.items() if snippets else ():
            if word in self._acceptable:
                yield Offer(f"{word} …", _KIND.Snippet, _WORD, insert=text, snippet=True)

    # --- strings ----------------------------------------------------------------------------------

    def _in_string(self) -> Iterator[Offer]:
        source, opening = self.document.source, self.around.start
        line = source[source.rfind("\n", 0, opening) + 1 : opening]
        if _IMPORT_PATH.search(line):
            yield from self._modules(source[opening + 1 : self.offset])
            return
        close = source.find('"', self.offset)
        end_of_line = source.find("\n", self.offset)
        ends = close >= 0 and (end_of_line < 0 or close < end_of_line)
        found = self.document.supposed(opening, close + 1 if ends else self.offset, CURSOR)
        if found is not None and source[opening : opening + 1] == '"':
            self.start = opening + 1
            self.end = close if ends else self.offset
            yield from _Supposing(self, found).values(quoted=True)

    def _modules(self, typed: str) -> Iterator[Offer]:
        """Yield the `std/…` modules, and the files and folders beside the document."""
        folder = typed.rpartition("/")[0]
        for name in self.knowledge.modules():
            if not folder or name.startswith(f"{folder}/"):
                yield Offer(name.removeprefix(f"{folder}/") if folder else name, _KIND.Module, _OWN)
        path = self.document.path
        if path is None:
            return
        directory = os.path.join(os.path.dirname(path), folder)
        for entry in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
            other = os.path.join(directory, entry)
            if entry.startswith(".") or other == path:
                continue
            if os.path.isdir(other):
                yield Offer(entry, _KIND.Folder, _BUILTIN)
            elif entry.endswith(".harn"):
                yield Offer(entry.removesuffix(".harn"), _KIND.File, _NEAR)

    def _module_names(self, rest: str) -> Iterator[Offer]:
        source = _FROM.match(rest)
        path = None if source is None else self.workspace.module(self.document, source[1])
        module = None if path is None else self.workspace.at_path(path)
        for item in module.items if module is not None else ():
            kind = _KINDS.get(type(item.node))
            if kind is not None and module is not None:
                yield _declared(module, item.node, kind, _NEAR)


class _Supposing:
    """What may stand in the place of the cursor's word, by what is around that."""

    def __init__(self, here: _Here, found: Supposed) -> None:
        self.here = here
        self.found = found
        self.environment = found.sight.inference.environment
        self.scope = found.sight.scope
        self._guess: Guess | None = None

    @property
    def guess(self) -> Guess:
        if self._guess is None:
            self._guess = Guess(self.found.sight.inference, self.scope, self.found.nodes)
        return self._guess

    # --- what belongs to a value ------------------------------------------------------------------

    def members(self, object: ast.Node) -> Iterator[Offer]:
        """Yield the fields, methods and properties of a value, or the variants of an enum."""
        knowledge = self.here.knowledge
        if isinstance(object, ast.Name) and self.scope.find(object.name) is None:
            if knowledge.is_global(object.name):
                prefix = f"{object.name}."
                for name in catalog.names():
                    if name.startswith(prefix):
                        yield Offer(name.removeprefix(prefix), _KIND.Function, _OWN, data={"builtin": name})
                return
            enum = self.environment.types.declared.enums.get(object.name)
            if enum is not None:
                yield from _variants(enum, "")
                return
        types = self.guess.members(self.guess.of(object))
        for type in types:
            yield from self._of_type(type)
        if not types:
            # Nothing is known of it: any method may be meant.
            for kind in LISTED:
                for name in knowledge.methods(kind):
                    yield Offer(name, _KIND.Method, _FAR, data={"kind": kind, "method": name})

    def _of_type(self, type: Type) -> Iterator[Offer]:
        kind = type.name if isinstance(type, ast.TypeName) else _kind_of(type)
        shape = self.guess.shape(type)
        for field in shape.fields if isinstance(shape, ast.TypeShape) else ():
            yield Offer(field.name, _KIND.Field, _NEAR, detail=shown(field.type))
        if isinstance(type, ast.TypeName):
            for method in sorted(self.environment.methods.get(type.name, ())):
                yield Offer(method, _KIND.Method, _OWN)
            if type.name in self.environment.types.declared.enums:
                yield Offer("variant", _KIND.Property, _OWN, detail="string")
        knowledge = self.here.knowledge
        for name in knowledge.properties(kind):
            yield Offer(name, _KIND.Property, _OWN)
        for name in knowledge.methods(kind):
            yield Offer(name, _KIND.Method, _BUILTIN, data={"kind": kind, "method": name})

    def pattern_keys(self) -> Iterator[Offer]:
        """Yield the fields of what a pattern takes apart."""
        for outer, pattern in zip(self.found.nodes, self.found.nodes[1:], strict=False):
            if isinstance(outer, ast.Let) and isinstance(pattern, ast.DictPattern):
                given = {entry.key for entry in pattern.entries}
                for type in self.guess.members(outer.type or self.guess.of(outer.value)):
                    shape = self.guess.shape(type)
                    for field in shape.fields if isinstance(shape, ast.TypeShape) else ():
                        if field.name not in given:
                            yield Offer(field.name, _KIND.Field, _NEAR, detail=shown(field.type))

    # --- keys and values --------------------------------------------------------------------------

    def keys(self) -> Iterator[Offer]:
        """Yield the keys that the literal around the cursor may have and hasn't."""
        literals = [one for one in self.found.nodes if isinstance(one, ast.Dict | ast.StructLit)]
        given = keys_given(literals[-1]) if literals else set()
        yield from (offer for offer in self._all_keys() if offer.label not in given)

    def _all_keys(self) -> Iterator[Offer]:
        nodes = self.found.nodes
        at = max(i for i, one in enumerate(nodes) if isinstance(one, ast.Dict | ast.StructLit))
        literal = nodes[at]
        argument = argument_of(nodes[: at + 1], self.here.knowledge, self.environment)
        if argument is not None:
            for row in self.here.knowledge.keys(argument.function, argument.whole):
                yield _key(row.name, row.type, row.meaning or None)
        expected: Type | None = None
        if isinstance(literal, ast.StructLit):
            expected = ast.TypeName(0, 0, literal.name, ())
        elif argument is None:
            expected = self._expected(nodes[: at + 1])
        for type in self.guess.members(expected):
            shape = self.guess.shape(type)
            for field in shape.fields if isinstance(shape, ast.TypeShape) else ():
                yield _key(field.name, shown(field.type), None)

    def values(self, *, quoted: bool) -> Iterator[Offer]:
        """Yield the words that a text may be here, and what a `match` may compare with."""
        nodes = list(self.found.nodes)
        while nodes and not _is_cursor(nodes[-1]):
            nodes.pop()
        if not nodes:
            return
        outer = nodes[-2] if len(nodes) > 1 else None
        texts: list[str] = []
        if isinstance(outer, ast.Arm):
            match = next(one for one in reversed(nodes) if isinstance(one, ast.Match))
            for type in self.guess.members(self.guess.of(match.value)):
                texts += _texts(type)
                enum = self.environment.types.declared.enums.get(getattr(type, "name", ""))
                if enum is not None and not quoted:
                    yield from _variants(enum, f"{enum.name}.", taken=_taken(match))
            taken = {p.value for arm in match.arms for p in arm.patterns if isinstance(p, ast.Str)}
            texts = [text for text in texts if text not in taken]
        elif isinstance(outer, ast.Binary) and outer.op in ("==", "!="):
            other = outer.left if nodes[-1] is outer.right else outer.right
            texts += (text for type in self.guess.members(self.guess.of(other)) for text in _texts(type))
        else:
            argument = argument_of(nodes, self.here.knowledge, self.environment)
            if argument is not None and argument.path:
                texts += self.here.knowledge.words(argument.function, argument.whole)
            texts += (text for type in self.guess.members(self._expected(nodes)) for text in _texts(type))
        for text in dict.fromkeys(texts):
            yield Offer(text if quoted else f'"{text}"', _KIND.EnumMember, _FIRST)

    def _expected(self, nodes: Sequence[ast.Node]) -> Type | None:
        """Return the type that the innermost node's value should have, where something declares it."""
        steps: list[str] = []
        found: Type | None = None
        for outer, inner in zip(reversed(nodes[:-1]), reversed(nodes), strict=False):
            if isinstance(outer, ast.DictEntry) and isinstance(outer.key, ast.Str) and inner is outer.value:
                steps.insert(0, outer.key.value)
            elif isinstance(outer, ast.StructLit):
                found = ast.TypeName(0, 0, outer.name, ())
                break
            elif isinstance(outer, ast.Let):
                found = outer.type if inner is outer.value else None
                break
            elif isinstance(outer, ast.Call):
                fn = self._function(outer.name)
                place = next((i for i, arg in enumerate(outer.args) if arg is inner), -1)
                found = fn.params[place].type if fn is not None and 0 <= place < len(fn.params) else None
                break
            elif isinstance(outer, ast.Return):
                around_ = [one for one in nodes if isinstance(one, ast.FnDecl | ast.Closure | ast.FnExpr)]
                found = around_[-1].returns if around_ and isinstance(around_[-1], ast.FnDecl) else None
                break
            elif not isinstance(outer, ast.Dict):
                return None
        for step in steps:
            found = self.guess.field(found, step)
        return found

    def _function(self, name: str) -> ast.FnDecl | None:
        binding = self.scope.find(name)
        return (binding.fn if binding is not None else None) or self.environment.functions.get(name)

    # --- names and types --------------------------------------------------------------------------

    def names(self) -> Iterator[Offer]:
        """Yield what is in sight, builtins, reserved words, and what can be imported."""
        here = self.here
        words = list(here._words())
        yield from _in_sight(self.scope, here.document)
        for item in self.environment.items:
            kind = _KINDS.get(type(item))
            if kind is not None:
                yield _declared(here.document, item, kind, _OWN)
        for name in sorted(self.environment.foreign_functions):
            yield Offer(name, _KIND.Function, _OWN, data={"uri": here.document.uri, "name": name})
        for name in sorted(self.environment.foreign_names):
            yield Offer(name, _KIND.Constant, _OWN)
        for name in here.knowledge.globals():
            yield Offer(name, _KIND.Constant, _BUILTIN)
        yield from _builtins(here.knowledge.names())
        yield from words
        yield from self._importable(_KIND.Function)

    def _importable(self, kind: lsp.CompletionItemKind) -> Iterator[Offer]:
        """Yield what other modules offer, once a letter is typed."""
        here = self.here
        if not here.typed:
            return
        for name, path in imports.offered_elsewhere(here.workspace, here.document):
            if not _fits(here.typed, name):
                continue
            if name not in self.environment.foreign_functions and name not in self.environment.foreign_names:
                yield Offer(name, kind, _FAR, detail=f'import "{path}"', module=path)

    def types(self) -> Iterator[Offer]:
        """Yield the types of the language, of the file and of what it imports."""
        for name in _TYPE_NAMES:
            yield Offer(name, _KIND.Keyword, _BUILTIN)
        for node in reversed(self.found.nodes):
            for param in getattr(node, "type_params", ()):
                yield Offer(param.name, _KIND.TypeParameter, _NEAR)
        for name in sorted(self.environment.types_anywhere):
            yield Offer(name, _KIND.Struct, _OWN)
        for name in self.environment.imported.types if self.environment.imported is not None else ():
            yield Offer(name, _KIND.Struct, _OWN)


def _is_cursor(node: ast.Node) -> bool:
    return getattr(node, "name", None) == CURSOR


def _is_key(found: Supposed) -> bool:
    """Return whether the cursor's word is the key of a literal."""
    if len(found.nodes) < 2 or not isinstance(found.nodes[-2], ast.DictEntry):
        return False
    key = found.nodes[-2].key
    return found.nodes[-1] is key and isinstance(key, ast.Str) and key.value == CURSOR


def _kind_of(type: Type) -> str:
    if isinstance(type, ast.TypeLiteral):
        return "string" if isinstance(type.value, str) else "int"
    return "closure" if isinstance(type, ast.TypeFn) else "dict"


def _texts(type: Type) -> Iterator[str]:
    if isinstance(type, ast.TypeLiteral) and isinstance(type.value, str):
        yield type.value


def _variants(enum: ast.EnumDecl, prefix: str, taken: Iterable[str] = ()) -> Iterator[Offer]:
    for variant in enum.variants:
        if variant.name not in taken:
            params = ", ".join(param.name for param in variant.params)
            label = f"{prefix}{variant.name}"
            yield Offer(
                label, _KIND.EnumMember, _FIRST, insert=f"{label}({params})" if params and prefix else None
            )


def _taken(match: ast.Match) -> set[str]:
    """Return the variants that arms of a match compare with."""
    patterns = [pattern for arm in match.arms for pattern in arm.patterns]
    return {pattern.name for pattern in patterns if isinstance(pattern, ast.Member | ast.MethodCall)}


def _in_sight(scope: Scope | None, document: Document) -> Iterator[Offer]:
    while scope is not None:
        for name, binding in scope.names.items():
            if name == CURSOR:
                continue
            is_function = isinstance(binding.node, ast.FnDecl | ast.ToolDecl)
            if is_function and scope.parent is None:
                continue  # The items say more of it.
            found = scope.views.get(name) or binding
            detail = None if found.type is None else shown(found.type)
            yield Offer(name, _KIND.Function if is_function else _KIND.Variable, _NEAR, detail=detail)
        scope = scope.parent


def _declared(document: Document, node: Any, kind: lsp.CompletionItemKind, rank: str) -> Offer:
    deprecated = any(attribute.name == "deprecated" for attribute in getattr(node, "attrs", ()))
    data = {"uri": document.uri, "name": node.name}
    return Offer(node.name, kind, rank, data=data, deprecated=deprecated)


def _builtins(names: Iterable[str]) -> Iterator[Offer]:
    for name in names:
        if not name.startswith("__") and "." not in name:
            yield Offer(name, _KIND.Function, _BUILTIN, data={"builtin": name})


def _key(name: str, type: str, meaning: str | None) -> Offer:
    return Offer(name, _KIND.Property, _FIRST, detail=type, insert=f"{name}: ", documentation=meaning)
