"""The shapes of a run record and its parts: every key, its type, what stands there by default. Spec: 08 §8.1.

Texts that a record always has default to the empty text, all else to nil or to an empty value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.reading.strict import read_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.reading.dicts import Dict

    Shape = Mapping[str, "Field"]


class Field(NamedTuple):
    """``part`` is the shape of a dict, or of each dict in a list."""

    kind: str
    default: Any = None
    part: Shape | None = None

    def blank(self) -> Any:
        """The default, for the caller to keep; a part that is always there has all its keys."""
        if self.part is not None and isinstance(self.default, dict):
            return made(self.part, {})
        return type(self.default)() if isinstance(self.default, dict | list) else self.default


_TEXT, _MAYBE_TEXT, _TEXTS = Field("string", ""), Field("string"), Field("list of strings", [])
_INT, _MAYBE_INT, _NUMBER, _FLAG = Field("int", 0), Field("int"), Field("number", 0.0), Field("bool", False)
_DICT, _MAYBE_DICT, _LIST, _ANY = Field("dict", {}), Field("dict"), Field("list", []), Field("any")


def _list_of(shape: Shape) -> Field:
    return Field("list", [], shape)


def _all(field: Field, names: str) -> Shape:
    return dict.fromkeys(names.split(), field)


USAGE: Shape = {
    **_all(_INT, "input_tokens output_tokens total_duration_ms call_count"),
    "total_cost": _NUMBER,
    "models": _TEXTS,
}
EXECUTION: Shape = {
    **_all(_MAYBE_TEXT, "cwd source_dir adapter repo_path worktree_path branch base_ref cleanup"),
    "env": _DICT,
}
ATTEMPT: Shape = {
    "attempt": Field("int", 1),
    **_all(_TEXT, "status outcome started_at"),
    **_all(_MAYBE_TEXT, "branch error finished_at"),
    "verification": _ANY,
}
STAGE: Shape = {
    **_all(_TEXT, "id node_id kind status outcome started_at"),
    **_all(_MAYBE_TEXT, "branch finished_at visible_text private_reasoning"),
    **_all(_ANY, "transcript verification"),
    "usage": Field("dict", None, USAGE),
    "artifacts": _LIST,
    **_all(_TEXTS, "consumed_artifact_ids produced_artifact_ids"),
    "attempts": _list_of(ATTEMPT),
    "metadata": _DICT,
}
TRANSITION: Shape = {
    **_all(_TEXT, "id to_node_id timestamp"),
    **_all(_MAYBE_TEXT, "from_stage_id from_node_id branch"),
    **_all(_TEXTS, "consumed_artifact_ids produced_artifact_ids"),
}
CHECKPOINT: Shape = {
    **_all(_TEXT, "id persisted_at reason"),
    **_all(_TEXTS, "ready_nodes completed_nodes"),
    "last_stage_id": _MAYBE_TEXT,
}
CHILD_RUN: Shape = {
    **_all(_TEXT, "worker_id worker_name task status started_at"),
    **_all(
        _MAYBE_TEXT,
        "parent_stage_id session_id parent_session_id mutation_scope finished_at run_id run_path "
        "snapshot_path",
    ),
    **_all(_ANY, "approval_policy request provenance"),
    "execution": Field("dict", None, EXECUTION),
}
QUESTION: Shape = {**_all(_TEXT, "request_id prompt agent asked_at"), "trace_id": _MAYBE_TEXT}

CLARIFICATION: Shape = {
    "expected_question": _MAYBE_TEXT,
    **_all(_TEXTS, "accepted_questions required_terms forbidden_terms"),
    **_all(_MAYBE_INT, "min_questions max_questions"),
}
ASSERTION: Shape = {
    **_all(_TEXT, "node_id expected_status expected_outcome"),
    **_all(_MAYBE_TEXT, "expected_branch visible_text_contains"),
    "required_artifact_kinds": _TEXTS,
}
FIXTURE: Shape = {
    "_type": Field("string", "replay_fixture"),
    **_all(_TEXT, "id source_run_id workflow_id created_at expected_status"),
    "workflow_name": _MAYBE_TEXT,
    "eval_kind": Field("string", "replay"),
    "clarifying_question": Field("dict", None, CLARIFICATION),
    "stage_assertions": _list_of(ASSERTION),
}

_SPAN: Shape = {
    **_all(_ANY, "span_id parent_id"),
    **_all(_TEXT, "kind name"),
    **_all(_INT, "start_ms duration_ms"),
    "metadata": _DICT,
}
RECORDING: Shape = {
    **_all(_TEXT, "tool_name tool_use_id args_hash timestamp"),
    "result": _ANY,
    "is_rejected": _FLAG,
    **_all(_INT, "duration_ms iteration"),
}

RUN: Shape = {
    "_type": Field("string", "run_record"),
    **_all(_TEXT, "id workflow_id task status started_at"),
    **_all(_MAYBE_TEXT, "workflow_name finished_at parent_run_id root_run_id persisted_path"),
    "stages": _list_of(STAGE),
    "transitions": _list_of(TRANSITION),
    "checkpoints": _list_of(CHECKPOINT),
    **_all(_TEXTS, "pending_nodes completed_nodes"),
    "child_runs": _list_of(CHILD_RUN),
    **_all(_LIST, "artifacts handoffs"),
    "policy": _DICT,
    "execution": Field("dict", None, EXECUTION),
    "transcript": _ANY,
    "usage": Field("dict", None, USAGE),
    "replay_fixture": Field("dict", None, FIXTURE),
    "observability": _MAYBE_DICT,
    "trace_spans": _list_of(_SPAN),
    "tool_recordings": _list_of(RECORDING),
    "hitl_questions": _list_of(QUESTION),
    "metadata": _DICT,
}


def made(shape: Shape, fields: Mapping[str, Any]) -> Dict:
    """A part that the caller knows to be right: its ``fields``, and the defaults of the rest."""
    unknown = fields.keys() - shape.keys()
    if unknown:
        raise TypeError(f"no such field: {', '.join(sorted(unknown))}")
    return {key: fields[key] if key in fields else field.blank() for key, field in shape.items()}


def read(shape: Shape, given: Any, path: str = "") -> Dict:
    """A part with every key; unknown ones are dropped. Raises `MisuseError` for a wrong type, by its path."""
    fields = read_fields(given, {key: field.kind for key, field in shape.items()}, path)
    return {
        key: _filled(field, fields[key], f"{path}.{key}" if path else key) for key, field in shape.items()
    }


def _filled(field: Field, value: Any, path: str) -> Any:
    if value is None:
        return field.blank()
    if field.part is None:
        return value
    if isinstance(value, list):
        return [read(field.part, item, f"{path}[{index}]") for index, item in enumerate(value)]
    return read(field.part, value, path)
