"""Literals, keys, types and parameters as source text. Spec: 01 §4, §7.9, §12."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from harnpy.syntax import ast
from harnpy.syntax.layout import MEMBER_WORDS
from harnpy.syntax.lexer import RESERVED

#: A line break inside a literal that is copied as it is, until all indentation is done. A lone surrogate:
#: no file has one.
HELD_BREAK = "\ud8ff"
_IDENTIFIER = re.compile(r"(?:_|[^\W\d])\w*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_UNSPOKEN = dict.fromkeys(map(ord, " \t(),"))
_UNITS = (("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def quoted(text: str) -> str:
    """A ``"…"`` string of that text."""
    return f'"{escaped(text)}"'


def escaped(text: str) -> str:
    for plain, escape in _ESCAPES.items():
        text = text.replace(plain, escape)
    return text.replace("${", "\\${")


def indented(text: str) -> str:
    """Every line two columns further right."""
    return "  " + text.replace("\n", "\n  ")


def spans_lines(text: str) -> bool:
    return "\n" in text or HELD_BREAK in text


def widest(text: str) -> int:
    """The length of the longest line."""
    return max(map(len, text.replace(HELD_BREAK, "\n").split("\n")))


def same_code(text: str, other: str) -> bool:
    """Return True if two texts differ in blanks, parentheses and commas only."""
    return text.translate(_UNSPOKEN) == other.translate(_UNSPOKEN)


def braces(lines: Iterable[str]) -> str:
    """The lines of a block between braces."""
    inside = "\n".join(lines)
    return f"{{\n{indented(inside)}\n}}" if inside else "{\n}"


def float_text(value: float) -> str:
    """All digits, always with a fraction: there are no exponents."""
    if value == float("inf"):
        return "9" * 400 + ".0"
    text = format(Decimal(repr(value)), "f")
    return text if "." in text else text + ".0"


def duration_text(ms: int) -> str:
    """In the largest of h, m, s, ms that divides evenly."""
    return next((f"{ms // size}{unit}" for unit, size in _UNITS if ms and ms % size == 0), f"{ms}ms")


def is_identifier(text: str) -> bool:
    return bool(_IDENTIFIER.fullmatch(text)) and (text[0] == "_" or text[0].isalpha())


def is_bare_key(text: str) -> bool:
    """Return True if a dict key can stand without quotes."""
    return is_identifier(text) and (text not in RESERVED or text in MEMBER_WORDS)


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
