"""Imports of `std/…` modules that aren't there. Spec: 06 §3, 03 §16."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit, Fix
from harnpy.text.spell import nearest_at_run_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.findings import Findings
    from harnpy.check.knowledge import Knowledge

_BUNDLED = "std/"


def check_import(item: ast.Import, knowledge: Knowledge, findings: Findings) -> None:
    """Report a `std/…` name that no module has."""
    if item.path.startswith(_BUNDLED):
        known = knowledge.modules()
        if item.path not in known:
            _report(item, nearest_at_run_time(item.path, known), findings)


def _report(item: ast.Import, near: str | None, findings: Findings) -> None:
    # The path, in its quotes, is the last thing of an import.
    start = item.end - len(item.path) - 2
    fix = Fix([Edit(start + 1, item.end - 1, near)], safe=False) if near else None
    findings.error(
        "unknown-module",
        item,
        f"Unknown stdlib module: {item.path}",
        help=f'did you mean "{near}"?' if near else "docs/modules.md lists the modules",
        fix=fix,
    )
