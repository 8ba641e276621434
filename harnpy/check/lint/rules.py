"""The rules, one a line: what it is called, what finds it. Spec: 03 §15."""

from __future__ import annotations

from harnpy.check.lint.rule import Rule
from harnpy.check.lint.style import (
    arithmetic,
    blocks,
    comparisons,
    conversions,
    documentation,
    layout,
    names,
)
from harnpy.check.lint.use import bindings

RULES = (
    Rule("unused-variable", bindings.unused_variable),
    Rule("unused-pattern-binding", bindings.unused_pattern_binding),
    Rule("unused-parameter", bindings.unused_parameter),
    Rule("mutable-never-reassigned", bindings.mutable_never_reassigned),
    Rule("shadow-variable", bindings.shadow_variable),
    Rule("comparison-to-bool", comparisons.comparison_to_bool),
    Rule("pointless-comparison", comparisons.pointless_comparison),
    Rule("redundant-nil-ternary", comparisons.redundant_nil_ternary),
    Rule("invalid-binary-op-literal", arithmetic.invalid_binary_op_literal),
    Rule("unnecessary-cast", conversions.unnecessary_cast),
    Rule("eager-collection-conversion", conversions.eager_collection_conversion),
    Rule("redundant-clone", conversions.redundant_clone),
    Rule("empty-block", blocks.empty_block),
    Rule("duplicate-match-arm", blocks.duplicate_match_arm),
    Rule("naming-convention", names.naming_convention),
    Rule("missing-harndoc", documentation.missing_harndoc),
    Rule("legacy-doc-comment", documentation.legacy_doc_comment),
    Rule("require-file-header", documentation.require_file_header, default=False),
    Rule("blank-line-between-items", layout.blank_line_between_items),
    Rule("trailing-comma", layout.trailing_comma),
    Rule("import-order", layout.import_order),
)
