"""Checking the result of a stage against its node's `verify`. Spec: 08 §7.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.graph.graph_types import Node


def verified(node: Node, result: Dict) -> Dict:
    """Return the outcome of the checks that the node's `verify` asks for."""
    verify = node["verify"] or {}
    checks = []
    text, status = verify.get("assert_text"), verify.get("expect_status")
    if text is not None:
        ok = str(text) in (result["visible_text"] or "")
        checks.append({"kind": "assert_text", "ok": ok, "expected": text})
    if status is not None:
        actual = result.get("exit_status")
        checks.append({"kind": "expect_status", "ok": actual == status, "expected": status, "actual": actual})
    if not checks:
        return {"kind": "none", "ok": True}
    return {"kind": "composite", "ok": all(check["ok"] for check in checks), "checks": checks}
