"""Every binding of a file, and where it is read, assigned and captured. Spec: 02 §7, §10, §12, §13; 03 §15.

The walk follows the order of execution, as the resolver's does: a name is visible after its declaration, and
from inside a function also before it. Where the resolver could choose among several bindings, each counts as
used: a binding that is reported as unused is unused. Linear in the size of the file, and no tree is too deep
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeGuard

from harnpy.syntax import ast

# Which names a piece of syntax declares. Spec: 02 §10.4, §12, §13.


def declared_by(statement: ast.Node) -> list[str]:
    """The names that a statement declares in its block, and that functions before it may use."""
    if isinstance(statement, ast.Let):
        return [name for _, name in bound_names(statement.target)]
    if isinstance(statement, ast.FnDecl | ast.ToolDecl | ast.SkillDecl | ast.EvalPack):
        return [statement.name]
    return []


def bound_names(pattern: ast.Node) -> Iterator[tuple[ast.Node, str]]:
    """The names of a `let` or `for` pattern, each with the node that has it."""
    match pattern:
        case ast.NamePattern(name=name):
            yield pattern, name
        case ast.PairPattern(first=first, second=second):
            yield pattern, first
            yield pattern, second
        case ast.DictPattern(entries=entries, rest=rest) | ast.ListPattern(entries=entries, rest=rest):
            for entry in entries:
                yield entry, entry.name
            if rest:
                yield pattern, rest


def match_bindings(
    pattern: ast.Node, enums: Collection[str]
) -> tuple[Sequence[ast.Node], Sequence[ast.Name]]:
    """The parts of an arm's only pattern that are compared, and those that are bound (02 §12)."""
    if isinstance(pattern, ast.Name):
        return (), [pattern]
    if any(_is_computed(part) for part in pattern.children()):
        return [pattern], ()
    parts: Sequence[ast.Node] = [pattern]
    compared: list[ast.Node] = []
    if isinstance(pattern, ast.Dict):
        parts = [entry.value for entry in pattern.entries if isinstance(entry, ast.DictEntry)]
    elif isinstance(pattern, ast.List):
        parts = pattern.items
    elif _is_variant(pattern, enums):
        compared, parts = [pattern.object], pattern.args
    compared += (part for part in parts if not isinstance(part, ast.Name))
    return compared, [part for part in parts if isinstance(part, ast.Name)]


def _is_variant(pattern: ast.Node, enums: Collection[str]) -> TypeGuard[ast.MethodCall]:
    """Whether a pattern is ``Enum.Variant(…)``."""
    if not isinstance(pattern, ast.MethodCall) or pattern.optional:
        return False
    return isinstance(pattern.object, ast.Name) and pattern.object.name in enums


def _is_computed(part: ast.Node) -> bool:
    return isinstance(part, ast.Spread) or (isinstance(part, ast.DictEntry) and part.computed)


def parents_first(pipelines: Sequence[ast.Pipeline]) -> list[ast.Pipeline]:
    """The pipelines of a file in their order, but each after the one that it extends."""
    by_name = {pipeline.name: pipeline for pipeline in pipelines}
    ordered: dict[int, ast.Pipeline] = {}
    for pipeline in pipelines:
        chain = [pipeline]
        while (parent := by_name.get(chain[-1].extends or "")) and all(parent is not one for one in chain):
            chain.append(parent)
        ordered.update((id(one), one) for one in reversed(chain) if id(one) not in ordered)
    return list(ordered.values())


_Steps = Iterator[ast.Node]


class Binding:
    """One declared name.

    ``kind`` is ``let`` (also for `var`), ``pattern``, ``for``, ``param``, ``fn``, ``tool``, ``skill``,
    ``eval_pack``, ``import``, ``catch``, ``match``, ``select`` or ``field``; ``node`` is what declares it and
    ``place`` the part of it that has the name. ``owner`` is the function, closure or pipeline that it is
    local to.
    """

    __slots__ = (
        "by_callees",
        "captured",
        "kind",
        "mutable",
        "name",
        "node",
        "owner",
        "place",
        "reads",
        "redeclares",
        "shadows",
        "sharing",
        "writes",
    )

    def __init__(
        self, name: str, kind: str, node: ast.Node, place: ast.Node, mutable: bool, owner: ast.Node
    ) -> None:
        self.name = name
        self.kind = kind
        self.node = node
        self.place = place
        self.mutable = mutable
        self.owner = owner
        self.reads: list[ast.Node] = []
        self.writes: list[ast.Assign] = []
        self.captured = False
        """Whether a function inside the one that declares it uses it."""
        self.shadows: Binding | None = None
        """The variable of an outer block that it hides."""
        self.redeclares: Binding | None = None
        """What had the name before in the same block."""
        self.sharing = False
        """Whether its block declares the name more than once."""
        self.by_callees = False
        """Whether functions that are called may call it by its name: they see their callers' functions."""

    def note(self, use: ast.Node, owner: ast.Node) -> None:
        """Note a use of it in the function ``owner``; an `Assign` writes it."""
        if isinstance(use, ast.Assign):
            self.writes.append(use)
        else:
            self.reads.append(use)
        self.captured |= owner is not self.owner

    @property
    def used(self) -> bool:
        return bool(self.reads or self.writes or self.by_callees)

    def used_outside(self, node: ast.Node) -> bool:
        """Whether it is used anywhere but within ``node``."""
        outside = any(not node.start <= use.start < node.end for use in (*self.reads, *self.writes))
        return outside or self.by_callees


class _Scope:
    """The names of one block: ``names`` declared by now, ``late`` ones that will be.

    ``early``: the uses of late ones, each with the function that it stands in.
    """

    __slots__ = ("early", "late", "names")

    def __init__(self) -> None:
        self.names: dict[str, Binding] = {}
        self.late: set[str] = set()
        self.early: dict[str, list[tuple[ast.Node, ast.Node]]] = {}


class Uses:
    """The bindings of a file in the order of their places.

    ``mentioned``: all names that are read or called or stand for a type. ``texts``: all string literals, by
    which things may be named too. ``undefined``: calls of names that the file doesn't declare. ``meaning``:
    by the id of a `Name`, the binding that it means. ``enums`` are those that are known: their variants are
    patterns.
    """

    def __init__(self, program: ast.Program, enums: Collection[str]) -> None:
        self.bindings: list[Binding] = []
        self.mentioned: set[str] = set()
        self.texts: set[str] = set()
        self.undefined: list[ast.Call] = []
        self.meaning: dict[int, Binding] = {}
        self._enums = enums
        self._scopes: list[_Scope] = []
        self._owner: ast.Node = program
        self._pipelines: dict[str, list[_Scope]] = {}
        self._walk(program)
        self.bindings.sort(key=lambda binding: binding.place.start)
        undefined = {call.name for call in self.undefined}
        for binding in self.bindings:
            binding.by_callees = binding.name in undefined

    # --- the walk ---------------------------------------------------------------------------------

    def _walk(self, program: ast.Program) -> None:
        """Each construct is a generator of the nodes below it, so that a deep tree needs no deep stack."""
        stack: list[_Steps] = [self._program(program)]
        while stack:
            child = next(stack[-1], None)
            if child is None:
                stack.pop()
            else:
                steps = _STEPS.get(type(child))
                stack.append(steps(self, child) if steps else child.children())

    def _program(self, program: ast.Program) -> _Steps:
        """Imports come first; in a file with pipelines variables next, and pipelines last (02 §10.2)."""
        pipelines = [item for item in program.items if isinstance(item, ast.Pipeline)]
        early = (ast.Import, ast.Let) if pipelines else (ast.Import,)
        self._open(program.items)
        yield from (item for item in program.items if isinstance(item, early))
        yield from (item for item in program.items if not isinstance(item, (*early, ast.Pipeline)))
        yield from parents_first(pipelines)
        self._close()

    def _open(self, statements: Iterable[ast.Node] = ()) -> None:
        self._scopes.append(_Scope())
        self._expect(statements)

    def _expect(self, statements: Iterable[ast.Node]) -> None:
        late = self._scopes[-1].late
        for statement in statements:
            late.update(declared_by(statement))

    def _close(self) -> None:
        self._scopes.pop()

    def _declare(self, node: ast.Node, place: ast.Node, name: str, kind: str, mutable: bool = False) -> None:
        if name == "_":
            return
        scope = self._scopes[-1]
        binding = Binding(name, kind, node, place, mutable, self._owner)
        before = scope.names.get(name)
        if before is not None:
            binding.redeclares = before
            before.sharing = binding.sharing = True
        else:
            binding.shadows = next((s.names[name] for s in self._scopes[-2::-1] if name in s.names), None)
        for use, owner in scope.early.pop(name, ()):
            binding.note(use, owner)
        scope.names[name] = binding
        self.bindings.append(binding)

    def _refer(self, name: str, use: ast.Node, called: bool = False) -> Binding | None:
        """Note a use of a name; a call may mean any binding of it that is in reach (02 §7.4)."""
        found = [scope.names[name] for scope in reversed(self._scopes) if name in scope.names]
        for binding in found if called else found[:1]:
            binding.note(use, self._owner)
        late = next((scope for scope in reversed(self._scopes) if name in scope.late), None)
        if late is not None and (called or not found):
            late.early.setdefault(name, []).append((use, self._owner))
        elif not found and isinstance(use, ast.Call):
            self.undefined.append(use)
        return found[0] if found else None

    # --- names ------------------------------------------------------------------------------------

    def _name(self, node: ast.Name) -> _Steps:
        if node.name != "_":
            self.mentioned.add(node.name)
            binding = self._refer(node.name, node)
            if binding is not None:
                self.meaning[id(node)] = binding
        return iter(())

    def _call(self, node: ast.Call) -> _Steps:
        self.mentioned.add(node.name)
        self._refer(node.name, node, called=True)
        return node.children()

    def _struct_literal(self, node: ast.StructLit) -> _Steps:
        self.mentioned.add(node.name)
        return node.children()

    def _type_name(self, node: ast.TypeName) -> _Steps:
        self.mentioned.add(node.name)
        return node.children()

    def _text(self, node: ast.Str) -> _Steps:
        self.texts.add(node.value)
        return iter(())

    def _assign(self, node: ast.Assign) -> _Steps:
        yield node.value
        root = node.target
        while isinstance(root, ast.Member | ast.Index):
            if isinstance(root, ast.Index):
                yield root.index
            root = root.object
        if isinstance(root, ast.Name):
            binding = self._refer(root.name, node)
            if binding is not None:
                self.meaning[id(root)] = binding
        else:
            yield root

    # --- declarations -----------------------------------------------------------------------------

    def _let(self, node: ast.Let) -> _Steps:
        if node.type is not None:
            yield node.type
        yield node.value
        kind = "let" if isinstance(node.target, ast.NamePattern) else "pattern"
        yield from self._pattern(node, node.target, kind, node.mutable)

    def _pattern(self, node: ast.Node, pattern: ast.Node, kind: str, mutable: bool) -> _Steps:
        for place, name in bound_names(pattern):
            if isinstance(place, ast.PatternEntry) and place.default is not None:
                yield place.default
            self._declare(node, place, name, kind, mutable)

    def _import(self, node: ast.Import) -> _Steps:
        for name in node.names or ():
            self._declare(node, node, name, "import")
        return iter(())

    def _named(self, node: ast.SkillDecl | ast.EvalPack) -> _Steps:
        kind = "skill" if isinstance(node, ast.SkillDecl) else "eval_pack"
        yield from node.attrs
        yield from node.fields
        self._declare(node, node, node.name, kind)
        if isinstance(node, ast.EvalPack):
            self._open()
            for field in node.fields:
                self._declare(field, field, field.name, "field")
            self._open(node.body)
            yield from node.body
            if node.summarize is not None:
                yield node.summarize
            self._close()
            self._close()

    def _function(self, node: ast.FnDecl | ast.ToolDecl) -> _Steps:
        yield from node.attrs
        if node.returns is not None:
            yield node.returns
        if isinstance(node, ast.FnDecl):
            self.mentioned.update(bound for _, bound in node.where)
        yield from self._body(node, node.params, node.body.statements)
        self._declare(node, node, node.name, "fn" if isinstance(node, ast.FnDecl) else "tool")

    def _impl(self, node: ast.ImplDecl) -> _Steps:
        self.mentioned.add(node.name)
        yield from node.attrs
        for method in node.methods:
            yield from method.attrs
            if method.returns is not None:
                yield method.returns
            yield from self._body(method, method.params, method.body.statements)

    def _anonymous(self, node: ast.Closure | ast.FnExpr) -> _Steps:
        return self._body(node, node.params, node.body.statements)

    def _spawn(self, node: ast.Spawn) -> _Steps:
        return self._body(node, (), node.body.statements)

    def _parallel(self, node: ast.Parallel) -> _Steps:
        yield node.source
        if node.max_concurrent is not None:
            yield node.max_concurrent
        yield from self._body(node, (), node.body.statements, node.param or "_")

    def _override(self, node: ast.Override) -> _Steps:
        return self._body(node, (), node.body.statements, *node.params)

    def _body(
        self, node: ast.Node, params: Sequence[ast.Param], statements: Sequence[ast.Node], *names: str
    ) -> _Steps:
        """A function's parameters and statements, which are one block."""
        outer, self._owner = self._owner, node
        self._open(statements)
        for param in params:
            yield from param.children()
            self._declare(node, param, param.name, "param")
        for name in names:
            self._declare(node, node, name, "param")
        yield from statements
        self._close()
        self._owner = outer

    def _pipeline(self, node: ast.Pipeline) -> _Steps:
        """What the pipeline that it extends has declared is in sight (02 §10.4)."""
        yield from node.attrs
        if node.returns is not None:
            yield node.returns
        outer, self._owner = self._owner, node
        inherited = self._pipelines.get(node.extends or "", [])
        self._scopes += inherited
        self._open()
        for name in node.params:
            self._declare(node, node, name, "param")
        self._open(node.body.statements)
        self._pipelines[node.name] = [*inherited, *self._scopes[-2:]]
        yield from node.body.statements
        self._close()
        self._close()
        del self._scopes[len(self._scopes) - len(inherited) :]
        self._owner = outer

    # --- blocks -----------------------------------------------------------------------------------

    def _block(self, node: ast.Block) -> _Steps:
        self._open(node.statements)
        yield from node.statements
        self._close()

    def _retry(self, node: ast.Retry) -> _Steps:
        """Its body is no block of its own."""
        yield node.count
        self._expect(node.body.statements)
        yield from node.body.statements

    def _for(self, node: ast.For) -> _Steps:
        yield node.iterable
        self._open(node.body.statements)
        yield from self._pattern(node, node.pattern, "for", mutable=True)
        yield from node.body.statements
        self._close()

    def _arm(self, node: ast.Arm) -> _Steps:
        self._open()
        if len(node.patterns) == 1:
            compared, bound = match_bindings(node.patterns[0], self._enums)
            yield from compared
            for name in bound:
                self._declare(node, name, name.name, "match")
        else:
            yield from node.patterns
        if node.guard is not None:
            yield node.guard
        yield node.body
        self._close()

    def _catch(self, node: ast.Catch) -> _Steps:
        if node.type is not None:
            yield node.type
        yield from self._with_name(node, node.name, "catch", node.body)

    def _case(self, node: ast.SelectCase) -> _Steps:
        if node.source is not None:
            yield node.source
        yield from self._with_name(node, node.name, "select", node.body)

    def _with_name(self, node: ast.Node, name: str | None, kind: str, body: ast.Block) -> _Steps:
        self._open()
        if name:
            self._declare(node, node, name, kind)
        yield body
        self._close()


_STEPS: dict[type[ast.Node], Callable[[Uses, Any], _Steps]] = {
    ast.Name: Uses._name,
    ast.Call: Uses._call,
    ast.StructLit: Uses._struct_literal,
    ast.TypeName: Uses._type_name,
    ast.Str: Uses._text,
    ast.Assign: Uses._assign,
    ast.Let: Uses._let,
    ast.Import: Uses._import,
    ast.SkillDecl: Uses._named,
    ast.EvalPack: Uses._named,
    ast.FnDecl: Uses._function,
    ast.ToolDecl: Uses._function,
    ast.ImplDecl: Uses._impl,
    ast.Closure: Uses._anonymous,
    ast.FnExpr: Uses._anonymous,
    ast.Spawn: Uses._spawn,
    ast.Parallel: Uses._parallel,
    ast.Override: Uses._override,
    ast.Pipeline: Uses._pipeline,
    ast.Block: Uses._block,
    ast.Retry: Uses._retry,
    ast.For: Uses._for,
    ast.Arm: Uses._arm,
    ast.Catch: Uses._catch,
    ast.SelectCase: Uses._case,
}
