"""What the whole of a file sees: its declarations, the builtins, its imports. Spec: 03 §3.3, §5, §9.

Made once from all items; each item is then checked by itself against it.
"""

from __future__ import annotations

from harnpy.check.scopes import Binding
from harnpy.check.surface import Surface, file_variables, yields
from harnpy.check.types import Declared, Types
from harnpy.syntax import ast
from harnpy.syntax.names import ancestry, declared_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
