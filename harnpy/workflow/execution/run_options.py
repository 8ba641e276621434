"""The options of a run: what triggered it, and which recorded run it replays or resumes.

Spec: 08 §7.1, §7.8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harnpy.agent.active_skills import read_skills
from harnpy.agent.rules.permissions import read_approval_policy
from harnpy.faults import MisuseError
from harnpy.formats.dicts import errors_after, read_fields
from harnpy.formats.display import type_name
from harnpy.formats.shapes import made, read
from harnpy.session.transcript_operations import is_transcript
from harnpy.workflow.records.record_shapes import Audit, ExecutionRecord
from harnpy.world.clock import is_rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.agent.rules.permissions import ApprovalPolicy
    from harnpy.formats.dicts import Dict, Options
    from harnpy.workflow.graph_shapes import Graph, Node
    from harnpy.workflow.records.record_shapes import RunRecord, StageRecord

# Replaying a run: its recorded stages in order, without models and tools. Spec: 08 §7.8.


class Replay:
    """The stages of the record ``run`` that are still to come."""

    def __init__(self, run: RunRecord) -> None:
        self.source_id: str = run["id"]
        self.max_steps = _max_steps(run["metadata"])
        self._stages = run["stages"]
        self._next = 0

    def __bool__(self) -> bool:
        return self._next < len(self._stages)

    def take(self, node_id: str) -> StageRecord:
        """Return the recorded stage of a node. Raise `MisuseError` when another one comes next, or none."""
        if not self:
            raise MisuseError(f"workflow replay exhausted before node {node_id}")
        stage = self._stages[self._next]
        if stage["node_id"] != node_id:
            raise MisuseError(
                f"workflow replay mismatch: expected node {node_id}, next replay stage is {stage['node_id']}"
            )
        self._next += 1
        return stage


def _max_steps(metadata: Dict) -> int | None:
    """Return the recorded step limit; None if it is unknown, or if the run was resumed, which renews it."""
    steps = metadata.get("max_steps")
    known = type(steps) is int and steps > 0 and metadata.get("resumed") is not True
    return steps if known else None


# The event that triggered a run, as its record keeps it. Spec: 08 §7.1, `trigger_event`.


_EVENT_TEXTS = ("id", "provider", "kind", "dedupe_key", "trace_id")
_OPTIONAL = {"tenant_id": str, "batch": list, "raw_body": str}
_PAYLOAD_TEXTS = {"cron": ("cron_id", "schedule", "tick_at")}
_STATES = ("verified", "unsigned", "failed")
_WORDS: dict[type[Any], str] = {str: "string", dict: "dict", list: "list"}


def read_trigger_event(given: Any) -> Dict | None:
    """Return the event, checked, or None for nil. Raise `MisuseError`."""
    if given is None:
        return None
    event = _dict(given, "")
    for key in _EVENT_TEXTS:
        _require(event, key, str)
    _time(_require(event, "received_at", str), "received_at")
    if _required(event, "occurred_at") is not None:
        _time(_require(event, "occurred_at", str), "occurred_at")
    for key, kind in _OPTIONAL.items():
        if event.get(key) is not None:
            _require(event, key, kind)
    for name, value in _require(event, "headers", dict).items():
        _expect(value, str, f"headers.{name}")
    _check_payload(_require(event, "provider_payload", dict))
    _check_signature(_require(event, "signature_status", dict))
    return event


def _check_payload(payload: Dict) -> None:
    place = "provider_payload"
    provider = _require(payload, "provider", str, place)
    for key in _PAYLOAD_TEXTS.get(provider, ()):
        _require(payload, key, str, place)
    _required(payload, "raw", place)


def _check_signature(status: Dict) -> None:
    place = "signature_status"
    state = _require(status, "state", str, place)
    if state not in _STATES:
        raise _problem(f"{place}.state", f"expected {_either(_STATES)}, got {state}")
    if state == "failed":
        _require(status, "reason", str, place)
    elif status.get("reason") is not None:
        _expect(status["reason"], str, f"{place}.reason")


def _either(words: Iterable[str]) -> str:
    return " | ".join(words)


def _dict(value: Any, place: str) -> Dict:
    _expect(value, dict, place)
    found: Dict = value
    return found


def _require(given: Dict, key: str, kind: type[Any], place: str = "") -> Any:
    value = _required(given, key, place)
    _expect(value, kind, _join(place, key))
    return value


def _required(given: Dict, key: str, place: str = "") -> Any:
    if key not in given:
        raise _problem(_join(place, key), "missing")
    return given[key]


def _expect(value: Any, kind: type[Any], place: str) -> None:
    if not isinstance(value, kind):
        raise _problem(place, f"expected {_WORDS[kind]}, got {type_name(value)}")


def _time(text: str, place: str) -> None:
    if not is_rfc3339(text):
        raise _problem(place, f"'{text}' is no RFC 3339 time")


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _problem(place: str, reason: str) -> MisuseError:
    where = f"{place}: " if place else ""
    return MisuseError(f"workflow_execute: trigger_event parse error: {where}{reason}")


CALLER = "workflow_execute"
DETERMINISTIC = "deterministic"
_STEPS_A_NODE = 4

_TEXTS = ("persist_path", "resume_path", "replay_path", "replay_mode", "mutation_scope")
_LINEAGE = ("parent_run_id", "root_run_id", "parent_worker_id", "parent_stage_id", "replay_of_event_id")
_MODEL_TEXTS = ("provider", "model", "model_tier")
_WORKTREE = "worktree"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """``mode`` and ``model`` are for nodes that don't set them; ``lineage`` holds the given ids of the run's
    parents and of the event that it replays."""

    max_steps: int | None = None
    persist_path: str | None = None
    resume_path: str | None = None
    resume_run: Any = None
    restart: bool = False
    replay_path: str | None = None
    replay_run: Any = None
    replay_mode: str | None = None
    mode: str | None = None
    model: Dict = field(default_factory=dict)
    skills: Any = None
    skill_match: Dict | None = None
    audit: Audit = field(default_factory=lambda: made(Audit, {}))
    approval: ApprovalPolicy | None = None
    execution: ExecutionRecord | None = None
    transcript: Dict | None = None
    lineage: dict[str, str] = field(default_factory=dict)
    delegated: bool | None = None
    trigger_event: Dict | None = None

    def steps(self, graph: Graph, replay: Replay | None) -> int:
        """Return how many turns the run may take; a replay gets as many as the replayed run."""
        if self.max_steps is not None:
            return max(1, self.max_steps)
        recorded = None if replay is None else replay.max_steps
        return recorded or max(1, _STEPS_A_NODE * len(graph["nodes"]))

    def filled(self, node: Node) -> Node:
        """Return the node with the run's values for what it doesn't set."""
        policy: Any = node["model_policy"]
        unset = {key: value for key, value in self.model.items() if policy[key] in (None, "")}
        if any(value is not policy[key] for key, value in unset.items()):
            policy = {**policy, **unset}
        mode = node["mode"] or self.mode
        if policy is node["model_policy"] and mode is node["mode"]:
            return node
        return {**node, "mode": mode, "model_policy": policy}


def read_options(given: Options) -> RunOptions:
    """Return the options. Raise `MisuseError`."""
    texts = {key: _text(given, key) for key in _TEXTS}
    model = {key: _text(given, key) for key in _MODEL_TEXTS}
    model["model_tier"] = model["model_tier"] or _text(given, "tier")
    execution = _read_execution(given.value("execution"))
    scope = texts.pop("mutation_scope") or _scope(execution)
    delegated, transcript = given.value("delegated"), given.value("transcript")
    skills = given.value("skills")
    read_skills(skills, CALLER)
    return RunOptions(
        max_steps=given.integer("max_steps"),
        resume_run=given.value("resume_run"),
        restart=bool(given.value("restart")),
        replay_run=given.value("replay_run"),
        mode=_text(given, "mode"),
        model={
            **model,
            "temperature": given.number("temperature"),
            "max_tokens": given.integer("max_tokens"),
        },
        skills=skills,
        skill_match=given.mapping("skill_match"),
        audit=_read_audit(given.value("audit"), scope, given.mapping("approval_policy")),
        approval=read_approval_policy(given.value("approval_policy")),
        execution=execution,
        transcript=transcript if is_transcript(transcript) else None,
        lineage={key: text for key in _LINEAGE if (text := _text(given, key)) is not None},
        delegated=None if delegated is None else bool(delegated),
        trigger_event=read_trigger_event(given.value("trigger_event")),
        **texts,
    )


def _text(given: Options, key: str) -> str | None:
    return given.string(key) or None


def _read_execution(given: Any) -> ExecutionRecord | None:
    if given is None:
        return None
    with errors_after("workflow execution parse error: "):
        read_fields(given, {"env": "dict of strings"}, "")
        return read(ExecutionRecord, given)


def _scope(execution: ExecutionRecord | None) -> str:
    return "apply_worktree" if execution is not None and execution["adapter"] == _WORKTREE else "read_only"


def _read_audit(given: Any, scope: str, approval: Dict | None) -> Audit:
    """Return the requested mutation session, as far as it is set."""
    with errors_after(f"{CALLER}: audit parse error: "):
        audit = read(Audit, {} if given is None else given)
        read_approval_policy(audit["approval_policy"])
    audit["mutation_scope"] = audit["mutation_scope"] or scope
    audit["approval_policy"] = audit["approval_policy"] or approval
    return audit
