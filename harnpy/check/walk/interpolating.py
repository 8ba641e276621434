"""The fix for text joined with something else by `+`: interpolation. Spec: 03 §8.1."""

from __future__ import annotations

from harnpy.syntax.diagnostic import Edit, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax import ast


def interpolation(node: ast.Binary, source: str) -> Fix | None:
    """``"a" + n`` as ``"a${n}"``; None unless one side is a plain literal and the other fits into it."""
    left, right = source[node.left.start : node.left.end], source[node.right.start : node.right.end]
    if _is_quoted(node.left, left) and _fits(right):
        text = f'{left[:-1]}${{{right}}}"'
    elif _is_quoted(node.right, right) and _fits(left):
        text = f'"${{{left}}}{right[1:]}'
    else:
        return None
    return Fix([Edit(node.start, node.end, text)])


def _is_quoted(node: ast.Node, text: str) -> bool:
    from harnpy.syntax import ast

    quoted = isinstance(node, ast.Str) and not node.raw and text.startswith('"') and text.endswith('"')
    return quoted and not text.startswith('"""')


def _fits(text: str) -> bool:
    return bool(text) and "}" not in text and '"' not in text
