"""Builtins that the language has and harnpy has not: a program that names one is told so. Spec: 02 §9.3.

Loaded when a name means nothing.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from harnpy import shipped

if TYPE_CHECKING:
    from collections.abc import Container

#: What does something like it here.
_KIN = {
    "connector_call": "host_call",
    "event_log_emit": "event_log.emit",
    "metrics_inc": "atomic_add",
    "project_scan_native": "scan_directory",
    "project_scan_tree_native": "scan_directory",
    "project_walk_tree_native": "walk_dir",
    "secret_get": "env",
    "self_review": "sub_agent_run",
    "trigger_fire": "daemon_trigger",
    "trigger_register": "daemon_spawn",
    "vision_ocr": "llm_call",
}


def absence(name: str, present: Container[str]) -> str | None:
    """Return what to say of a builtin of the specification that is not ``present``; None for other names."""
    if name in present or name not in _specified():
        return None
    kin = _KIN.get(name)
    return f"not in harnpy; its nearest kin is `{kin}`" if kin in present else "not in harnpy"


@cache
def _specified() -> frozenset[str]:
    """Return the names in the specification's list of builtins."""
    _columns, *lines = shipped.read("spec", "builtins.tsv", in_checkout="docs/spec").splitlines()
    return frozenset(line.split("\t")[1] for line in lines)
