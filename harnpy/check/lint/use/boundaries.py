"""What comes from outside and is taken as it comes; what people answer and nobody reads. Spec: 03 §15."""

from __future__ import annotations

from collections.abc import Iterator

from harnpy.check.lint.rule import Remark, remark
from harnpy.check.lint.subject import Subject
from harnpy.check.strict import BOUNDARIES
from harnpy.syntax import ast

_VALIDATED = frozenset({"schema", "output_schema"})


def untyped_dict_access(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Member, ast.Index):
        call = node.object
        if not isinstance(call, ast.Call) or call.name not in BOUNDARIES or not subject.means_builtin(call):
            continue
        if not _has_schema(call):
            way = "property" if isinstance(node, ast.Member) else "subscript"
            yield remark(
                node,
                f"{way} access on raw `{call.name}()` result without schema validation",
                help="validate it with `schema_expect`, or bind it to a variable with a type first",
            )


def _has_schema(call: ast.Call) -> bool:
    """Whether a model's answer is validated before the program gets it."""
    options = call.args[2] if len(call.args) > 2 else None
    if not call.name.startswith("llm_") or options is None:
        return False
    if not isinstance(options, ast.Dict):
        return True  # who knows
    return any(
        not isinstance(entry, ast.DictEntry)
        or entry.computed
        or (isinstance(entry.key, ast.Str) and entry.key.value in _VALIDATED)
        for entry in options.entries
    )


def prompt_injection_risk(subject: Subject) -> Iterator[Remark]:
    for call in subject.each(ast.Call):
        system = call.args[1] if call.name == "llm_call" and len(call.args) > 1 else None
        if isinstance(system, ast.Interp) and subject.means_builtin(call):
            yield remark(
                system,
                "interpolated data in the `llm_call` system prompt can smuggle untrusted instructions",
                help="keep the system prompt constant, and put data into the prompt",
            )


def unhandled_approval_result(subject: Subject) -> Iterator[Remark]:
    for call in subject.each(ast.Call):
        if call.name == "request_approval" and subject.is_discarded(call):
            yield remark(
                call,
                f"approval result from `{call.name}` is discarded",
                help="bind it, and go on only where it is approved",
            )
