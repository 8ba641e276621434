"""Secrets that are written out: whoever reads the program has them. Spec: 03 §16, 08 §17."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.text.secrets.literals import kind_of_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.findings import Findings

#: The shortest secret that is looked for.
_SHORTEST = 16


def check_text(node: ast.Str, findings: Findings) -> None:
    """Report a string that holds a secret. The message doesn't show it, and neither does the excerpt."""
    if len(node.value) >= _SHORTEST:
        kind = kind_of_secret(node.value)
        if kind is not None:
            findings.warn(
                "literal-secret",
                node,
                f"a secret is written in the program: {kind}",
                help='read it with env("NAME"), or from a file that isn\'t shared',
            )
