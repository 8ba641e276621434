"""What the whole of a file sees: its declarations, the builtins, its imports. Spec: 03 §3.3, §5, §9.

Made once from all items; each item is then checked by itself against it.
"""

from __future__ import annotations

from harnpy.check.scopes import Binding
from harnpy.check.types import Declared, Types
from harnpy.syntax import ast
from harnpy.syntax.ast import bound_names
from harnpy.syntax.names import ancestry, declared_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.check.knowledge import Imported, Knowledge

#: What can be called though nothing declares it.
_CONSTRUCTORS = frozenset(["Ok", "Err", "Some", "None"])


class Environment:
    """The file around an item. ``complete``: what it doesn't declare and no import brings doesn't exist."""

    def __init__(
        self,
        items: Sequence[ast.Node],
        knowledge: Knowledge,
        imported: Imported | None,
        source: str = "",
        strict: bool = False,
        surfaces: Sequence[Surface] | None = None,
    ) -> None:
        self.items = list(items)
        self.knowledge = knowledge
        self.imported = imported
        self.source = source
        self.strict = strict
        self.complete = imported is not None and imported.complete
        self.foreign_names = frozenset(imported.names) if imported else frozenset()
        if imported is None:
            self.complete = not any(isinstance(item, ast.Import) for item in items)
        self.surfaces = [Surface(item) for item in items] if surfaces is None else surfaces
        self.brings_providers = any(surface.brings_providers for surface in self.surfaces)
        self.foreign_functions = self._imported_functions()
        self.called_anywhere: set[str] = set()
        self.places: dict[str, ast.Node] = {}
        self.methods: dict[str, set[str]] = {}
        self.structs_anywhere: set[str] = set()
        self.enums_anywhere = {"Result"}
        self.types_anywhere = {"Result"}
        self.functions: dict[str, ast.FnDecl] = {}
        self.pipelines: dict[str, ast.Pipeline] = {}
        self.host_names: set[str] = set()
        """Parameters of pipelines: values that a host may give to the whole file (02 §10.3)."""
        self._rebound: set[str] = set()
        self._yields: dict[int, tuple[ast.FnDecl, bool]] = {}
        self._indices = {id(item): index for index, item in enumerate(items)}
        self.declared = self._declarations()
        self.types = Types(self.declared)
        self.is_script = not self.pipelines
        self.bindings, self.order = self._file_level()
        self._written = {name: node for surface in self.surfaces for name, node in surface.written.items()}

    def _imported_functions(self) -> frozenset[str]:
        """Return what the imports bring to the whole file."""
        if self.imported is None:
            return frozenset()
        bound_by = self.imported.bound_by
        inside = {name for surface in self.surfaces for node in surface.imports for name in bound_by(node)}
        if inside:
            inside -= {name for item in self.items if isinstance(item, ast.Import) for name in bound_by(item)}
        return frozenset(self.imported.functions) - inside

    def _declarations(self) -> Declared:
        declared = Declared()
        if self.imported:
            declared.enter_imported(self.imported.types)
            declared.open = not self.imported.whole
        for item, surface in zip(self.items, self.surfaces, strict=True):
            for node in surface.types:
                declared.enter(node)
            for name, node in surface.places.items():
                self.places.setdefault(name, node)
            self.called_anywhere.update(surface.called)
            self.structs_anywhere |= surface.structs
            self.enums_anywhere |= surface.enums
            self.types_anywhere |= surface.type_names
            for struct, method in surface.methods:
                self.methods.setdefault(struct, set()).add(method)
            if isinstance(item, ast.FnDecl):
                self.functions[item.name] = item
            elif isinstance(item, ast.Pipeline):
                self.pipelines[item.name] = item
            if isinstance(item, ast.Pipeline | ast.Override):
                self.host_names.update(item.params)
        return declared

    def _file_level(self) -> tuple[dict[str, Binding], dict[str, int]]:
        """The file's own names, and the item that declares each first."""
        bindings: dict[str, Binding] = {}
        order: dict[str, int] = {}
        for index, item in enumerate(self.items):
            for node in (item, *(file_variables(item) if isinstance(item, ast.Retry) else ())):
                for name in declared_names(node):
                    order.setdefault(name, index)
                    if not isinstance(node, ast.Let):
                        fn = node if isinstance(node, ast.FnDecl) else None
                        bindings[name] = Binding(name, node, fn=fn)
                        continue
                    if name in bindings:
                        self._rebound.add(name)
                    bindings[name] = Binding(name, node.target, mutable=node.mutable)
        return bindings, order

    def is_callable(self, name: str) -> bool:
        """Return True if a call of ``name`` may mean something whatever is in scope (03 §9)."""
        return (
            name in self.called_anywhere
            or name in _CONSTRUCTORS
            or name in self.foreign_functions
            or name in self.foreign_names
            or name in self.structs_anywhere
            or name in self.enums_anywhere
            or name in self.declared.structs
            or name in self.declared.enums
            or name.startswith(("__", "hostlib_"))
            or self.knowledge.is_builtin(name)
            or self.knowledge.is_global(name)
        )

    def is_value(self, name: str) -> bool:
        """Return True if something gives ``name`` a value that this file doesn't declare as a variable.

        A type's name may stand for its schema, wherever the type is declared.
        """
        return (
            name in self.host_names
            or name in self.foreign_functions
            or name in self.foreign_names
            or name in self.types_anywhere
            or name.startswith(("__", "hostlib_"))
            or self.knowledge.is_builtin(name)
            or self.knowledge.is_global(name)
        )

    def is_declared_before(self, name: str, item: ast.Node) -> bool:
        """Return True if a name of the file has been declared when ``item`` is reached (02 §10.2)."""
        place = self.order.get(name)
        return place is not None and self._turn(place) < self._turn(self.index_of(item))

    def _turn(self, index: int) -> tuple[int, int]:
        """When an item has its turn: beside pipelines, variables come first, then declarations."""
        item = self.items[index]
        if self.is_script or isinstance(item, ast.Let):
            return 0, index
        return 2 if isinstance(item, ast.Pipeline) else 1, index

    def written(self, binding: Binding) -> ast.Node | None:
        """The literal that one of the file's own variables stands for, if it is bound once."""
        is_own = self.bindings.get(binding.name) is binding and binding.name not in self._rebound
        return self._written.get(binding.name) if is_own else None

    def module_of(self, name: str) -> str | None:
        """The `std/…` module that a name may come from, the only one of those that are imported."""
        paths = [
            item.path
            for item in self.items
            if isinstance(item, ast.Import) and (item.names is None or name in item.names)
        ]
        return paths[0] if len(paths) == 1 and paths[0].startswith("std/") else None

    def index_of(self, item: ast.Node) -> int:
        """The place of an item among those of the file."""
        return self._indices[id(item)]

    def yields(self, fn: ast.FnDecl) -> bool:
        """Return True if the body of a function yields itself, which makes it a generator."""
        known = self._yields.get(id(fn))
        if known is None:
            known = self._yields[id(fn)] = fn, yields(fn.body)
        return known[1]

    def lineage(self, pipeline: ast.Pipeline) -> list[ast.Pipeline]:
        """The pipelines that one extends, furthest ancestor first (02 §10.4)."""
        return ancestry(pipeline, self.pipelines)[:-1]


# What the rest of a file can see of one of its items. Spec: 03 §3.3, §9.
#
# As long as that stays the same, an edit inside the item changes no other item's findings.


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
            for name in declared_by(node):
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


def declared_by(node: ast.Node) -> Iterator[str]:
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
