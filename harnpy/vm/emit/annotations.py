"""Type expressions to what is checked when a function is entered. Spec: 02 §20, 03 §12.

What cannot be checked (struct and alias names, type parameters, `any` …) has no spec.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.run.parameter_types import SCALARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.resolve.scopes import Resolution
    from harnpy.vm.run.parameter_types import Spec

_QUICK = {
    "int": "type({0}) is not int and type({0}) is not float",
    "float": "type({0}) is not int and type({0}) is not float",
    "string": "type({0}) is not str",
    "bool": "type({0}) is not bool",
    "list": "type({0}) is not list",
    "closure": "type({0}) is not Fn",
}


class Check:
    """How to check one parameter."""

    __slots__ = ("spec",)

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def quick(self, slot: str) -> str | None:
        """Python text that is true when the full check is needed; None: always."""
        return (
            _QUICK[self.spec[1]].format(slot) if self.spec[0] == "scalar" and self.spec[1] in _QUICK else None
        )


def parameter_check(type_: ast.Node, resolution: Resolution) -> Check | None:
    """The check of an annotation, or None when it is not enforced."""
    spec = _spec(type_, resolution)
    return Check(spec) if spec else None


def _spec(type_: ast.Node, resolution: Resolution) -> Spec | None:
    match type_:
        case ast.TypeName(name=name, args=()) if name in SCALARS:
            return ("scalar", name)
        case ast.TypeName(name="list", args=(item,)):
            return ("list", _spec(item, resolution))
        case ast.TypeName(name="dict", args=()):
            return ("dict", None)
        case ast.TypeName(name="dict", args=(key, value)):
            named = isinstance(key, ast.TypeName) and key.name == "string"
            return ("dict", _spec(value, resolution) if named else None)
        case ast.TypeName(name=name, args=()) if name in resolution.interfaces:
            return ("interface", name)
        case ast.TypeLiteral(value=value):
            return ("literal", value)
        case ast.TypeFn():
            return ("scalar", "closure")
        case ast.TypeUnion(members=members):
            return _union([_spec(member, resolution) for member in members])
        case ast.TypeShape(fields=fields):
            specs = [(f.name, f.optional, _spec(f.type, resolution)) for f in fields]
            return ("shape", tuple(specs)) if all(spec for _, _, spec in specs) else None
    return None


def _union(members: list[Spec | None]) -> Spec | None:
    if not all(members):
        return None
    specs = [spec for spec in members if spec]
    if all(spec[0] == "literal" for spec in specs) and len({type(spec[1]) for spec in specs}) == 1:
        return ("literals", tuple(spec[1] for spec in specs))
    return ("union", tuple(specs))
