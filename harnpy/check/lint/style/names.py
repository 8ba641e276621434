"""How functions and types are written. Spec: 03 §15."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnpy.check.lint.rule import Remark
from harnpy.check.lint.subject import Subject
from harnpy.syntax import ast

#: Where a word begins inside of `someHTTPName`.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def naming_convention(subject: Subject) -> Iterator[Remark]:
    for node, kind, name in _named(subject):
        style, wanted = (
            ("snake_case", snake_case(name)) if kind == "function" else ("PascalCase", pascal_case(name))
        )
        if wanted != name:
            start, end = subject.name_span(node, name)
            yield Remark(start, end, f"{kind} `{name}` should use {style}", help=f"rename it to `{wanted}`")


def _named(subject: Subject) -> Iterator[tuple[ast.Node, str, str]]:
    yield from ((node, "function", node.name) for node in subject.each(ast.FnDecl))
    yield from ((node, "function", node.name) for node in subject.each(ast.ToolDecl))
    yield from ((node, "struct", node.name) for node in subject.each(ast.StructDecl))
    yield from ((node, "enum", node.name) for node in subject.each(ast.EnumDecl))
    yield from ((node, "interface", node.name) for node in subject.each(ast.InterfaceDecl))
    yield from ((node, "type", node.name) for node in subject.each(ast.TypeDecl))


def snake_case(name: str) -> str:
    """``name`` in lower-case words; itself where it has no capital letter."""
    return name if name.lower() == name else _HUMP.sub("_", name).lower()


def pascal_case(name: str) -> str:
    """``name`` with a capital letter for each word, leading underscores kept."""
    bare = name.lstrip("_")
    words = "".join(word[:1].upper() + word[1:] for word in bare.split("_"))
    return name[: len(name) - len(bare)] + words
