"""Run-time checks of annotated parameters. Spec: 02 §20.

`harnpy.vm.resolve.types` turns a type expression into a *spec*, nested tuples that generated code
writes out:

    ("scalar", "int")      ("union", (spec, …))       ("literal", value)      ("literals", (value, …))
    ("list", spec|None)    ("dict", spec|None)        ("shape", ((name, optional, spec), …))
    ("interface", name)
"""

from __future__ import annotations

from harnpy.vm.errors import RuntimeFault, TypeFault, VmError
from harnpy.vm.values import Fn, Set, Struct, display, type_name
from harnpy.vm.values.equality import equal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from harnpy.vm.resolve.types import Spec

SCALARS: dict[str, tuple[type, ...]] = {
    "int": (int, float),
    "float": (int, float),
    "string": (str,),
    "bool": (bool,),
    "list": (list,),
    "set": (Set,),
    "nil": (type(None),),
    "closure": (Fn,),
    "bytes": (bytes,),
}
_DICT_LIKE = ("dict", "shape")


def check_parameter(name: str, value: Any, spec: Spec) -> None:
    """Raise unless ``value`` is of ``spec``."""
    fault = _fault_of(name, value, spec, outer=spec[0] in _DICT_LIKE)
    if fault:
        raise fault


def _fault_of(path: str, value: Any, spec: Spec, outer: bool) -> VmError | None:
    """Return what is wrong with ``value``, or None; ``outer``: the outermost annotation is dict-like."""
    kind = spec[0]
    if kind == "dict":
        return _dict_fault(path, value, spec[1], outer)
    if kind == "shape":
        return _shape_fault(path, value, spec[1], outer)
    if kind == "interface":
        if type(value) is Struct:
            return None
        wanted = f"expected value satisfying interface '{spec[1]}'"
        return TypeFault(f"parameter '{path}': {wanted}, got {_actual(value)}")
    if kind == "list" and type(value) is list:
        problems = [p for i, item in enumerate(value) for p in _problems(f"root[{i}]", item, spec[1])]
        return _fault(f"parameter '{path}': {'; '.join(problems)}", outer) if problems else None
    if kind in ("literal", "literals"):
        return _literal_fault(path, value, spec, outer)
    if _fits(value, spec):
        return None
    return _fault(
        f"parameter '{path}' expected {_shown(spec)}, got {_actual(value)} ({display(value)})", outer
    )


def _fault(message: str, outer: bool) -> VmError:
    return TypeFault(message) if outer else RuntimeFault("TypeError: " + message)


def _literal_fault(path: str, value: Any, spec: Spec, outer: bool) -> VmError | None:
    wanted = spec[1] if spec[0] == "literals" else (spec[1],)
    type_ = "string" if isinstance(wanted[0], str) else "int"
    if type(value) is not type(wanted[0]):
        return _fault(f"parameter '{path}' expected {type_}, got {_actual(value)} ({display(value)})", outer)
    if value in wanted:
        return None
    if spec[0] == "literal":
        return _fault(f"parameter '{path}': expected constant {wanted[0]}, got {display(value)}", outer)
    return _fault(f"parameter '{path}': value must be one of {display(list(wanted))}", outer)


def _dict_fault(path: str, value: Any, spec: Spec | None, outer: bool) -> VmError | None:
    if not isinstance(value, dict):
        return TypeFault(f"parameter '{path}': expected dict or struct, got {type_name(value)}")
    if spec:
        for key in sorted(value):
            if fault := _field_fault(path, key, value[key], spec):
                return fault
    return None


def _shape_fault(path: str, value: Any, fields: tuple[Any, ...], outer: bool) -> VmError | None:
    if not isinstance(value, dict):
        return TypeFault(f"parameter '{path}': expected dict or struct, got {type_name(value)}")
    for name, optional, spec in fields:
        if not optional and name not in value:
            hint = _similar(name, value)
            return TypeFault(f"parameter '{path}': missing field '{name}' ({_shown(spec)}){hint}")
    for name, _, spec in sorted(fields):
        if name in value and (fault := _field_fault(path, name, value[name], spec)):
            return fault
    return None


def _field_fault(path: str, name: str, value: Any, spec: Spec) -> VmError | None:
    kind = spec[0]
    if kind in _DICT_LIKE:
        if not isinstance(value, dict):
            return TypeFault(
                f"parameter '{path}': field '{name}' expected dict or struct, got {_actual(value)}"
            )
        return _fault_of(f"{path}.{name}", value, spec, True)
    if kind == "scalar":
        if _fits(value, spec):
            return None
        return TypeFault(f"parameter '{path}': field '{name}' expected {spec[1]}, got {_actual(value)}")
    return _fault_of(f"{path}.{name}", value, spec, True)


def _similar(name: str, value: dict[str, Any]) -> str:
    from harnpy.formats.suggestions import distance

    close = [k for k in value if k[:1] == name[:1] and distance(k, name) <= 2]
    return f", did you mean '{min(close, key=lambda k: (distance(k, name), k))}'?" if close else ""


def _fits(value: Any, spec: Spec) -> bool:
    """Return True if ``value`` is of ``spec`` at all, when the details of a failure don't matter."""
    kind = spec[0]
    if kind == "scalar":
        return type(value) in SCALARS[spec[1]]
    if kind == "union":
        return any(_fits(value, member) for member in spec[1])
    if kind == "literal":
        return type(value) is type(spec[1]) and equal(value, spec[1])
    if kind == "list":
        return type(value) is list and not any(True for _ in _problems("root", value, spec))
    return _fault_of("", value, spec, True) is None


def _problems(path: str, value: Any, spec: Spec | None) -> Iterator[str]:
    """Yield what is wrong below a list item, one sentence each."""
    if spec is None:
        return
    if spec[0] == "list" and type(value) is list:
        for i, item in enumerate(value):
            yield from _problems(f"{path}[{i}]", item, spec[1])
    elif spec[0] == "shape" and isinstance(value, dict):
        for name, optional, field in spec[1]:
            if name in value:
                yield from _problems(f"{path}.{name}", value[name], field)
            elif not optional:
                yield f"at {path}: missing required key '{name}'"
    elif not _fits(value, spec):
        yield f"at {path}: expected type '{_shown(spec)}', got '{_actual(value)}'"


def _actual(value: Any) -> str:
    return "dict" if type(value) is Struct else type_name(value)


def _shown(spec: Spec) -> str:
    kind = spec[0]
    if kind == "scalar":
        return str(spec[1])
    if kind == "union":
        return "|".join(_shown(member) for member in spec[1])
    if kind in ("literal", "literals"):
        value = spec[1] if kind == "literal" else spec[1][0]
        return "string" if isinstance(value, str) else "int"
    return "list" if kind == "list" else "dict"
