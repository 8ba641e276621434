"""Evaluators that look at the size of every value, for a Vm with a limit of items. Spec: 09 §16.1."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from harnpy.syntax import ast
    from harnpy.vm.walk.activation import Activation

    Evaluator = Callable[[Activation, Any], Any]


def growing(
    evaluators: Mapping[type[ast.Node], Evaluator], check: Callable[[Any], None]
) -> Mapping[type[ast.Node], Evaluator]:
    """Return ``evaluators`` that give each value to ``check``, which may leave the program."""
    return {kind: _checked(evaluate, check) for kind, evaluate in evaluators.items()}


def _checked(evaluate: Evaluator, check: Callable[[Any], None]) -> Evaluator:
    def value(a: Activation, node: ast.Node) -> Any:
        result = evaluate(a, node)
        check(result)
        return result

    return value
