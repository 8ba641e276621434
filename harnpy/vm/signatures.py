"""Signatures of builtins: how the line of a declaration is read. Spec: 03 §8.3, 04 §0.1.

    split(s: string, sep: string = " ") -> list

It is read by hand: a warm start must not load the parser to call `println`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Parameter:
    """One parameter. ``default`` is the written one, or None (nil) where there is none."""

    __slots__ = ("default", "has_default", "name", "optional", "rest", "type")

    def __init__(
        self, name: str, type: str, optional: bool, rest: bool, has_default: bool, default: Any
    ) -> None:
        self.name = name
        self.type = type
        self.optional = optional
        self.rest = rest
        self.has_default = has_default
        self.default = default


class Signature:
    """A callable's name, type parameters, parameters and result type; ``text`` is the notation as written.

    A result that is written `T?` is `T | nil` and ``lenient``: nil is for arguments that mean nothing, and
    the checks take it for a `T`.
    """

    __slots__ = ("lenient", "name", "parameters", "returns", "text", "type_params")

    def __init__(self, text: str) -> None:
        self.text = text
        head, _, tail = text.partition("(")
        inside, _, after = tail.rpartition(")")
        self.name, _, type_params = head.partition("<")
        self.type_params = tuple(_split(type_params.rstrip(">")))
        written = after.partition("->")[2].strip() or "any"
        self.lenient = written.endswith("?")
        self.returns = f"{written[:-1]} | nil" if self.lenient else written
        self.parameters = tuple(_parameter(part) for part in _split(inside))

    def begins_with(self, kind: str) -> bool:
        """Return True if the first parameter takes values of a kind (`list`, `iter` …), or their text."""
        types = _split(self.parameters[0].type.replace("|", ",")) if self.parameters else []
        names = {"dict" if type.startswith("{") else type.partition("<")[0].rstrip("?") for type in types}
        kinds = {kind, "dict"} if kind == "struct" else {kind}
        return not names.isdisjoint({*kinds, "any", "string", *self.type_params})

    @property
    def rest(self) -> bool:
        return bool(self.parameters) and self.parameters[-1].rest


def name_of(signature: str) -> str:
    """Return the name that a signature begins with."""
    return signature.partition("(")[0].partition("<")[0]


def _split(text: str) -> list[str]:
    """The comma-separated pieces of ``text``; commas in brackets and quotes don't count."""
    pieces, depth, quoted, begin = [], 0, False, 0
    for i, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif c in "([{<":
            depth += 1
        elif c in ")]}>":
            depth -= text[i - 1 : i + 1] != "->"
        elif c == "," and depth == 0:
            pieces.append(text[begin:i])
            begin = i + 1
    pieces.append(text[begin:])
    return [piece.strip() for piece in pieces if piece.strip()]


def _parameter(text: str) -> Parameter:
    rest = text.startswith("...")
    head, has_default, default = text.removeprefix("...").partition(" = ")
    name, _, type_ = head.partition(":")
    optional = name.endswith("?")
    return Parameter(
        name.rstrip("?").strip(),
        type_.strip() or "any",
        optional,
        rest,
        bool(has_default),
        _literal(default.strip()) if has_default else None,
    )


def _literal(text: str) -> Any:
    words = {"nil": None, "true": True, "false": False}
    if text in words:
        return words[text]
    if text.startswith('"'):
        return text[1:-1]
    return float(text) if "." in text else int(text)
