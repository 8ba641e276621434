"""Which names a piece of syntax declares. Spec: 02 §10.4, §12, §13."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeGuard

from harnpy.syntax import ast


def declared_by(statement: ast.Node) -> list[str]:
    """The names that a statement declares in its block, and that functions before it may use."""
    if isinstance(statement, ast.Let):
        return [name for _, name in bound_names(statement.target)]
    if isinstance(statement, ast.FnDecl | ast.ToolDecl | ast.SkillDecl | ast.EvalPack):
        return [statement.name]
    return []


def bound_names(pattern: ast.Node) -> Iterator[tuple[ast.Node, str]]:
    """The names of a `let` or `for` pattern, each with the node that has it."""
    match pattern:
        case ast.NamePattern(name=name):
            yield pattern, name
        case ast.PairPattern(first=first, second=second):
            yield pattern, first
            yield pattern, second
        case ast.DictPattern(entries=entries, rest=rest) | ast.ListPattern(entries=entries, rest=rest):
            for entry in entries:
                yield entry, entry.name
            if rest:
                yield pattern, rest


def match_bindings(
    pattern: ast.Node, enums: Collection[str]
) -> tuple[Sequence[ast.Node], Sequence[ast.Name]]:
    """The parts of an arm's only pattern that are compared, and those that are bound (02 §12)."""
    if isinstance(pattern, ast.Name):
        return (), [pattern]
    if any(_is_computed(part) for part in pattern.children()):
        return [pattern], ()
    parts: Sequence[ast.Node] = [pattern]
    compared: list[ast.Node] = []
    if isinstance(pattern, ast.Dict):
        parts = [entry.value for entry in pattern.entries if isinstance(entry, ast.DictEntry)]
    elif isinstance(pattern, ast.List):
        parts = pattern.items
    elif _is_variant(pattern, enums):
        compared, parts = [pattern.object], pattern.args
    compared += (part for part in parts if not isinstance(part, ast.Name))
    return compared, [part for part in parts if isinstance(part, ast.Name)]


def _is_variant(pattern: ast.Node, enums: Collection[str]) -> TypeGuard[ast.MethodCall]:
    """Whether a pattern is ``Enum.Variant(…)``."""
    if not isinstance(pattern, ast.MethodCall) or pattern.optional:
        return False
    return isinstance(pattern.object, ast.Name) and pattern.object.name in enums


def _is_computed(part: ast.Node) -> bool:
    return isinstance(part, ast.Spread) or (isinstance(part, ast.DictEntry) and part.computed)


def parents_first(pipelines: Sequence[ast.Pipeline]) -> list[ast.Pipeline]:
    """The pipelines of a file in their order, but each after the one that it extends."""
    by_name = {pipeline.name: pipeline for pipeline in pipelines}
    ordered: dict[int, ast.Pipeline] = {}
    for pipeline in pipelines:
        chain = [pipeline]
        while (parent := by_name.get(chain[-1].extends or "")) and all(parent is not one for one in chain):
            chain.append(parent)
        ordered.update((id(one), one) for one in reversed(chain) if id(one) not in ordered)
    return list(ordered.values())
