"""What the rest of a file can see of one of its items. Spec: 03 §3.3, §9.

As long as that stays the same, an edit inside the item changes no other item's findings.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import bound_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Declared with `fn`, `tool` or `pipeline`: what a call may name wherever it stands (03 §9).
_CALLED = (ast.FnDecl, ast.ToolDecl, ast.Pipeline)
#: What runs by itself: a `yield` inside isn't one of the function around.
_BODIES = (ast.FnDecl, ast.ToolDecl, ast.FnExpr, ast.Closure, ast.Spawn, ast.Parallel)
#: Builtins that make providers known, or answer in the place of any of them.
_BRING_PROVIDERS = frozenset(["llm_mock", "provider_register"])
_TYPES = (ast.StructDecl, ast.EnumDecl, ast.InterfaceDecl, ast.TypeDecl, ast.ImplDecl)
_NAMING = (ast.Name, ast.Call, ast.TypeName, ast.StructLit, ast.ImplDecl)
#: What has a name that it declares.
_NAMED = (
    ast.Param,
    ast.FnDecl,
    ast.ToolDecl,
    ast.SkillDecl,
    ast.EvalPack,
    ast.StructDecl,
    ast.EnumDecl,
    ast.InterfaceDecl,
    ast.TypeDecl,
    ast.TypeParam,
    ast.SelectCase,
    ast.Catch,
)


class Surface:
    """The outside of one item, as the rest of a file sees it. Two are equal when they look the same."""

    __slots__ = (
        "_names",
        "_shown",
        "brings_providers",
        "called",
        "enums",
        "imports",
        "is_local",
        "methods",
        "parts",
        "places",
        "structs",
        "type_names",
        "types",
        "variables",
        "written",
    )

    def __init__(self, item: ast.Node) -> None:
        self.called: dict[str, ast.Node] = {}
        """Functions, tools and pipelines, nested ones too."""
        self.types: list[ast.Node] = []
        """Declarations of types that hold in the whole file."""
        self.methods: set[tuple[str, str]] = set()
        """Structs with the names of their methods, from `impl` blocks anywhere."""
        self.structs: set[str] = set()
        self.enums: set[str] = set()
        self.type_names: set[str] = set()
        self.imports: list[ast.Import] = []
        """Those inside: what they bring is known in their blocks alone."""
        self.places: dict[str, ast.Node] = {}
        """Where a name is declared, at the top or inside, first of all."""
        self.variables: tuple[tuple[str, bool], ...] = ()
        """The variables that an item at the top declares, and whether each is mutable."""
        self.written: dict[str, ast.Node] = {}
        """What the item binds to a literal for good, for builtins that are given the name."""
        self.brings_providers = False
        """Whether it names a builtin that may make providers known."""
        self._names: frozenset[str] | None = None
        self._shown: frozenset[str] | None = None
        self._collect(item)
        self.is_local = not isinstance(item, ast.Pipeline | ast.Override | ast.Import | ast.Retry)
        """Whether it concerns only those who mention a name of it."""
        self.is_local = self.is_local and not (self.imports or self.brings_providers)
        self.parts = (
            tuple(self.written.items()),
            tuple(_signature(node) for node in self.called.values()),
            tuple(_outside(node) for node in self.types),
            frozenset(self.methods),
            frozenset(self.structs),
            frozenset(self.enums),
            frozenset(self.type_names),
            self.variables,
            tuple(self.imports),
            _signature(item),
            self.brings_providers,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Surface) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    @property
    def names(self) -> frozenset[str]:
        """The names by which others may get at it.

        Not those of fields and methods: who has a value of a type gets it by a name that shows the type.
        """
        if self._names is None:
            variables = (name for name, _ in self.variables)
            structs = (struct for struct, _ in self.methods)
            enums = (node for node in self.types if isinstance(node, ast.EnumDecl))
            variants = (variant.name for node in enums for variant in node.variants)
            self._names = frozenset(
                [*self.called, *self.written, *self.type_names, *variables, *structs, *variants]
            )
        return self._names

    @property
    def shown(self) -> frozenset[str]:
        """The names that others may see in it: in a signature, a type or a literal."""
        if self._shown is None:
            nodes = (*self.called.values(), *self.types, *self.written.values())
            parts = [part for node in nodes for part in ast.walk(node, (ast.Block,))]
            self._shown = frozenset(part.name for part in parts if isinstance(part, _NAMING))
        return self._shown

    def _collect(self, item: ast.Node) -> None:
        self.variables = tuple(
            (name, let.mutable) for let in file_variables(item) for name in bound_names(let.target)
        )
        self.written = {
            let.target.name: let.value
            for let in file_variables(item)
            if not let.mutable and isinstance(let.target, ast.NamePattern) and _is_written(let.value)
        }
        whole_file = [item, *(item.body.statements if isinstance(item, ast.Pipeline) else ())]
        self.types = [node for node in whole_file if isinstance(node, _TYPES)]
        for node in ast.walk(item):
            for name in declared_names(node):
                self.places.setdefault(name, node)
            if isinstance(node, _TYPES):
                self.type_names.add(node.name)
            if isinstance(node, ast.Name | ast.Call) and node.name in _BRING_PROVIDERS:
                self.brings_providers = True
            if isinstance(node, _CALLED):
                self.called.setdefault(node.name, node)
            elif isinstance(node, ast.Import) and node is not item:
                self.imports.append(node)
            elif isinstance(node, ast.StructDecl):
                self.structs.add(node.name)
            elif isinstance(node, ast.EnumDecl):
                self.enums.add(node.name)
            elif isinstance(node, ast.ImplDecl):
                self.methods.update((node.name, method.name) for method in node.methods)


def file_variables(item: ast.Node) -> Iterator[ast.Let]:
    """The declarations of variables at the top; the body of a `retry` opens no scope (02 §7.2)."""
    if isinstance(item, ast.Let):
        yield item
    elif isinstance(item, ast.Retry):
        for statement in item.body.statements:
            yield from file_variables(statement)


def _is_written(value: ast.Node) -> bool:
    """Return True if a value is a literal, or made of one in a call."""
    if isinstance(value, ast.Call):
        return bool(value.args) and isinstance(value.args[0], ast.Dict | ast.Name)
    return isinstance(value, ast.Dict | ast.List | ast.Str)


def declared_names(node: ast.Node) -> Iterator[str]:
    """The names that ``node`` itself declares, of values and types, in whichever scope."""
    if isinstance(node, ast.NamePattern | ast.PairPattern | ast.DictPattern | ast.ListPattern):
        yield from bound_names(node)
    elif isinstance(node, _NAMED):
        if node.name:
            yield node.name
    elif isinstance(node, ast.Parallel):
        if node.param:
            yield node.param
    elif isinstance(node, ast.Pipeline | ast.Override):
        yield from node.params
    elif isinstance(node, ast.Match):
        for arm in node.arms:
            for pattern in arm.patterns:
                yield from match_names(pattern)


def match_names(pattern: ast.Node) -> Iterator[str]:
    """Every name in a match pattern that may be bound there.

    A call is a value to compare with, and so is the enum that a variant is of.
    """
    stack = [pattern]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and node.name != "_":
            yield node.name
        if isinstance(node, ast.MethodCall):
            stack.extend(node.args)
        elif not isinstance(node, ast.Call | ast.Member):
            stack.extend(node.children())


def yields(body: ast.Block) -> bool:
    """Return True if the body of a function yields itself, which makes it a generator."""
    return any(isinstance(node, ast.Yield) for node in ast.walk(body, _BODIES))


def _signature(node: ast.Node) -> object:
    """Return what a call sees of a declaration: all but the body, of which it matters whether it yields."""
    if isinstance(node, ast.Pipeline):
        # Those that extend it see what its body declares.
        inside = [
            (name, statement.mutable)
            for statement in node.body.statements
            if isinstance(statement, ast.Let)
            for name in bound_names(statement.target)
        ]
        return ("pipeline", node.attrs, node.name, node.params, node.returns, node.extends, tuple(inside))
    if isinstance(node, ast.FnDecl | ast.ToolDecl):
        fields = (getattr(node, field) for field in node.__slots__ if field != "body")
        return (type(node), node.returns is None and yields(node.body), *fields)
    if isinstance(node, ast.Import):
        return node
    return type(node)


def _outside(node: ast.Node) -> object:
    """Return what others see of a type's declaration: methods without their bodies."""
    if isinstance(node, ast.ImplDecl):
        return (node.name, tuple(_signature(method) for method in node.methods))
    return node
