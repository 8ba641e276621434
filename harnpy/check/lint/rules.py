"""The lint rules by name, and the linter, which applies to a file every rule that its settings ask for.

Spec: 03 §15.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from harnpy.check.findings import Finding
from harnpy.check.lint import bindings, discarded, flow, idioms, style, traps, unhandled
from harnpy.check.lint.settings import Settings
from harnpy.check.lint.subject import Rule, Subject
from harnpy.syntax import ast

if TYPE_CHECKING:
    from harnpy.check.knowledge import Imported, Knowledge

RULES = (
    Rule("unused-variable", bindings.unused_variable),
    Rule("unused-pattern-binding", bindings.unused_pattern_binding),
    Rule("unused-parameter", bindings.unused_parameter),
    Rule("unused-import", bindings.unused_import),
    Rule("unused-function", bindings.unused_function),
    Rule("unused-type", bindings.unused_type),
    Rule("mutable-never-reassigned", bindings.mutable_never_reassigned),
    Rule("shadow-variable", bindings.shadow_variable),
    Rule("comparison-to-bool", idioms.comparison_to_bool),
    Rule("pointless-comparison", idioms.pointless_comparison),
    Rule("redundant-nil-ternary", idioms.redundant_nil_ternary),
    Rule("invalid-binary-op-literal", idioms.invalid_binary_op_literal),
    Rule("unnecessary-cast", idioms.unnecessary_cast),
    Rule("eager-collection-conversion", idioms.eager_collection_conversion),
    Rule("redundant-clone", idioms.redundant_clone),
    Rule("empty-block", idioms.empty_block),
    Rule("duplicate-match-arm", idioms.duplicate_match_arm),
    Rule("naming-convention", style.naming_convention),
    Rule("missing-harndoc", style.missing_harndoc),
    Rule("legacy-doc-comment", style.legacy_doc_comment),
    Rule("require-file-header", style.require_file_header, default=False),
    Rule("blank-line-between-items", style.blank_line_between_items, default=False),
    Rule("trailing-comma", style.trailing_comma),
    Rule("import-order", style.import_order),
    Rule("undefined-function", bindings.undefined_function),
    Rule("dead-code-after-return", flow.dead_code_after_return),
    Rule("break-outside-loop", flow.break_outside_loop, severity="error"),
    Rule("let-then-return", flow.let_then_return),
    Rule("unnecessary-else-return", flow.unnecessary_else_return),
    Rule("cyclomatic-complexity", flow.cyclomatic_complexity),
    Rule("pipeline-return-type", flow.pipeline_return_type),
    Rule("assert-outside-test", flow.assert_outside_test),
    Rule("require-in-test", flow.require_in_test),
    Rule("untyped-dict-access", unhandled.untyped_dict_access),
    Rule("prompt-injection-risk", unhandled.prompt_injection_risk),
    Rule("unhandled-approval-result", unhandled.unhandled_approval_result),
    Rule("unhandled-result", unhandled.unhandled_result),
    Rule("needless-await", unhandled.needless_await),
    Rule("rebuilt-list", unhandled.rebuilt_list),
    Rule("session-never-closed", unhandled.session_never_closed),
    Rule("discarded-value", discarded.discarded_value),
    Rule("missing-return", discarded.missing_return),
    Rule("lost-assignment", discarded.lost_assignment),
    Rule("lost-task", discarded.lost_task),
    Rule("skipped-statement", discarded.skipped_statement),
    Rule("absent-field", traps.absent_field),
    Rule("number-as-key", traps.number_as_key),
    Rule("ignored-argument", traps.ignored_argument),
    Rule("implicit-separator", traps.implicit_separator),
    Rule("pointless-length", traps.pointless_length),
    Rule("loop-over-nothing", traps.loop_over_nothing),
    Rule("logic-as-default", traps.logic_as_default),
    Rule("never-equal", traps.never_equal),
    Rule("truncated-division", traps.truncated_division),
    Rule("integer-overflow", traps.integer_overflow),
    Rule("deep-glob", traps.deep_glob),
    Rule("unmocked-clock", traps.unmocked_clock),
)


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
    subject = Subject(source, program, file, knowledge, imported, settings or Settings(), consumed)
    return in_order(chain.from_iterable(by_rule(subject)))


def by_rule(subject: Subject) -> Iterator[list[Finding]]:
    """Yield the findings of one rule after the other."""
    for rule in RULES:
        if subject.settings.wants(rule.id, rule.default):
            yield [
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
                for remark in rule.check(subject)
            ]


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings of several rules in the order of the text."""
    return sorted(findings, key=lambda finding: finding.start)
