"""The type checker: everything that is wrong with a program, as far as it can be known. Spec: 03.

Each top-level item is checked by itself against the `Environment` of its file; what it says depends on
nothing else. So after an edit inside one item only that one is checked again.
"""

from __future__ import annotations

import sys

from harnpy.check.agents.agents import Agents
from harnpy.check.environment import Environment
from harnpy.check.findings import Findings
from harnpy.check.walk.table import ABOVE, VISITS
from harnpy.check.walk.visitor import Walk
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.check.findings import Finding
    from harnpy.check.knowledge import Imported, Knowledge

#: A few frames for each of the levels that the parser accepts. CPython 3.11 keeps them on the heap.
_FRAMES = 60_000


def check_program(
    program: ast.Program,
    source: str,
    knowledge: Knowledge,
    imported: Imported | None,
    *,
    strict: bool = False,
) -> list[Finding]:
    """Everything to say of ``program``, in the order in which the specification discovers it.

    ``imported`` is None when the program imports nothing; in a REPL it is one that isn't ``complete``.
    """
    environment = Environment(program.items, knowledge, imported, source, strict)
    found = [finding for item in program.items for finding in check_item(item, environment)]
    return ordered([*found, *check_together(environment)])


def check_item(item: ast.Node, environment: Environment) -> list[Finding]:
    """What there is to say of one of the items of ``environment``; nothing is remembered between calls."""
    if sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)
    walk = Walk(environment, item, VISITS, ABOVE)
    if isinstance(item, ast.Import):
        walk.agents.imported(item)
    walk.visit(item)
    walk.agents.item(item)
    if environment.strict:
        from harnpy.check.strict import check_strict

        check_strict(item, walk.findings, environment.functions)
    return walk.deprecations.found + walk.reported.found


def check_together(environment: Environment) -> list[Finding]:
    """What there is to say of the items as a sequence, beside what is said of each; takes little time."""
    findings = Findings()
    Agents(environment.knowledge, findings).items(environment.items)
    return findings.found


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of several items as they are discovered: calls of deprecated functions first (03 §1)."""
    return sorted(findings, key=lambda finding: finding.code != "deprecated")
