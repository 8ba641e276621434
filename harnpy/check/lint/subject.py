"""One file, as the rules look at it: its text, tree, tokens, comments and names, each worked out once."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from harnpy.check.lint.settings import Settings
from harnpy.check.lint.uses import Uses
from harnpy.syntax import ast
from harnpy.syntax.comments import Comment, comments_of
from harnpy.syntax.lexer import Tokens, lex

if TYPE_CHECKING:
    from harnpy.check.knowledge import Imported, Knowledge

_N = TypeVar("_N", bound=ast.Node)


class Subject:
    """``consumed`` are the names of this file that other files import by name."""

    def __init__(
        self,
        source: str,
        program: ast.Program,
        file: str,
        knowledge: Knowledge | None,
        imported: Imported | None,
        settings: Settings,
        consumed: Collection[str] = (),
    ) -> None:
        self.source = source
        self.program = program
        self.file = file
        self.knowledge = knowledge
        self.imported = imported
        self.settings = settings
        self.consumed = consumed
        self._parents: dict[int, ast.Node] = {}
        self._by_type: dict[type[ast.Node], list[ast.Node]] = {}
        stack: list[ast.Node] = [program]
        while stack:
            node = stack.pop()
            self._by_type.setdefault(type(node), []).append(node)
            below = list(node.children())
            for child in below:
                self._parents[id(child)] = node
            stack.extend(reversed(below))

    def each(self, *types: type[_N]) -> Iterator[_N]:
        """The nodes of these types, in source order for each type."""
        for type_ in types:
            yield from self._by_type.get(type_, ())  # type: ignore[misc]

    def parent(self, node: ast.Node) -> ast.Node | None:
        return self._parents.get(id(node))

    def above(self, node: ast.Node) -> Iterator[ast.Node]:
        """What encloses ``node``, from the inside out."""
        parent = self.parent(node)
        while parent is not None:
            yield parent
            parent = self.parent(parent)

    def text(self, node: ast.Node) -> str:
        return self.source[node.start : node.end]

    def name_span(self, node: ast.Node, name: str) -> tuple[int, int]:
        """Where ``node``, which declares ``name``, has it."""
        attrs = getattr(node, "attrs", ())
        start = attrs[-1].end if attrs else node.start
        found = list(_words(self.source, name, start, node.end))
        if (
            isinstance(node, ast.PatternEntry)
            and node.key == name
            and len(found) > 1
            and node.default is None
        ):
            return found[1]
        return found[0] if found else (node.start, node.end)

    @cached_property
    def uses(self) -> Uses:
        """The names of the file. An imported type may be an enum, so its variants pass for patterns."""
        enums = {"Result", *(node.name for node in self.each(ast.EnumDecl))}
        return Uses(self.program, enums.union(self.imported.types if self.imported else ()))

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens; those of an interpolated string are one."""
        return lex(self.source, 0, len(self.source))

    @cached_property
    def comments(self) -> tuple[Comment, ...]:
        """The comments, those in interpolations included."""
        return comments_of(self.source)

    @cached_property
    def is_library(self) -> bool:
        """Whether the file only declares: then others may use whatever it exports (06 §2)."""
        return all(isinstance(item, _DECLARATIONS) for item in self.program.items)


_DECLARATIONS = (
    ast.Import,
    ast.Let,
    ast.FnDecl,
    ast.ToolDecl,
    ast.SkillDecl,
    ast.EvalPack,
    ast.StructDecl,
    ast.EnumDecl,
    ast.InterfaceDecl,
    ast.ImplDecl,
    ast.TypeDecl,
)


def _words(source: str, name: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where ``name`` stands as a word in ``source[start:end]``."""
    for found in re.compile(rf"(?<!\w){re.escape(name)}(?!\w)").finditer(source, start, end):
        yield found.span()
