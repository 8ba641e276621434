"""Whether a type satisfies an interface, and if not, why. Spec: 03 §7.1."""

from __future__ import annotations

from harnpy.check.types.aliases import substituted
from harnpy.check.types.generics import arguments, bind
from harnpy.check.types.names import shown
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.check.types.names import Type
    from harnpy.check.types.questions import Questions

    Method = ast.FnDecl | ast.MethodSig


def unsatisfied(types: Questions, type: Type, interface: str, args: Sequence[Type]) -> str | None:
    """See `Types.unsatisfied`."""
    declared = types.declared.interfaces.get(interface)
    if declared is None:
        return f"interface '{interface}' not found"
    type = types.unfolded(type)
    if not isinstance(type, ast.TypeName):
        return "only named types can satisfy interfaces"
    wanted = [member for member in declared.members if isinstance(member, ast.MethodSig)]
    if not wanted or type.name in types.declared.foreign:
        return None
    methods = _methods(types, type.name)
    if methods is None:
        return f"missing method(s): {', '.join(method.name for method in wanted)}"
    return _Satisfaction(types, type, declared, args, methods).fault()


def _methods(types: Questions, name: str) -> dict[str, Method] | None:
    """The methods of a type, or those that an interface promises."""
    interface = types.declared.interfaces.get(name)
    if interface is not None:
        return {member.name: member for member in interface.members if isinstance(member, ast.MethodSig)}
    methods = types.declared.impls.get(name)
    return None if methods is None else dict(methods)


class _Satisfaction:
    """One type held against one interface.

    Type parameters of the methods, and those that no arguments fix, fit everything. The associated types of
    the interface are bound by what the methods say.
    """

    def __init__(
        self,
        types: Questions,
        type: ast.TypeName,
        interface: ast.InterfaceDecl,
        args: Sequence[Type],
        methods: dict[str, Method],
    ) -> None:
        self.types = types
        self.interface = interface
        self.methods = methods
        self.associated = [member for member in interface.members if isinstance(member, ast.AssocType)]
        self.bound: dict[str, Type] = {}
        own = types.declared.generic(type.name)
        self.of_interface = arguments(interface.type_params, args)
        self.of_type = arguments(own.type_params, type.args) if own is not None else {}

    def fault(self) -> str | None:
        """The first reason, methods in the order of the interface and then the associated types."""
        for wanted in self.interface.members:
            if isinstance(wanted, ast.MethodSig):
                given = self.methods.get(wanted.name)
                fault = f"missing method '{wanted.name}'" if given is None else self._method(given, wanted)
                if fault is not None:
                    return fault
        return next(self._broken_defaults(), None)

    def _method(self, given: Method, wanted: ast.MethodSig) -> str | None:
        params, expected = _params(given), _params(wanted)
        name = wanted.name
        if len(params) != len(expected):
            return f"method '{name}' has {len(params)} parameter(s), expected {len(expected)}"
        free = {param.name for method in (given, wanted) for param in method.type_params}
        for i, (param, other) in enumerate(zip(params, expected, strict=True), 1):
            fault = self._compared(param.type, other.type, free, f"method '{name}' parameter {i} has type")
            if fault is not None:
                return fault
        return self._compared(given.returns, wanted.returns, free, f"method '{name}' returns")

    def _compared(self, given: Type | None, wanted: Type | None, free: set[str], subject: str) -> str | None:
        if given is None or wanted is None:
            return None
        types = self.types
        given = substituted(given, _outside(self.of_type, free))
        wanted = substituted(wanted, _outside(self.of_interface, free))
        names = {member.name for member in self.associated} - free
        conflict = bind(types, names, wanted, given, self.bound)
        if conflict is not None:
            name, one, other = conflict
            return f"type parameter '{name}' was inferred as both {shown(one)} and {shown(other)}"
        expected = substituted(wanted, self.bound)
        if types.fits(given, expected, free | names):
            return None
        return f"{subject} '{shown(given)}', expected '{shown(expected)}'"

    def _broken_defaults(self) -> Iterator[str]:
        for member in self.associated:
            actual = self.bound.get(member.name)
            if actual is None or member.type is None:
                continue
            expected = substituted(member.type, {**self.of_interface, **self.bound})
            if not self.types.fits(actual, expected):
                yield (
                    f"associated type '{member.name}' resolves to '{shown(actual)}', "
                    f"expected '{shown(expected)}'"
                )


def _params(method: Method) -> list[ast.Param]:
    return [param for param in method.params if param.name != "self"]


def _outside(bound: dict[str, Type], free: set[str]) -> dict[str, Type]:
    return {name: type for name, type in bound.items() if name not in free}
