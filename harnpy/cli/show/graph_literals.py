"""The workflow graphs that a program spells out, read off its syntax tree: nothing is run.

Graphs are mostly written down as dicts, and a picture needs their nodes and edges only. What a graph computes
beside those, such as a prompt, is left out of it; a graph with computed nodes or edges can't be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from harnpy.reading.dicts import Dict
from harnpy.syntax import ast
from harnpy.syntax.ast import Node

_MAKERS = ("workflow_graph", "workflow")
_COMPUTED: Any = object()


class GraphLiteral(NamedTuple):
    """``names`` are what people may call it, the best one first; ``graph`` as `workflow_graph` takes it, None
    where its nodes or edges are computed, so that only a run of the program knows them."""

    names: tuple[str, ...]
    graph: Dict | None


def graphs_in(program: ast.Program) -> list[GraphLiteral]:
    """The arguments of all calls of `workflow_graph`, in the order of the text."""
    reader = _Reader(program)
    return [reader.graph(call, variable) for call, variable in _calls(program)]


def _calls(node: Node, variable: str | None = None) -> Iterator[tuple[ast.Call, str | None]]:
    if isinstance(node, ast.Call) and node.name in _MAKERS and len(node.args) == 1:
        yield node, variable
    value, name = None, None
    if isinstance(node, ast.Let) and isinstance(node.target, ast.NamePattern):
        value, name = node.value, node.target.name
    for child in node.children():
        yield from _calls(child, name if child is value else None)


class _Reader:
    """Knows the values of a program's names that are bound exactly once."""

    def __init__(self, program: ast.Program) -> None:
        self._bound: dict[str, Node | None] = {}
        self._bind(program)

    def _bind(self, node: Node) -> None:
        if isinstance(node, ast.Let) and isinstance(node.target, ast.NamePattern):
            name = node.target.name
            known = name in self._bound or node.mutable
            self._bound[name] = None if known else node.value
        for child in node.children():
            self._bind(child)

    def graph(self, call: ast.Call, variable: str | None) -> GraphLiteral:
        """The graph that a call makes."""
        given = self._value(call.args[0])
        if not isinstance(given, dict):
            return GraphLiteral(_names(variable), None)
        names = _names(given.get("name"), variable, given.get("id"))
        if any(given.get(key) is _COMPUTED for key in ("nodes", "edges", "entry")):
            return GraphLiteral(names, None)
        graph = _known(given)
        if isinstance(given.get("nodes"), dict):
            graph["nodes"] = {id: _known_dict(node) for id, node in given["nodes"].items()}
        return GraphLiteral(names, graph)

    def _value(self, node: Node) -> Any:
        """The value of an expression, or `_COMPUTED`."""
        if isinstance(node, ast.Str | ast.Int | ast.Float | ast.Bool):
            return node.value
        if isinstance(node, ast.Nil):
            return None
        if isinstance(node, ast.List):
            items = [self._value(item) for item in node.items]
            return _COMPUTED if any(item is _COMPUTED for item in items) else items
        if isinstance(node, ast.Dict):
            return self._dict(node)
        if isinstance(node, ast.Call) and node.name in _MAKERS and len(node.args) == 1:
            return self._value(node.args[0])
        if isinstance(node, ast.Name):
            value = self._bound.get(node.name)
            if value is not None:
                self._bound[node.name] = None  # bound to itself: it has no value
                read = self._value(value)
                self._bound[node.name] = value
                return read
        return _COMPUTED

    def _dict(self, node: ast.Dict) -> Any:
        read: Dict = {}
        for entry in node.entries:
            if isinstance(entry, ast.Spread):
                inner = self._value(entry.value)
                if not isinstance(inner, dict):
                    return _COMPUTED
                read |= inner
            elif isinstance(entry, ast.DictEntry):
                key = self._value(entry.key)
                if not isinstance(key, str):
                    return _COMPUTED
                read[key] = self._value(entry.value)
        return read


def _names(*given: Any) -> tuple[str, ...]:
    return tuple(name for name in given if isinstance(name, str) and name)


def _known(given: Dict) -> Dict:
    """The value without its computed parts, at any depth."""
    return {
        key: _known(value) if isinstance(value, dict) else value
        for key, value in given.items()
        if value is not _COMPUTED
    }


def _known_dict(given: Any) -> Any:
    """A node, of which perhaps only its existence is known."""
    if given is _COMPUTED:
        return {}
    return _known(given) if isinstance(given, dict) else given
