"""The types of what has blocks: `if`, `? :`, `try`, `parallel`. Spec: 03 §5."""

from __future__ import annotations

from harnpy.check.inference import access, dynamic
from harnpy.check.types.names import DICT, HOLE, NEVER, is_named, list_of, named, result_of_types
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.check.inference.engine import Inference
    from harnpy.check.scopes import Scope
    from harnpy.check.types.names import Type


def never(inference: Inference, node: ast.Node, scope: Scope) -> Type:
    return NEVER


def ternary(inference: Inference, node: ast.Ternary, scope: Scope) -> Type | None:
    if_true, if_false = inference.sides(node.cond, scope)
    then = inference.of(node.then, inference.narrowed(if_true, scope))
    otherwise = inference.of(node.otherwise, inference.narrowed(if_false, scope))
    if then is None or otherwise is None:
        return then or otherwise
    return inference.types.union([then, otherwise])


def if_(inference: Inference, node: ast.If, scope: Scope) -> Type | None:
    then = dynamic.block(inference, node.then, scope)
    otherwise = _otherwise(inference, node.otherwise, scope)
    if then is None or otherwise is None:
        return then
    if is_named(then, "never"):
        return otherwise
    return then if is_named(otherwise, "never") else inference.types.union([then, otherwise])


def _otherwise(inference: Inference, node: ast.Node | None, scope: Scope) -> Type | None:
    if node is None:
        return None
    return dynamic.block(inference, node, scope) if isinstance(node, ast.Block) else inference.of(node, scope)


def try_(inference: Inference, node: ast.Try, scope: Scope) -> Type | None:
    """The type of a bare `try`; one with `catch` or `finally` has none."""
    if node.catch is not None or node.finally_ is not None:
        return None
    # What is thrown and what is returned both ask for a `try` inside, and so would each of those.
    outer = inference.tries
    inference.tries = {} if outer is None else outer
    if id(node) not in inference.tries:
        inference.tries[id(node)] = _attempted(inference, node, scope)
    found = inference.tries[id(node)]
    inference.tries = outer
    return found


def _attempted(inference: Inference, node: ast.Try, scope: Scope) -> Type:
    """A Result of the block; one that already is a Result isn't wrapped again."""
    value = dynamic.block(inference, node.body, scope)
    thrown = _union(inference, list(_thrown(inference, node.body, scope)))
    if access.is_result(value):
        return result_of_types(access.ok_type(value) or HOLE, _merged(inference, value, thrown))
    return result_of_types(value or HOLE, thrown or HOLE)


def _merged(inference: Inference, value: Type | None, thrown: Type | None) -> Type:
    own = access.error_type(value) or HOLE
    if thrown is None or own == HOLE:
        return thrown or own
    return inference.types.union([own, thrown])


def _union(inference: Inference, types: list[Type | None]) -> Type | None:
    """The union; None when one of the types is unknown, or there are none."""
    known = [type for type in types if type is not None]
    return inference.types.union(known) if known and len(known) == len(types) else None


def _thrown(inference: Inference, block: ast.Block, scope: Scope) -> Iterator[Type | None]:
    """The types of what a block throws, as far as its statements tell."""
    inner = dynamic.nameless(scope, [])
    for statement in block.statements:
        if isinstance(statement, ast.Let):
            from harnpy.syntax.ast.patterns import bound_names

            inner = dynamic.nameless(inner, bound_names(statement.target))
        elif isinstance(statement, ast.Throw):
            yield inference.of(statement.value, inner)
        elif isinstance(statement, ast.Propagate):
            yield access.error_type(inference.of(statement.value, inner))
        elif isinstance(statement, ast.If):
            yield from _thrown_in_branches(inference, statement, inner)
        elif isinstance(statement, ast.While | ast.Retry | ast.Try):
            yield from _thrown(inference, statement.body, inner)


def _thrown_in_branches(inference: Inference, node: ast.If, scope: Scope) -> Iterator[Type | None]:
    branch: ast.Node | None = node
    while isinstance(branch, ast.If):
        yield from _thrown(inference, branch.then, scope)
        branch = branch.otherwise
    if isinstance(branch, ast.Block):
        yield from _thrown(inference, branch, scope)


def parallel(inference: Inference, node: ast.Parallel, scope: Scope) -> Type:
    if node.kind == "settle":
        return DICT
    inner = dynamic.nameless(scope, [node.param] if node.param else [])
    item = dynamic.block(inference, node.body, inner) or HOLE
    return named("Stream", item) if node.stream else list_of(item)
