"""Types and parameters as source text. Spec: 01 §7.9, §12."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harnpy.syntax import ast
from harnpy.syntax.print_literals import quoted


def type_text(node: ast.Node) -> str:
    if isinstance(node, ast.TypeName):
        args = ", ".join(type_text(arg) for arg in node.args)
        return f"{node.name}<{args}>" if args else node.name
    if isinstance(node, ast.TypeUnion):
        return " | ".join(type_text(member) for member in node.members)
    if isinstance(node, ast.TypeLiteral):
        return quoted(node.value) if isinstance(node.value, str) else str(node.value)
    if isinstance(node, ast.TypeShape):
        fields = (f"{f.name}{'?' * f.optional}: {type_text(f.type)}" for f in node.fields)
        return f"{{{', '.join(fields)}}}"
    assert isinstance(node, ast.TypeFn)
    params = ", ".join(type_text(param) for param in node.params)
    return f"fn({params}) -> {type_text(node.returns)}"


def type_params_text(params: Sequence[ast.TypeParam]) -> str:
    """``<T, out U>``, or nothing."""
    names = ", ".join(f"{param.variance} {param.name}".lstrip() for param in params)
    return f"<{names}>" if names else ""


def params_text(params: Sequence[ast.Param], expression: Callable[[ast.Node], str]) -> list[str]:
    """Each parameter; ``expression`` prints the defaults."""
    return [
        "..." * param.rest
        + param.name
        + ("" if param.type is None else f": {type_text(param.type)}")
        + ("" if param.default is None else f" = {expression(param.default)}")
        for param in params
    ]
