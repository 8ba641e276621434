"""Types and parameters as source text. Spec: 01 §7.9, §12."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harnpy.syntax import ast
from harnpy.syntax.print_literals import quoted

#: Opening bracket, items, closing bracket, and where the brackets are written.
Sequenced = Callable[[str, Sequence[str], str, tuple[int, int]], str]

_CANONICAL = {"generator": "Generator", "stream": "Stream"}


def _on_one_line(opening: str, items: Sequence[str], closing: str, span: tuple[int, int]) -> str:
    return opening + ", ".join(items) + closing


def type_text(node: ast.Node, sequence: Sequenced = _on_one_line) -> str:
    """The text of a type; ``sequence`` prints the fields of its shapes."""
    if isinstance(node, ast.TypeName):
        name = canonical_name(node.name)
        args = ", ".join(type_text(arg, sequence) for arg in node.args)
        return f"{name}<{args}>" if args else name
    if isinstance(node, ast.TypeUnion):
        return " | ".join(type_text(member, sequence) for member in node.members)
    if isinstance(node, ast.TypeLiteral):
        return quoted(node.value) if isinstance(node.value, str) else str(node.value)
    if isinstance(node, ast.TypeShape):
        fields = [f"{f.name}{'?' * f.optional}: {type_text(f.type, sequence)}" for f in node.fields]
        return sequence("{", fields, "}", (node.start, node.end))
    assert isinstance(node, ast.TypeFn)
    params = ", ".join(type_text(param, sequence) for param in node.params)
    return f"fn({params}) -> {type_text(node.returns, sequence)}"


def canonical_name(name: str) -> str:
    """The name of a type as it is printed; some have two spellings."""
    return _CANONICAL.get(name, name)


def type_params_text(params: Sequence[ast.TypeParam]) -> str:
    """``<T, out U>``, or nothing."""
    names = ", ".join(f"{param.variance} {param.name}".lstrip() for param in params)
    return f"<{names}>" if names else ""


def param_text(
    param: ast.Param, expression: Callable[[ast.Node], str], type: Callable[[ast.Node], str] = type_text
) -> str:
    """A parameter; ``expression`` prints its default."""
    return (
        "..." * param.rest
        + param.name
        + ("" if param.type is None else f": {type(param.type)}")
        + ("" if param.default is None else f" = {expression(param.default)}")
    )
