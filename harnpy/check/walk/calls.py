"""Calls by name: what is called, with how many arguments of which types. Spec: 03 §7.2, §8.1, §8.2, §9."""

from __future__ import annotations

from harnpy.check.findings import declared_here
from harnpy.check.inference import calls
from harnpy.check.inference.dynamic import known
from harnpy.check.types.names import is_named, shown
from harnpy.check.types.results import signature_of
from harnpy.check.walk import names
from harnpy.check.walk.closures import function
from harnpy.check.walk.foreign_types import hint
from harnpy.check.walk.statements import never_returns
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.types.names import Type
    from harnpy.check.walk.visitor import Walk


def call(walk: Walk, node: ast.Call) -> None:
    names.called(walk, node)
    fn = calls.target(walk.inference, node, walk.scope)
    if fn is not None:
        _user_function(walk, node, fn)
    elif _is_builtin(walk, node):
        _builtin(walk, node)
    elif node.name in walk.environment.foreign_functions and walk.scope.find(node.name) is None:
        _of_module(walk, node)
    handled = not _is_builtin(walk, node)
    for arg in node.args:
        argument(walk, arg, handled)


def argument(walk: Walk, arg: ast.Node, handled: bool) -> None:
    """Visit an argument. What goes wrong in a closure does so where it is called, which may handle it."""
    if isinstance(arg, ast.Closure | ast.FnExpr) and not handled:
        function(walk, arg)
    else:
        walk.visit(arg)


def _is_builtin(walk: Walk, node: ast.Call) -> bool:
    """Whether a call surely calls a builtin."""
    environment = walk.environment
    return (
        environment.knowledge.is_builtin(node.name)
        and node.name not in environment.foreign_functions
        and walk.scope.find(node.name) is None
        and walk.scope.will_declare(node.name) is None
    )


def _user_function(walk: Walk, node: ast.Call, fn: ast.FnDecl) -> None:
    _deprecated(walk, node, fn)
    _type_arguments(walk, node, f"Function '{fn.name}'", len(fn.type_params))
    _count(walk, node, fn)
    bound = calls.explicit(fn.type_params, node)
    pairs = _pairs(fn, node.args)
    _conflicts(walk, fn, pairs, bound)
    _arguments(walk, fn, pairs, bound)
    _bounds(walk, node, fn, bound)
    if is_named(fn.returns, "never"):
        never_returns(walk, f"{fn.name}()", node)


def _deprecated(walk: Walk, node: ast.Call, fn: ast.FnDecl) -> None:
    """Calls of a file-level function that is `@deprecated(since: …, use: …)`."""
    if walk.environment.functions.get(fn.name) is not fn:
        return
    for attribute in fn.attrs:
        if attribute.name == "deprecated":
            given = {arg.name: getattr(arg.value, "value", None) for arg in attribute.args}
            since = f" (since {given['since']})" if given.get("since") else ""
            help = f"use `{given['use']}` instead" if given.get("use") else None
            text = f"`{fn.name}` is deprecated{since}"
            places = [declared_here(attribute)]
            walk.deprecations.warn("deprecated", node, text, help=help, places=places)


def _type_arguments(walk: Walk, node: ast.Call, what: str, wanted: int) -> None:
    given = len(node.type_args)
    if not given or given == wanted:
        return
    text = f"{what} expects {wanted} type arguments, got {given}"
    if not wanted:
        text = f"{what} does not declare type parameters"
    walk.findings.error("type-argument-count", node, text)


def _count(walk: Walk, node: ast.Call, fn: ast.FnDecl) -> None:
    if any(isinstance(arg, ast.Spread) for arg in node.args) or any(param.rest for param in fn.params):
        return
    if walk.environment.knowledge.is_builtin(fn.name):
        return
    most = len(fn.params)
    least = sum(param.default is None for param in fn.params)
    if not least <= len(node.args) <= most:
        wanted = f"{least}-{most}" if least != most else str(most)
        text = f"Function '{fn.name}' expects {wanted} arguments, got {len(node.args)}"
        walk.findings.warn("argument-count", node, text, places=[declared_here(fn)])


_Pairs = list[tuple[int, ast.Param, ast.Node]]


def _pairs(fn: ast.FnDecl, args: Sequence[ast.Node]) -> _Pairs:
    """The arguments, counted from 1, that are compared, and their parameters."""
    pairs: _Pairs = []
    for i, (param, arg) in enumerate(zip(fn.params, args, strict=False), 1):
        if param.rest or isinstance(arg, ast.Spread):
            break
        if param.type is not None:
            pairs.append((i, param, arg))
    return pairs


def _conflicts(walk: Walk, fn: ast.FnDecl, pairs: _Pairs, bound: dict[str, Type]) -> None:
    params = frozenset(param.name for param in fn.type_params)
    given = frozenset(bound)
    if not params:
        return
    for _, param, arg in pairs:
        assert param.type is not None
        conflict = calls.bind_argument(walk.inference, params, param.type, arg, bound, walk.scope)
        if conflict is None:
            continue
        name, first, second = conflict
        # What is said outright holds: an argument has only to fit it.
        if name not in given or not walk.fits(second, first):
            text = f"type parameter '{name}' was inferred as both {shown(first)} and {shown(second)}"
            walk.findings.error("type-parameter-conflict", arg, text)


def _arguments(walk: Walk, fn: ast.FnDecl, pairs: _Pairs, bound: dict[str, Type]) -> None:
    free = {param.name for param in fn.type_params} - bound.keys()
    params = walk.function.type_params | free
    for i, param, arg in pairs:
        assert param.type is not None
        expected = walk.types.substitute(param.type, bound) if bound else param.type
        actual = calls.argument(walk.inference, expected, arg, walk.scope)
        if actual is not None and not walk.types.accepts(expected, arg, actual, params):
            text = f"Argument {i} ('{param.name}'): expected {shown(expected)}, got {shown(actual)}"
            places = [declared_here(param)]
            walk.findings.error("argument-type", arg, text, help=hint(walk, expected), places=places)


def _bounds(walk: Walk, node: ast.Call, fn: ast.FnDecl, bound: dict[str, Type]) -> None:
    for param, interface in fn.where:
        type = bound.get(param)
        if type is None or known(type) is None or is_named(type, "_"):
            continue
        if isinstance(type, ast.TypeName) and type.name in walk.function.type_params:
            continue
        if isinstance(type, ast.TypeName):
            reason = walk.types.unsatisfied(type, interface)
        else:
            reason = "only named types can satisfy interfaces"
        if reason is not None:
            text = (
                f"Type '{shown(type)}' does not satisfy interface '{interface}': {reason}"
                f" (required by constraint `where {param}: {interface}`)"
            )
            walk.findings.error("type-bound", node, text)


def _builtin(walk: Walk, node: ast.Call) -> None:
    signature = signature_of(node.name)
    count = len(signature.type_params) if signature is not None else 0
    _type_arguments(walk, node, f"Builtin function '{node.name}'", count)
    if node.name == "unreachable":
        _unreachable(walk, node)
        never_returns(walk, "unreachable()", node)
    agents(walk, node)


def _unreachable(walk: Walk, node: ast.Call) -> None:
    """`unreachable(x)`: every case of x has been handled, or not."""
    if len(node.args) != 1 or not isinstance(node.args[0], ast.Name):
        return
    found = known(walk.type(node.args[0]))
    if found is not None and not is_named(found, "never"):
        text = f"unreachable() argument has type `{shown(found)}` — not all cases are handled"
        walk.findings.error("unhandled-type", node, text)


def agents(walk: Walk, node: ast.Call | ast.MethodCall) -> None:
    """Have what knows of agents look at a call of a builtin."""
    if walk.findings is walk.reported:
        walk.agents.call(node, lambda name: _written(walk, name), walk.quiet > 0)


def _of_module(walk: Walk, node: ast.Call) -> None:
    """Have it look at a call of a function that comes from a `std/…` module."""
    module = walk.environment.module_of(node.name)
    if module is not None and walk.findings is walk.reported:
        walk.agents.call_of_module(module, node, lambda name: _written(walk, name), walk.quiet > 0)


def _written(walk: Walk, name: str) -> ast.Node | None:
    """What a name is bound to for good, as far as that is known here."""
    found = walk.scope.find(name)
    if found is None or found.mutable:
        return None
    return found.value or walk.environment.written(found)
