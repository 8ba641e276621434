"""Expressions whose kind of value is beyond doubt, so that their methods may be judged. Spec: 03 §9."""

from __future__ import annotations

from harnpy.check.types.names import CLOSURE, DURATION, LIST, STRING, named
from harnpy.check.types.results import result_of
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.inference.engine import Inference
    from harnpy.check.scopes import Scope
    from harnpy.check.types.names import Type

#: Builtins whose result types are only hints (04 §32).
_HINTS = frozenset(["to_int", "project_root", "regex_match", "range"])
#: Kinds that an annotation names beyond doubt; handles and dicts are of many kinds.
_KINDS = frozenset("string int float bool nil bytes duration list set range closure".split())


def certain(inference: Inference, node: ast.Node, scope: Scope) -> Type | None:
    """The type of ``node`` when it is sure to be a value of that kind."""
    if isinstance(node, ast.Str | ast.Interp):
        return STRING
    if isinstance(node, ast.Int | ast.Float | ast.Bool | ast.Nil | ast.RangeTo):
        return inference.of(node, scope)
    if isinstance(node, ast.Duration):
        return DURATION
    if isinstance(node, ast.List):
        return LIST
    if isinstance(node, ast.Closure | ast.FnExpr):
        return CLOSURE
    if isinstance(node, ast.Dict):
        found = inference.of(node, scope)
        return found if isinstance(found, ast.TypeShape) else None
    if isinstance(node, ast.StructLit):
        return named(node.name) if node.name in inference.types.declared.structs else None
    if isinstance(node, ast.Name):
        binding = scope.find(node.name)
        return None if binding is None else binding.certain
    if isinstance(node, ast.Call):
        return _of_call(inference, node, scope)
    return inference.variant(node, scope)


def _of_call(inference: Inference, node: ast.Call, scope: Scope) -> Type | None:
    environment = inference.environment
    if scope.find(node.name) is not None or scope.will_declare(node.name) is not None:
        return None
    if node.name in environment.foreign_functions or node.name in environment.called_anywhere:
        return None
    if node.name in ("Ok", "Err"):
        return named("Result")
    if node.name in _HINTS or not environment.knowledge.is_builtin(node.name):
        return None
    found = result_of(node.name)
    return found and annotated(inference, found)


def annotated(inference: Inference, type: Type) -> Type | None:
    """An annotation, when it names kinds that values of the type are sure to be of."""
    members = inference.types.members(inference.types.unfolded(type))
    return type if all(_names_a_kind(inference, member) for member in members) else None


def _names_a_kind(inference: Inference, type: Type) -> bool:
    if isinstance(type, ast.TypeName):
        declared = inference.types.declared
        return (
            type.name in _KINDS
            or (type.name in declared.structs and type.name in inference.environment.methods)
            or type.name in declared.enums
        )
    return isinstance(type, ast.TypeLiteral | ast.TypeFn)
