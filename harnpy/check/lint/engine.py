"""Lint one file: every rule that is wanted, findings in source order. Spec: 03 §15."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from harnpy.check.findings import Finding
from harnpy.check.lint.rules import RULES
from harnpy.check.lint.settings import Settings
from harnpy.check.lint.subject import Subject
from harnpy.syntax import ast

if TYPE_CHECKING:
    from harnpy.check.knowledge import Imported, Knowledge


def lint(
    source: str,
    program: ast.Program,
    file: str,
    knowledge: Knowledge | None = None,
    imported: Imported | None = None,
    settings: Settings | None = None,
    consumed: Collection[str] = (),
) -> list[Finding]:
    """The findings of one file; their code is the rule, their label `lint[rule]`.

    ``consumed`` are the names of this file that others import by name; without ``knowledge`` of the
    builtins, or ``imported``, nothing is said that depends on them.
    """
    settings = settings or Settings()
    subject = Subject(source, program, file, knowledge, imported, settings, consumed)
    found = [
        Finding(
            rule.id,
            rule.severity,
            remark.message,
            remark.start,
            remark.end,
            help=remark.help,
            places=remark.places,
            fix=remark.fix,
            label=f"lint[{rule.id}]",
        )
        for rule in RULES
        if settings.wants(rule.id, rule.default)
        for remark in rule.check(subject)
    ]
    return sorted(found, key=lambda finding: finding.start)
