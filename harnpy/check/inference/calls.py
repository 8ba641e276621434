"""The types of names and of what calls return. Spec: 03 §5, §7.2, §8.3, §13."""

from __future__ import annotations

from harnpy.check.types.names import CLOSURE, HOLE, function, named, result_of_types
from harnpy.check.types.results import result_of, signature_of
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.inference.engine import Inference
    from harnpy.check.scopes import Scope
    from harnpy.check.types.names import Type

ANY_STREAM = named("Stream", named("any"))
ANY_GENERATOR = named("Generator", named("any"))


def name(inference: Inference, node: ast.Name, scope: Scope) -> Type | None:
    found = scope.find(node.name)
    if found is not None and found.fn is None:
        return found.type
    declared = found.fn if found is not None else scope.will_declare(node.name)
    return function_type(inference, declared) if isinstance(declared, ast.FnDecl) else None


def function_type(inference: Inference, fn: ast.FnDecl) -> Type:
    """What a function is as a value; `_` where nothing is declared."""
    if any(param.rest or param.default is not None for param in fn.params) or fn.type_params:
        # It may be called in several ways.
        return CLOSURE
    return function([param.type or HOLE for param in fn.params], returned(inference, fn) or HOLE)


def returned(inference: Inference, fn: ast.FnDecl) -> Type | None:
    """What a call returns, as it is declared."""
    if fn.returns is not None:
        return fn.returns
    if fn.gen:
        return ANY_STREAM
    return ANY_GENERATOR if inference.environment.yields(fn) else None


def target(inference: Inference, node: ast.Call, scope: Scope) -> ast.FnDecl | None:
    """The user function that a call surely calls."""
    found = scope.find(node.name)
    declared = found.fn if found is not None else scope.will_declare(node.name)
    return declared if isinstance(declared, ast.FnDecl) else None


def call(inference: Inference, node: ast.Call, scope: Scope) -> Type | None:
    fn = target(inference, node, scope)
    if fn is not None:
        return _returned_by(inference, fn, node, scope)
    if scope.find(node.name) is not None or scope.will_declare(node.name) is not None:
        return None
    if node.name in ("Ok", "Err"):
        payload = (inference.of(node.args[0], scope) if node.args else None) or HOLE
        return result_of_types(*((payload, HOLE) if node.name == "Ok" else (HOLE, payload)))
    declared = inference.types.declared.structs.get(node.name)
    if declared is not None:
        return named(node.name, *[HOLE] * len(declared.type_params))
    return _of_builtin(inference, node, scope)


def _returned_by(inference: Inference, fn: ast.FnDecl, node: ast.Call, scope: Scope) -> Type | None:
    result = returned(inference, fn)
    if result is None or not fn.type_params:
        return result
    bound = bindings(inference, fn, node, scope)
    return inference.types.settled(result, [param.name for param in fn.type_params], bound)


def bindings(inference: Inference, fn: ast.FnDecl, node: ast.Call, scope: Scope) -> dict[str, Type]:
    """The type parameters of a function as a call determines them, conflicts passed over."""
    names = frozenset(param.name for param in fn.type_params)
    bound = explicit(fn.type_params, node)
    for param, arg in zip(fn.params, node.args, strict=False):
        if param.rest or isinstance(arg, ast.Spread):
            break
        if param.type is not None:
            bind_argument(inference, names, param.type, arg, bound, scope)
    return bound


def explicit(params: Sequence[ast.TypeParam], node: ast.Call) -> dict[str, Type]:
    """What ``f<A, B>(…)`` binds."""
    if len(params) != len(node.type_args):
        return {}
    return {param.name: arg for param, arg in zip(params, node.type_args, strict=True)}


def bind_argument(
    inference: Inference,
    names: frozenset[str],
    expected: Type,
    arg: ast.Node,
    bound: dict[str, Type],
    scope: Scope,
) -> tuple[str, Type, Type] | None:
    """Bind type parameters from one argument; a conflict, when one was bound otherwise before."""
    actual = argument(inference, expected, arg, scope)
    return None if actual is None else inference.types.bind(names, expected, actual, bound)


def argument(inference: Inference, expected: Type, arg: ast.Node, scope: Scope) -> Type | None:
    """The type of an argument for a parameter of type ``expected``."""
    return inference.types.seen_as(expected, arg, inference.of(arg, scope), scope.value_of)


def _of_builtin(inference: Inference, node: ast.Call, scope: Scope) -> Type | None:
    if not inference.environment.knowledge.is_builtin(node.name):
        return None
    signature = signature_of(node.name)
    if signature is None:
        return result_of(node.name)
    names = frozenset(param.name for param in signature.type_params)
    bound = explicit(signature.type_params, node)
    for param, arg in zip(signature.params, node.args, strict=False):
        if isinstance(arg, ast.Spread):
            break
        if param.type is not None:
            bind_argument(inference, names, param.type, arg, bound, scope)
    if names <= bound.keys() and signature.returns is not None:
        return inference.types.substitute(signature.returns, bound)
    return result_of(node.name)
