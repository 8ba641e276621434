"""Blocks that surely leave: what stands behind them is reached by the other way alone. Spec: 03 §6."""

from __future__ import annotations

from harnpy.syntax import ast

_LEAVING = ast.Return | ast.Throw | ast.Break | ast.Continue


def exits(block: ast.Block) -> bool:
    """Whether the block *definitely exits*. Loops, `match`, `guard` and `try` don't count."""
    return any(statement_exits(statement) for statement in block.statements)


def statement_exits(statement: ast.Node) -> bool:
    """Whether nothing behind the statement is reached: it leaves, or is an `if` whose branches all do."""
    if not isinstance(statement, ast.If):
        return isinstance(statement, _LEAVING)
    otherwise = statement.otherwise
    if otherwise is None or not exits(statement.then):
        return False
    return exits(otherwise) if isinstance(otherwise, ast.Block) else statement_exits(otherwise)
