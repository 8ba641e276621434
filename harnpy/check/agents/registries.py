"""Tools that are defined twice in one registry: the second takes the place of the first. Spec: 07 §4.1."""

from __future__ import annotations

from harnpy.check.findings import Place
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.findings import Findings

    #: The tools of a registry, by name: where each was named first.
    Tools = dict[str, ast.Node]

_DEFINE = "tool_define"


def check_block(statements: Sequence[ast.Node], findings: Findings) -> None:
    """Report names that a block gives to two tools of the registry in one variable."""
    registries: dict[str, Tools] = {}
    for statement in statements:
        name, value = _bound(statement)
        if name is not None and type(value) is ast.Call and value.name == _DEFINE:
            registries[name] = _defined(value, registries, findings)
        elif name is not None:
            registries.pop(name, None)
        elif any(_has_blocks(child) for child in (statement, *statement.children())):
            # What is defined in there may not be.
            registries.clear()


def _defined(call: ast.Call, registries: dict[str, Tools], findings: Findings) -> Tools:
    """Return the tools of the registry that a call of `tool_define` makes."""
    first, second = [*call.args[:2], None, None][:2]
    tools: Tools = {}
    if type(first) is ast.Name:
        tools = {**registries.get(first.name, {})}
    elif type(first) is ast.Call and first.name == _DEFINE:
        tools = _defined(first, registries, findings)
    if type(second) is ast.Str:
        if second.value in tools:
            before = tools[second.value]
            findings.warn(
                "duplicate-tool",
                second,
                f"tool '{second.value}' is in the registry already: this definition replaces it",
                places=[Place("defined here first", before.start, before.end)],
            )
        else:
            tools[second.value] = second
    return tools


def _bound(statement: ast.Node) -> tuple[str | None, ast.Node | None]:
    """Return the variable that a statement gives a value to, and the value."""
    if type(statement) is ast.Let and type(statement.target) is ast.NamePattern:
        return statement.target.name, statement.value
    if type(statement) is ast.Assign and statement.op == "=" and type(statement.target) is ast.Name:
        return statement.target.name, statement.value
    return None, None


def _has_blocks(node: ast.Node) -> bool:
    return type(node) is ast.Block
