"""Changing the tree of a file before its names are resolved: how a tool puts probes into a program."""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Preparation(Protocol):
        """What is done to every file of a program; `BuiltinTable.preparation`."""

        def key(self, source: str, file: str) -> str:
            """Return a text that differs whenever the same source is changed differently."""

        def changed(self, program: ast.Program, source: str, file: str) -> ast.Program:
            """Return the tree to run."""


#: The builtin that probes call; who puts probes into programs registers it. No program can write its name.
PROBE = "0probe"


def probe(start: int, *point: ast.Node) -> ast.Call:
    """A statement that reports that it is reached; ``point`` says where it is."""
    return ast.Call(start, start, PROBE, (), point)


def is_probe(node: ast.Node) -> bool:
    return isinstance(node, ast.Call) and node.name == PROBE
