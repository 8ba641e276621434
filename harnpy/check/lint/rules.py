"""The rules, one a line: what it is called, what finds it. Spec: 03 §15."""

from __future__ import annotations

from harnpy.check.lint.rule import Rule
from harnpy.check.lint.use import bindings

RULES = (
    Rule("unused-variable", bindings.unused_variable),
    Rule("unused-pattern-binding", bindings.unused_pattern_binding),
    Rule("unused-parameter", bindings.unused_parameter),
    Rule("mutable-never-reassigned", bindings.mutable_never_reassigned),
    Rule("shadow-variable", bindings.shadow_variable),
)
