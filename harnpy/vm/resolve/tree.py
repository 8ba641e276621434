"""Questions about a syntax tree that need nothing but the tree, and the probes that tools put into one."""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    class Preparation(Protocol):
        """A change of every file of a program before it is compiled; `BuiltinTable.preparation`."""

        def key(self, source: str, file: str) -> str:
            """Return a text that differs whenever the same source is changed differently."""

        def changed(self, program: ast.Program, source: str, file: str) -> ast.Program:
            """Return the tree to run."""


def entry_pipeline(program: ast.Program, name: str | None = None) -> ast.Pipeline | None:
    """The pipeline called ``name``, else ``default``, else the first. Spec: 02 §10.1."""
    pipelines = [item for item in program.items if isinstance(item, ast.Pipeline)]
    for wanted in (name,) if name else ("default",):
        for pipeline in pipelines:
            if pipeline.name == wanted:
                return pipeline
    return pipelines[0] if pipelines and name is None else None


def is_test(pipeline: ast.Pipeline) -> bool:
    """Return True if `harnpy test` runs a pipeline. Spec: 09 §3.1."""
    return pipeline.name.startswith("test_") or any(attribute.name == "test" for attribute in pipeline.attrs)


def signature(params: Sequence[ast.Param]) -> tuple[tuple[str, ...], bool]:
    """The names of a function's parameters, and whether the last takes the rest of the arguments."""
    return tuple(param.name for param in params), bool(params) and params[-1].rest


#: Below these a pipe's `_` is seen; in anything else it is not a placeholder (02 §4.3).
PLACEHOLDER_PARENTS = (
    ast.Call,
    ast.MethodCall,
    ast.Binary,
    ast.Unary,
    ast.List,
    ast.Member,
    ast.Index,
    ast.Spread,
)


def placeholders(node: ast.Node) -> Iterator[ast.Name]:
    """The `_` names in ``node`` that stand for the piped value."""
    if isinstance(node, ast.Name):
        if node.name == "_":
            yield node
    elif isinstance(node, PLACEHOLDER_PARENTS) and not getattr(node, "optional", False):
        for child in node.children():
            yield from placeholders(child)


# Changing the tree of a file before its names are resolved: how a tool puts probes into a program.


#: The builtin that probes call; who puts probes into programs registers it. No program can write its name.
PROBE = "0probe"


def probe(start: int, *point: ast.Node) -> ast.Call:
    """A statement that reports that it is reached; ``point`` says where it is."""
    return ast.Call(start, start, PROBE, (), point)


def is_probe(node: ast.Node) -> bool:
    return isinstance(node, ast.Call) and node.name == PROBE
