"""The expressions and filters of templates, from text to a function of the scope; how a template fails.

Raises `TemplateFault`, when parsing or when the function runs. Spec: 04 §23.4, §23.6, §23.7.
"""

from __future__ import annotations

import re
from operator import ge, gt, le, lt

from harnpy.formats.case import WHITESPACE, titled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    class Operations(Protocol):
        def truthy(self, value: Any) -> bool: ...

        def text(self, value: Any) -> str:
            """Return what a hole shows; the engine itself shows nothing for `None`."""

        def type_name(self, value: Any) -> str: ...

        def equal(self, a: Any, b: Any) -> bool: ...

        def compare(self, a: Any, b: Any) -> int:
            """Return a negative number, 0 or a positive one, for two numbers or two texts."""

        def items(self, value: Any) -> list[Any] | range | None:
            """Return what a list, a set or a range consists of; None for other values."""

        def json(self, value: Any, pretty: bool) -> str: ...

        def go_on(self, written: int) -> None:
            """Called again and again, with the characters so far; may raise.

            At every directive that is read, at every turn of a loop, every include, and between many nodes.
            """

    Scope = Mapping[str, Any]
    Expression = Callable[[Scope], Any]
    Token = tuple[str, str]


class TemplateFault(Exception):
    """A template is wrong; raised where the position isn't known."""


class TemplateError(Exception):
    """A directive is wrong. ``path`` is the included template's, None in the outermost."""

    def __init__(self, message: str, at: tuple[int, int], path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.path = path

    def text(self, path: str | None) -> str:
        """Return the thrown text; ``path`` is the file of the outermost template (None: inline)."""
        where = self.path or path
        prefix = f"{where} " if where else ""
        line, column = self.at
        return f"{prefix}at {line}:{column}: {self.message}"


# What the engine must know of the values in a template; each language implements it for its own.
#
# `None`, `bool`, `int`, `float`, `str`, `list` and `dict` stand for what they do in JSON.


def shown(operations: Operations, value: Any) -> str:
    """Return the text of a value, nothing for `None`."""
    return "" if value is None else operations.text(value)


def count(items: list[Any] | range) -> int:
    """Return how many items there are, also in a range too long for `len`."""
    return max(0, items.stop - items.start) if isinstance(items, range) else len(items)


_MARKDOWN = str.maketrans({character: "\\" + character for character in "\\`*_{}[]()#+-.!|<>"})


def apply_filter(operations: Operations, name: str, value: Any, arguments: list[Any]) -> Any:
    """Return ``value | name: arguments…``."""
    if name in _OF_TEXT:
        least = most = 0
    elif name in _FILTERS:
        function, least, most = _FILTERS[name]
    else:
        raise TemplateFault(f"unknown filter `{name}`")
    if not least <= len(arguments) <= most:
        raise TemplateFault(f"filter `{name}` got wrong number of arguments")
    if name in _OF_TEXT:
        return _OF_TEXT[name](shown(operations, value))
    return function(operations, value, *arguments)


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:].lower()


def _length(operations: Operations, value: Any) -> int:
    if value is None:
        return 0
    if type(value) in (str, dict):
        return len(value)
    items = operations.items(value)
    if items is None:
        raise TemplateFault(f"`length` not defined for {operations.type_name(value)}")
    return count(items)


def _at(operations: Operations, value: Any, i: int) -> Any:
    items = value if type(value) is str else operations.items(value)
    return items[i] if type(items) in (list, str) and items else None


def _first(operations: Operations, value: Any) -> Any:
    return _at(operations, value, 0)


def _last(operations: Operations, value: Any) -> Any:
    return _at(operations, value, -1)


def _reverse(operations: Operations, value: Any) -> Any:
    return value[::-1] if type(value) in (list, str) else value


def _join(operations: Operations, value: Any, separator: Any) -> str:
    if type(value) is str:
        return value
    items = operations.items(value)
    if not isinstance(items, list):
        raise TemplateFault(f"`join` requires a list (got {operations.type_name(value)})")
    return shown(operations, separator).join([operations.text(item) for item in items])


def _default(operations: Operations, value: Any, spare: Any) -> Any:
    return value if operations.truthy(value) else spare


def _json(operations: Operations, value: Any, pretty: Any = False) -> str:
    return operations.json(value, operations.truthy(pretty))


def _indent(operations: Operations, value: Any, width: Any, first: Any = False) -> str:
    if type(width) is not int:
        raise TemplateFault("`indent` requires an integer width")
    margin, first_too = " " * width, operations.truthy(first)
    lines = shown(operations, value).split("\n")
    return "\n".join([margin + line if line and (i or first_too) else line for i, line in enumerate(lines)])


def _replace(operations: Operations, value: Any, old: Any, new: Any) -> str:
    return shown(operations, value).replace(shown(operations, old), shown(operations, new))


#: Filters without arguments that look at nothing but the text of a value.
_OF_TEXT: dict[str, Callable[[str], Any]] = {
    "upper": str.upper,
    "lower": str.lower,
    "trim": lambda text: text.strip(WHITESPACE),
    "capitalize": _capitalize,
    "title": titled,
    "lines": lambda text: text.split("\n"),
    "escape_md": lambda text: text.translate(_MARKDOWN),
}
#: Each with the least and the most arguments it takes.
_FILTERS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "length": (_length, 0, 0),
    "first": (_first, 0, 0),
    "last": (_last, 0, 0),
    "reverse": (_reverse, 0, 0),
    "join": (_join, 1, 1),
    "default": (_default, 1, 1),
    "json": (_json, 0, 1),
    "indent": (_indent, 1, 2),
    "replace": (_replace, 2, 2),
}


NAME = re.compile(r"[^\W\d]\w*")
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      |(?P<float>-?[0-9]+\.[0-9]+)|(?P<int>-?[0-9]+)|(?P<name>[^\W\d]\w*)
      |(?P<sign>\|\||&&|[=!<>]=|[|!<>()\[\]{}.,:]))""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\([ntr\\\"'])")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_WORDS = {"true": True, "false": False, "nil": None}
_RESERVED = frozenset({"and", "or", "not"})
_END = ("end", "")
_ORDERS = {"<": lt, "<=": le, ">": gt, ">=": ge}


class ExpressionParser:
    """Reads one directive's text token by token; ``at`` is the next."""

    def __init__(self, text: str, operations: Operations) -> None:
        self.operations = operations
        self.tokens = _tokens(text)
        self.at = 0

    # --- tokens -----------------------------------------------------------------------------------

    def peek(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.tokens[self.at]
        self.at += token is not _END
        return token

    def take(self, *texts: str) -> bool:
        """Step over a sign or word that is one of ``texts``, and return whether there was one."""
        kind, text = self.peek()
        found = kind in ("sign", "name") and text in texts
        self.at += found
        return found

    def expect(self, sign: str, message: str) -> None:
        if not self.take(sign):
            raise TemplateFault(message)

    def finish(self) -> None:
        if self.peek() is not _END:
            raise TemplateFault(f"unexpected `{self.peek()[1]}` in expression")

    # --- grammar, loosest first -------------------------------------------------------------------

    def filtered(self) -> Expression:
        expression = self.either()
        while self.take("|"):
            kind, name = self.next()
            if kind != "name":
                raise TemplateFault("expected filter name after `|`")
            arguments = []
            if self.take(":"):
                arguments.append(self.either())
                while self.take(","):
                    arguments.append(self.either())
            expression = _filtering(self.operations, expression, name, arguments)
        return expression

    def either(self) -> Expression:
        expression = self.both()
        while self.take("or", "||"):
            expression = _deciding(self.operations, expression, self.both(), True)
        return expression

    def both(self) -> Expression:
        expression = self.negated()
        while self.take("and", "&&"):
            expression = _deciding(self.operations, expression, self.negated(), False)
        return expression

    def negated(self) -> Expression:
        if not self.take("not", "!"):
            return self.compared()
        operand, truthy = self.negated(), self.operations.truthy
        return lambda scope: not truthy(operand(scope))

    def compared(self) -> Expression:
        left = self.primary()
        sign = self.peek()[1]
        if self.peek()[0] == "sign" and self.take("==", "!=", "<", "<=", ">", ">="):
            return _comparing(self.operations, left, sign, self.primary())
        return left

    def primary(self) -> Expression:
        kind, text = self.peek()
        if kind == "name" and text not in _RESERVED:
            self.at += 1
            return _constant(_WORDS[text]) if text in _WORDS else self.path(text)
        if kind in ("string", "int", "float"):
            self.at += 1
            return _constant(_LITERALS[kind](text))
        if self.take("("):
            inside = self.either()
            self.expect(")", "expected `)`")
            return inside
        raise TemplateFault("expected expression")

    def path(self, root: str) -> Expression:
        steps: list[str | int] = []
        while True:
            if self.take("."):
                kind, text = self.next()
                if kind != "name":
                    raise TemplateFault("expected identifier after `.`")
                steps.append(text)
            elif self.take("["):
                kind, text = self.next()
                if kind not in ("string", "int"):
                    raise TemplateFault("expected integer or string inside `[...]`")
                steps.append(_string(text) if kind == "string" else _int(text))
                self.expect("]", "expected `]`")
            else:
                return _following(root, steps)


def expression(text: str, operations: Operations) -> Expression:
    """Return the function that a whole directive text stands for."""
    parser = ExpressionParser(text, operations)
    result = parser.filtered()
    parser.finish()
    return result


def _tokens(text: str) -> list[Token]:
    tokens, at = [], 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise TemplateFault(_stray(text[at:].lstrip()[0]))
        tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
        at = match.end()
    return [*tokens, _END]


def _stray(character: str) -> str:
    if character in "\"'":
        return "unterminated string literal"
    if character == "=":
        return "unexpected `=` (use `==`)"
    return "unexpected `&`" if character == "&" else f"unexpected character `{character}` in expression"


def _string(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), text[1:-1])


def _int(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise TemplateFault(f"invalid integer `{text}`")
    return int(text)


_LITERALS: dict[str, Callable[[str], Any]] = {"string": _string, "int": _int, "float": float}


def _constant(value: Any) -> Expression:
    return lambda scope: value


def _filtering(
    operations: Operations, operand: Expression, name: str, arguments: list[Expression]
) -> Expression:
    return lambda scope: apply_filter(
        operations, name, operand(scope), [argument(scope) for argument in arguments]
    )


def _deciding(operations: Operations, left: Expression, right: Expression, decisive: bool) -> Expression:
    """Return `or` when ``decisive``, else `and`: the operand that decides is the value."""

    def decide(scope: Scope) -> Any:
        value = left(scope)
        return value if operations.truthy(value) == decisive else right(scope)

    return decide


def _comparing(operations: Operations, left: Expression, sign: str, right: Expression) -> Expression:
    if sign in ("==", "!="):
        return lambda scope: operations.equal(left(scope), right(scope)) == (sign == "==")
    holds = _ORDERS[sign]

    def ordered(scope: Scope) -> bool:
        a, b = left(scope), right(scope)
        return _have_order(a, b) and holds(operations.compare(a, b), 0)

    return ordered


def _have_order(a: Any, b: Any) -> bool:
    numbers = (int, float)
    return (type(a) in numbers and type(b) in numbers) or type(a) is type(b) is str


def _following(root: str, steps: list[str | int]) -> Expression:
    def follow(scope: Scope) -> Any:
        value = scope.get(root)
        for step in steps:
            value = _step(value, step)
        return value

    return follow


def _step(value: Any, step: str | int) -> Any:
    if type(value) is dict:
        return value.get(str(step))
    if type(step) is int and (type(value) is list or type(value) is str):
        return value[step] if -len(value) <= step < len(value) else None
    return None
