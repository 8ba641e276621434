"""Attributes that mean nothing. Spec: 03 §8.4."""

from __future__ import annotations

import pytest

from harnpy.check.findings import Findings
from harnpy.check.walk.attributes import check_attributes
from harnpy.syntax.parser import parse

FN, TOOL, PIPELINE, STRUCT = "fn f() { }", "tool t() { }", "pipeline p() { }", "struct S { a: int }"
_MODE = "Flow `@invariant` requires exactly one of `@deterministic` (default) or `@semantic`"
_PROVENANCE = (
    "Flow `@invariant` is missing `@archivist(...)` provenance"
    " (evidence, confidence, source_date, coverage_examples)"
)
_ONE_MODE = (
    "`@deterministic` and `@semantic` are mutually exclusive; a Flow predicate is one mode or the other"
)
_EVIDENCE = "`@archivist(...)` should declare `evidence: [...]` so predicates can be audited"
_SHARE = "`@archivist(confidence: ...)` must be a float in [0.0, 1.0]"
_NAMED = "`@archivist(...)` arguments must be named (e.g. `evidence: [...], confidence: 0.9`)"
_ARGUMENT = (
    "unknown `@archivist` argument `why`;"
    ' expected one of ["evidence", "confidence", "source_date", "coverage_examples"]'
)
_FLOW = "@deterministic @invariant @archivist"

ROWS: list[tuple[str, str, list[str]]] = [
    ("@deprecated", FN, []),
    ('@deprecated(since: "1", use: "g")', STRUCT, []),
    ("@complexity(allow)", FN, []),
    ("@test", PIPELINE, []),
    ("@acp_tool @acp_skill", FN, []),
    ('@invariant("fs.writes")', FN, []),
    ('@invariant("fs.writes")', TOOL, []),
    ('@invariant("fs.writes")', PIPELINE, []),
    ('@semantic @invariant @retroactive @archivist(evidence: ["a"], confidence: 0.5)', FN, []),
    ('@deterministic @invariant @archivist(evidence: ["a"], confidence: 1)', FN, []),
    ("@flaky", FN, ["unknown attribute `@flaky`"]),
    ("@test", FN, ["`@test` only applies to pipeline declarations"]),
    ("@acp_tool", PIPELINE, ["`@acp_tool` only applies to function declarations"]),
    ("@acp_skill", TOOL, ["`@acp_skill` only applies to function declarations"]),
    ("@deterministic", PIPELINE, ["`@deterministic` only applies to function declarations"]),
    ("@semantic", STRUCT, ["`@semantic` only applies to function declarations"]),
    (
        '@invariant("x")',
        STRUCT,
        ["`@invariant` only applies to function, tool, or pipeline declarations"],
    ),
    ("@deterministic @semantic", FN, [_ONE_MODE]),
    ("@invariant", FN, [_MODE, _PROVENANCE]),
    ("@invariant @semantic", FN, [_PROVENANCE]),
    ('@invariant @archivist(evidence: ["a"])', FN, [_MODE]),
    ("@retroactive", FN, ["`@retroactive` only applies to Flow predicates marked with `@invariant`"]),
    (
        '@archivist(evidence: ["a"])',
        FN,
        ["`@archivist(...)` only applies to Flow predicates marked with `@invariant`"],
    ),
    (f'{_FLOW}("a")', FN, [_NAMED, _EVIDENCE]),
    (f"{_FLOW}(confidence: 0.5)", FN, [_EVIDENCE]),
    (f'{_FLOW}(evidence: ["a"], why: 1)', FN, [_ARGUMENT]),
    (f'{_FLOW}(evidence: ["a"], confidence: 1.5)', FN, [_SHARE]),
    (f'{_FLOW}(evidence: ["a"], confidence: "high")', FN, [_SHARE]),
]


@pytest.mark.parametrize(("attributes", "declaration", "expected"), ROWS)
def test_warnings(attributes: str, declaration: str, expected: list[str]) -> None:
    (item,) = parse("\n".join([*attributes.replace(" @", "\n@").split("\n"), declaration])).items
    findings = Findings()
    check_attributes(item, findings)
    assert [found.message for found in findings.found] == expected
    assert {found.severity for found in findings.found} <= {"warning"}


def test_the_nearest_known_one_is_named() -> None:
    (item,) = parse(f"@deprecate\n{FN}").items
    findings = Findings()
    check_attributes(item, findings)
    assert [found.help for found in findings.found] == ["did you mean `@deprecated`?"]
