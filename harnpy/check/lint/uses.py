"""Every binding of a file, and where it is read, assigned and captured. Spec: 02 §7, §10, §12, §13; 03 §15.

The walk is the resolver's: a name is visible after its declaration, and from inside a function also before
it. Where the resolver could choose among several bindings, each counts as used: a binding that is reported as
unused is unused. Linear in the size of the file.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from harnpy.syntax import ast
from harnpy.syntax.names import FRAMES, VISITS, Binder, ancestry, declared_names, function

if TYPE_CHECKING:
    from harnpy.syntax.names import Visits


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
        """Return True if it is used anywhere but within ``node``."""
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


class Uses(Binder):
    """The bindings of a file in the order of their places.

    ``mentioned``: all names that are read or called. ``undefined``: calls of names that the file doesn't
    declare. ``meaning``: by the id of a `Name`, the binding that it means. ``enums``: those that are known.
    """

    def __init__(self, program: ast.Program, enums: Collection[str]) -> None:
        super().__init__(_VISITS)
        self.bindings: list[Binding] = []
        self.mentioned: set[str] = set()
        self.undefined: list[ast.Call] = []
        self.meaning: dict[int, Binding] = {}
        self.enums = enums
        self._scopes: list[_Scope] = []
        self._owners: list[ast.Node] = [program]
        self._pipelines: dict[str, list[_Scope]] = {}
        if sys.getrecursionlimit() < FRAMES:
            sys.setrecursionlimit(FRAMES)
        self._program(program)
        self.bindings.sort(key=lambda binding: binding.place.start)
        undefined = {call.name for call in self.undefined}
        for binding in self.bindings:
            binding.by_callees = binding.name in undefined

    def _program(self, program: ast.Program) -> None:
        """Imports come first; in a file with pipelines variables next, and pipelines last (02 §10.2)."""
        pipelines = {item.name: item for item in program.items if isinstance(item, ast.Pipeline)}
        early = (ast.Import, ast.Let) if pipelines else (ast.Import,)
        self.open_scope(program)
        self.predeclare(program.items)
        for item in program.items:
            if isinstance(item, early):
                self.visit(item)
        for item in program.items:
            if not isinstance(item, (*early, ast.Pipeline)):
                self.visit(item)
        visited: set[int] = set()
        for item in program.items:
            for pipeline in ancestry(item, pipelines) if isinstance(item, ast.Pipeline) else ():
                if id(pipeline) not in visited:
                    visited.add(id(pipeline))
                    self.visit(pipeline)
        self.close_scope()

    # --- scopes -----------------------------------------------------------------------------------

    def open_scope(self, node: ast.Node) -> None:
        self._scopes.append(_Scope())

    def close_scope(self) -> None:
        self._scopes.pop()

    def enter_function(self, node: ast.Node, name: str | None) -> None:
        self._owners.append(node)
        self.open_scope(node)

    def leave_function(self) -> None:
        self.close_scope()
        self._owners.pop()

    def predeclare(self, statements: Sequence[ast.Node]) -> None:
        late = self._scopes[-1].late
        for statement in statements:
            late.update(declared_names(statement))

    def attributes(self, node: Any) -> None:
        for attribute in node.attrs:
            self.visit(attribute)

    def bind(
        self,
        node: ast.Node,
        place: ast.Node,
        name: str,
        role: str,
        mutable: bool = False,
        value: ast.Node | None = None,
    ) -> None:
        if name == "_":
            return
        kind = "pattern" if role == "let" and not isinstance(place, ast.NamePattern) else role
        scope = self._scopes[-1]
        binding = Binding(name, kind, node, place, mutable, self._owners[-1])
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

    def refer(self, name: str, use: ast.Node, called: bool = False) -> Binding | None:
        """Note a use of a name; a call may mean any binding of it that is in reach (02 §7.4)."""
        found = [scope.names[name] for scope in reversed(self._scopes) if name in scope.names]
        for binding in found if called else found[:1]:
            binding.note(use, self._owners[-1])
        late = next((scope for scope in reversed(self._scopes) if name in scope.late), None)
        if late is not None and (called or not found):
            late.early.setdefault(name, []).append((use, self._owners[-1]))
        elif not found and isinstance(use, ast.Call):
            self.undefined.append(use)
        return found[0] if found else None

    def pipeline(self, node: ast.Pipeline) -> None:
        """What the pipeline that it extends has declared is in sight (02 §10.4)."""
        self.attributes(node)
        self._owners.append(node)
        inherited = self._pipelines.get(node.extends or "", [])
        self._scopes += inherited
        self.open_scope(node)
        for name in node.params:
            self.bind(node, node, name, "param")
        self.open_scope(node.body)
        self._pipelines[node.name] = [*inherited, *self._scopes[-2:]]
        self.statements(node.body.statements)
        del self._scopes[len(self._scopes) - len(inherited) - 2 :]
        self._owners.pop()


def _name(uses: Uses, node: ast.Name) -> None:
    if node.name != "_":
        uses.mentioned.add(node.name)
        binding = uses.refer(node.name, node)
        if binding is not None:
            uses.meaning[id(node)] = binding


def _call(uses: Uses, node: ast.Call) -> None:
    uses.mentioned.add(node.name)
    uses.refer(node.name, node, called=True)
    uses.children(node)


def _assign(uses: Uses, node: ast.Assign) -> None:
    """The variable at the root of the target is assigned; it isn't read."""
    uses.visit(node.value)
    root = node.target
    while isinstance(root, ast.Member | ast.Index):
        if isinstance(root, ast.Index):
            uses.visit(root.index)
        root = root.object
    if not isinstance(root, ast.Name):
        uses.visit(root)
        return
    binding = uses.refer(root.name, node)
    if binding is not None:
        uses.meaning[id(root)] = binding


def _import(uses: Uses, node: ast.Import) -> None:
    for name in node.names or ():
        uses.bind(node, node, name, "import")


def _function(uses: Uses, node: ast.FnDecl | ast.ToolDecl) -> None:
    uses.attributes(node)
    function(uses, node, node.name, node.params, node.body)
    uses.bind(node, node, node.name, "fn" if isinstance(node, ast.FnDecl) else "tool")


def _override(uses: Uses, node: ast.Override) -> None:
    uses.enter_function(node, node.name)
    for name in node.params:
        uses.bind(node, node, name, "param")
    uses.statements(node.body.statements)
    uses.leave_function()


_VISITS: Visits = {
    **VISITS,
    ast.Name: _name,
    ast.Call: _call,
    ast.Assign: _assign,
    ast.Import: _import,
    ast.FnDecl: _function,
    ast.ToolDecl: _function,
    ast.Override: _override,
    ast.Pipeline: Uses.pipeline,
}
