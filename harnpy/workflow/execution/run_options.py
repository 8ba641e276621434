"""The options of a run. Spec: 08 §7.1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.approval import read_approval_policy
from harnpy.agent.skills.active import read_skills
from harnpy.reading.strict import errors_after
from harnpy.session.transcripts import is_transcript
from harnpy.workflow.execution.trigger import read_trigger_event
from harnpy.workflow.shapes import Field, Shape, all_of, made, read

if TYPE_CHECKING:
    from harnpy.agent.rules.approval import ApprovalPolicy
    from harnpy.reading.dicts import Dict
    from harnpy.reading.lenient import Options
    from harnpy.workflow.execution.replay import Replay
    from harnpy.workflow.graph.graph_types import Graph, Node
    from harnpy.workflow.records.record_types import Audit, ExecutionRecord


CALLER = "workflow_execute"
DETERMINISTIC = "deterministic"
_STEPS_A_NODE = 4

_TEXTS = ("persist_path", "resume_path", "replay_path", "replay_mode", "mutation_scope")
_LINEAGE = ("parent_run_id", "root_run_id", "parent_worker_id", "parent_stage_id", "replay_of_event_id")
_MODEL_TEXTS = ("provider", "model", "model_tier")
_TEXT = Field("string")
_EXECUTION: Shape[ExecutionRecord] = Shape(
    {
        **all_of(_TEXT, "cwd source_dir"),
        "env": Field("dict of strings", {}),
        **all_of(_TEXT, "adapter repo_path worktree_path branch base_ref cleanup"),
    }
)
_AUDIT: Shape[Audit] = Shape(
    {
        **all_of(_TEXT, "session_id parent_session_id run_id worker_id execution_kind mutation_scope"),
        "approval_policy": Field("dict"),
    }
)
_WORKTREE = "worktree"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """``mode`` and ``model`` are for nodes that don't set them; ``lineage`` holds the given ids of the run's
    parents and of the event that it replays."""

    max_steps: int | None = None
    persist_path: str | None = None
    resume_path: str | None = None
    resume_run: Any = None
    replay_path: str | None = None
    replay_run: Any = None
    replay_mode: str | None = None
    mode: str | None = None
    model: Dict = field(default_factory=dict)
    skills: Any = None
    skill_match: Dict | None = None
    audit: Audit = field(default_factory=lambda: made(_AUDIT, {}))
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
        policy: Any = {**node["model_policy"]}
        policy |= {key: value for key, value in self.model.items() if policy[key] in (None, "")}
        return {**node, "mode": node["mode"] or self.mode, "model_policy": policy}


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
        return read(_EXECUTION, given)


def _scope(execution: ExecutionRecord | None) -> str:
    return "apply_worktree" if execution is not None and execution["adapter"] == _WORKTREE else "read_only"


def _read_audit(given: Any, scope: str, approval: Dict | None) -> Audit:
    """Return the requested mutation session, as far as it is set."""
    with errors_after(f"{CALLER}: audit parse error: "):
        audit = read(_AUDIT, {} if given is None else given)
    audit["mutation_scope"] = audit["mutation_scope"] or scope
    audit["approval_policy"] = audit["approval_policy"] or approval
    return audit
