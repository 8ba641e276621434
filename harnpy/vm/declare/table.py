"""The builtins that the programs of one Vm see."""

from __future__ import annotations

from harnpy.vm.declare.arguments import direct
from harnpy.vm.errors import CategorizedFault
from harnpy.vm.values.objects import Builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from harnpy.check.knowledge import Knowledge
    from harnpy.vm.declare.builtin import Declaration
    from harnpy.vm.resolve.preparation import Preparation
    from harnpy.vm.vm import Vm

    class Catalog(Protocol):
        """What a Vm needs of the table of all builtins."""

        def names(self) -> Mapping[str, str]: ...
        def find(self, name: str, module: str = "") -> Declaration | None: ...
        def absence(self, name: str) -> str | None: ...
        def knowledge(self, table: BuiltinTable) -> Knowledge: ...
        def fingerprint(self) -> str: ...
        def global_names(self) -> tuple[str, ...]: ...
        def global_value(self, name: str, bound: Callable[[str], Builtin]) -> Any: ...
        def raises_faults(self, module: str) -> bool: ...


class BuiltinTable:
    """The builtins of one Vm: the catalog's, the embedder's, and which of them are denied.

    A guarded one is checked at every call against the context of the running task. A caller that knows
    the ``module`` of a builtin (`module_of`) names it: then the catalog need not look the name up.
    """

    def __init__(self, catalog: Catalog, vm: Vm, deny: frozenset[str], allow: frozenset[str] | None) -> None:
        self.catalog = catalog
        self.vm = vm
        self.deny = deny
        self.allow = allow
        self.registered: dict[str, Declaration] = {}
        self.preparation: Preparation | None = None
        """What is done to the tree of every file before its names are resolved."""
        self._bound: dict[str, Builtin] = {}

    def register(self, declaration: Declaration) -> None:
        """Add a builtin of the embedder; it hides one of the same name."""
        self.registered[declaration.name] = declaration
        self._bound.pop(declaration.name, None)

    def find(self, name: str, module: str = "") -> Declaration | None:
        return self.registered.get(name) or self.catalog.find(name, module)

    def module_of(self, name: str) -> str:
        """Return the path of the module that declares the builtin ``name``; "" for the embedder's."""
        return "" if name in self.registered else self.catalog.names()[name]

    def is_builtin(self, name: str) -> bool:
        return name in self.registered or name in self.catalog.names()

    def absence(self, name: str) -> str | None:
        """Return what to say of a builtin that the language has and this table has not."""
        return self.catalog.absence(name)

    def knowledge(self) -> Knowledge:
        """Return what checks are told of these builtins."""
        return self.catalog.knowledge(self)

    def is_global(self, name: str) -> bool:
        return name in self.vm.global_names()

    def names(self) -> list[str]:
        return [*self.catalog.names(), *self.registered]

    def declaration(self, name: str, module: str = "") -> Declaration:
        found = self.find(name, module)
        if found is None:
            raise LookupError(name)
        return found

    def bound(self, name: str, module: str = "") -> Builtin:
        """Return the builtin as a value; denied ones fail when called (09 §2)."""
        found = self._bound.get(name)
        if found is None:
            if self.denies(name):
                found = Builtin(name, _refusal(name), None)
            else:
                declaration = self.declaration(name, module)
                found = declaration.bind()
                call = self._checked(declaration, found.call)
                if call is not found.call:
                    found = Builtin(name, call, found.max_args)
            self._bound[name] = found
        return found

    def direct(self, name: str, module: str = "") -> Callable[..., Any]:
        """Return the builtin for code that converts the arguments itself."""
        if self.denies(name):
            return _refusal(name)
        declaration = self.declaration(name, module)
        return self._checked(declaration, direct(declaration))

    def global_value(self, name: str) -> Any:
        """Return the value of one of the catalog's globals."""
        return self.catalog.global_value(name, self.bound)

    def _checked(self, declaration: Declaration, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` with what must happen around it; nothing for most builtins."""
        name = declaration.name
        if name not in self.registered and self.catalog.raises_faults(declaration.function.__module__):
            from harnpy.vm.declare.failures import reporting_faults

            function = reporting_faults(name, function)
        return _guarded(name, function) if declaration.guarded else function

    def denies(self, name: str) -> bool:
        return name in self.deny or (self.allow is not None and name not in self.allow)

    def fingerprint(self) -> str:
        """Return a text that changes whenever compiled programs may mean something else."""
        declared = (declaration.signature_text for declaration in self.registered.values())
        extra = ",".join(sorted({*declared, *self.vm.global_names()}))
        return f"{self.catalog.fingerprint()};{extra}"


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, checked at every call against the rules of the running task."""

    def ask_first(vm: Vm, *args: Any) -> Any:
        context = vm.task_context
        reason = None if context is None else context.refuses(name)
        if reason is not None:
            raise CategorizedFault("tool_rejected", reason)
        return function(vm, *args)

    return ask_first


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(vm: Vm, *args: Any) -> None:
        raise CategorizedFault("tool_rejected", f"Tool '{name}' is not permitted.")

    return refuse
