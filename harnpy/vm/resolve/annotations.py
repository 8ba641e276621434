"""Type expressions to what is checked when a function is entered. Spec: 02 §20, 03 §12.

What cannot be checked (struct and alias names, type parameters, `any` …) has no spec; `run.parameter_types`
says what a spec is, and checks it.
"""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.resolve.scopes import Resolution
    from harnpy.vm.run.parameter_types import Spec

#: Types that are checked by the class of the value alone.
SCALARS = frozenset(["int", "float", "string", "bool", "list", "set", "nil", "closure", "bytes"])


def annotation_spec(type_: ast.Node, resolution: Resolution) -> Spec | None:
    """What an annotation demands of a value, or None when it is not enforced."""
    match type_:
        case ast.TypeName(name=name, args=()) if name in SCALARS:
            return ("scalar", name)
        case ast.TypeName(name="list", args=(item,)):
            return ("list", annotation_spec(item, resolution))
        case ast.TypeName(name="dict", args=()):
            return ("dict", None)
        case ast.TypeName(name="dict", args=(key, value)):
            named = isinstance(key, ast.TypeName) and key.name == "string"
            return ("dict", annotation_spec(value, resolution) if named else None)
        case ast.TypeName(name=name, args=()) if name in resolution.interfaces:
            return ("interface", name)
        case ast.TypeLiteral(value=value):
            return ("literal", value)
        case ast.TypeFn():
            return ("scalar", "closure")
        case ast.TypeUnion(members=members):
            return _union([annotation_spec(member, resolution) for member in members])
        case ast.TypeShape(fields=fields):
            specs = [(f.name, f.optional, annotation_spec(f.type, resolution)) for f in fields]
            return ("shape", tuple(specs)) if all(spec for _, _, spec in specs) else None
    return None


def _union(members: list[Spec | None]) -> Spec | None:
    if not all(members):
        return None
    specs = [spec for spec in members if spec]
    if all(spec[0] == "literal" for spec in specs) and len({type(spec[1]) for spec in specs}) == 1:
        return ("literals", tuple(spec[1] for spec in specs))
    return ("union", tuple(specs))
