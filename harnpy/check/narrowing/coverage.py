"""An `unknown` of which some kinds were tested and others forgotten, where a path ends. Spec: 03 §10.2."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from harnpy.check.findings import Findings
    from harnpy.syntax.ast import Node

#: The kinds that `type_of` can be asked for in a condition that narrows.
KINDS = ("int", "string", "float", "bool", "nil", "list", "dict", "closure", "bytes")


def check_coverage(
    site: str, node: Node, unknowns: Iterable[tuple[str, Set[str]]], findings: Findings
) -> None:
    """Warn at ``node``, which ends the path, of each variable whose remaining kinds nobody has thought of.

    ``site`` is ``throw``, ``unreachable()`` or ``f()``; ``unknowns`` are the variables that are `unknown`
    there, and the kinds that are ruled out for each.
    """
    for name, ruled_out in unknowns:
        left = [kind for kind in KINDS if kind not in ruled_out]
        if ruled_out and left:
            findings.warn(
                "unnarrowed-unknown",
                node,
                f"`{site}` reached but `{name}: unknown` was not fully narrowed"
                f" — uncovered concrete type(s): {', '.join(left)}",
            )
