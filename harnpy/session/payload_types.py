"""The payloads of events, by type: `Event.payload` reads them, `drafts` writes them.

Keys with a default are left out when they have it. Texts unless another type is given; ``usage`` are tokens
by name. Spec: 10 §A1.2, §C3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct, to_builtins

from harnpy.session import events as kinds
from harnpy.session.events import EventDraft

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.session.events import Event

Json = dict[str, Any]


class PayloadType(Struct, frozen=True, omit_defaults=True):
    """The payload of events of type ``TYPE``."""

    TYPE: ClassVar[str]

    def draft(self) -> EventDraft:
        """Return what appends it."""
        return EventDraft(self.TYPE, to_builtins(self))


class Message(PayloadType, frozen=True, omit_defaults=True):
    """A message. ``content`` is a text or a list of parts. Spec: 10 §A1.3."""

    TYPE: ClassVar[str] = kinds.MESSAGE_ADDED
    role: str
    content: Any = None
    parts: list[Json] = []
    reasoning: str | None = None
    thinking_blocks: list[Json] = []
    name: str | None = None
    tool_id: str | None = None
    tool_call_id: str | None = None
    tool_calls: list[Json] = []
    cache_control: Json | None = None


class ContextAdded(PayloadType, frozen=True, omit_defaults=True):
    """Context for the model that nobody has said."""

    TYPE: ClassVar[str] = kinds.CONTEXT_ADDED
    content: str
    kind: str = ""
    placement: str = ""


class BranchSummary(PayloadType, frozen=True, omit_defaults=True):
    """The summary of a branch that the conversation came back from."""

    TYPE: ClassVar[str] = kinds.BRANCH_SUMMARY
    summary: str
    from_event_id: str = ""
    details: Any = None
    from_hook: bool = False


class LeafMoved(PayloadType, frozen=True, omit_defaults=True):
    """A move to the event that the conversation goes on from; without a target, to its begin."""

    TYPE: ClassVar[str] = kinds.LEAF_MOVED
    target_event_id: str | None = None
    reason: str | None = None


class Handoff(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.HANDOFF
    target_agent_id: str
    reason: str = ""
    context: str = ""


class ExternalInput(PayloadType, frozen=True, omit_defaults=True):
    """A question to a person; ``status`` is ``pending`` or ``received``."""

    TYPE: ClassVar[str] = kinds.EXTERNAL_INPUT
    prompt: str
    status: str
    input: Any = None
    request_id: str | None = None


class TurnStarted(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.TURN_STARTED
    agent_id: str = ""
    key: str | None = None


class TurnCompleted(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.TURN_COMPLETED
    agent_id: str = ""
    steps: int = 0
    usage: Json | None = None
    turn_stop_reason: str | None = None
    error: str | None = None
    text: str | None = None


class StepStarted(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.STEP_STARTED
    agent_id: str = ""
    model: Any = None
    prompt_cache: Json | None = None
    purpose: str | None = None
    iteration: int | None = None
    provider: str | None = None
    prefill: Any = None


class StepCompleted(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.STEP_COMPLETED
    agent_id: str = ""
    usage: Json | None = None
    error: str | None = None
    purpose: str | None = None
    iteration: int | None = None
    reply: Json | None = None


class ToolStarted(PayloadType, frozen=True, omit_defaults=True):
    """``args`` is JSON text, ``id`` the call's."""

    TYPE: ClassVar[str] = kinds.TOOL_STARTED
    tool: str = ""
    args: str = "{}"
    id: str | None = None
    idempotency_key: str | None = None
    parallel: bool = False


class ToolCompleted(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.TOOL_COMPLETED
    tool: str = ""
    id: str | None = None
    output: Any = None
    error: str | None = None
    idempotency_key: str | None = None
    parts: list[Json] = []
    rejected: bool = False
    error_category: str | None = None
    duration_ms: int | None = None
    details: Json = {}


class ToolOutputDelta(PayloadType, frozen=True, omit_defaults=True):
    """``snapshot``: ``delta`` replaces all earlier output of the call."""

    TYPE: ClassVar[str] = kinds.TOOL_OUTPUT_DELTA
    tool: str = ""
    id: str | None = None
    delta: str = ""
    snapshot: bool = False


class ApprovalRequested(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.APPROVAL_REQUESTED
    id: str
    session_id: str = ""
    tool: str = ""
    args: Any = None
    category: str | None = None
    operation: str | None = None
    resource: str | None = None
    metadata: Json = {}
    kind: str | None = None
    reviewers: Any = None


class ApprovalResolved(PayloadType, frozen=True, omit_defaults=True):
    """``decision`` is ``allow`` or ``deny``."""

    TYPE: ClassVar[str] = kinds.APPROVAL_RESOLVED
    id: str
    decision: str
    reason: str | None = None
    automated: bool = False
    signatures: Any = None
    reviewers: Any = None


class ApprovalCanceled(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.APPROVAL_CANCELED
    id: str
    tool: str = ""
    reason: str | None = None


class WaitStarted(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.WAIT_STARTED
    reason: str | None = None
    external_id: str | None = None
    request_id: str | None = None


class WaitResolved(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.WAIT_RESOLVED
    reason: str | None = None
    external_id: str | None = None
    request_id: str | None = None


class EscalationRetried(PayloadType, frozen=True, omit_defaults=True):
    """``scope`` is ``model``, ``tool``, ``overflow_recovery`` …"""

    TYPE: ClassVar[str] = kinds.ESCALATION_RETRIED
    agent_id: str = ""
    scope: str = ""
    attempt: int = 0
    error: str = ""
    target: str | None = None


class CompactionStarted(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.COMPACTION_STARTED
    strategy: str
    max_tokens: int | None = None
    threshold_pct: float | None = None
    current_tokens: int | None = None
    max_length: int | None = None
    current_length: int | None = None


class CompactionTriggered(PayloadType, frozen=True, omit_defaults=True):
    """A compaction: the window from here on, as entries or messages, then what follows the cut-off (10
    §A1.7)."""

    TYPE: ClassVar[str] = kinds.COMPACTION_TRIGGERED
    strategy: str
    max_tokens: int | None = None
    threshold_pct: float | None = None
    current_tokens: int | None = None
    cutoff_event_id: str | None = None
    entries: list[Json] | None = None
    messages: list[Json] | None = None
    read_files: list[str] = []
    modified_files: list[str] = []
    note: Json | None = None


class ProjectionSnapshotted(CompactionTriggered, frozen=True, omit_defaults=True):
    """A checkpoint of what a model is shown, in Canto's form. harnpy's own are read in it, too."""

    TYPE: ClassVar[str] = kinds.PROJECTION_SNAPSHOTTED

    @staticmethod
    def data_of(event: Event) -> Json:
        """Return an event's data in this form."""
        from harnpy.session.projections import spelled_out

        return spelled_out(event)


class HistoryReplaced(PayloadType, frozen=True, omit_defaults=True):
    """The messages that window and history restart with."""

    TYPE: ClassVar[str] = kinds.HISTORY_REPLACED
    messages: list[Json]
    reason: str


class Child(PayloadType, frozen=True, omit_defaults=True):
    """The fields that all events about a child run have."""

    child_id: str = ""
    child_session_id: str = ""


class ChildRequested(Child, frozen=True, omit_defaults=True, kw_only=True):
    """``mode`` is ``fork``, ``handoff`` or ``fresh``."""

    TYPE: ClassVar[str] = kinds.CHILD_REQUESTED
    agent_id: str = ""
    mode: str = ""
    task: str = ""
    parent_event_id: str | None = None
    context: str | None = None
    shared_prefix_key: str | None = None
    metadata: Json = {}
    lease: str | None = None


class ChildStarted(Child, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.CHILD_STARTED
    agent_id: str = ""
    metadata: Json = {}


class ChildProgressed(Child, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.CHILD_PROGRESSED
    status: str | None = None
    message: str | None = None
    metadata: Json = {}


class ChildBlocked(Child, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.CHILD_BLOCKED
    reason: str = ""
    metadata: Json = {}


class ChildCompleted(Child, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.CHILD_COMPLETED
    summary: Any = None
    artifact_ids: list[str] = []
    episode_id: str | None = None
    usage: Json | None = None
    metadata: Json = {}


class ChildFailed(Child, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.CHILD_FAILED
    error: str = ""
    metadata: Json = {}


class ChildCanceled(Child, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.CHILD_CANCELED
    reason: str | None = None
    metadata: Json = {}


class ChildMerged(Child, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.CHILD_MERGED
    artifact_ids: list[str] = []
    note: str | None = None
    metadata: Json = {}


class ArtifactRecorded(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.ARTIFACT_RECORDED
    artifact: Json
    child_id: str | None = None
    session_id: str | None = None


class ModelChanged(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.MODEL_CHANGED
    model: str
    provider_id: str | None = None


class ThinkingChanged(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.THINKING_CHANGED
    level: str


class ToolsChanged(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.TOOLS_CHANGED
    names: list[str]


class SessionCreated(PayloadType, frozen=True, omit_defaults=True):
    """Always a log's first event; the session writes it itself."""

    TYPE: ClassVar[str] = kinds.SESSION_CREATED
    depth: int = 0
    agent_name: str = ""
    agent_label: str = ""
    definition: Json | None = None
    parent_session_id: str | None = None
    fork_point_event_id: str | None = None
    fork_point_seq: int | None = None
    branch_label: str = ""
    fork_reason: str = ""
    auto_resize: bool = True
    saves_before: int = 0


class RegisterSet(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.REGISTER_SET
    key: str
    value: Any
    version: int
    source: str | None = None
    reason: str | None = None
    metadata: Json | None = None


class StatusChanged(PayloadType, frozen=True, omit_defaults=True, rename={"from_": "from"}):
    TYPE: ClassVar[str] = kinds.STATUS_CHANGED
    from_: str
    to: str
    reason: str | None = None


class ActionExecuted(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.ACTION_EXECUTED
    action: str
    before_revision: int
    before_status: str
    after_status: str
    duration_ms: int
    idempotency_key: str | None = None


class StoreRepaired(PayloadType, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = kinds.STORE_REPAIRED
    dropped_bytes: int = 0
    dropped_events: int = 0
    detail: str = ""


def by_type() -> dict[str, type[PayloadType]]:
    """Return the payloads of the known types, by type."""
    return {kind.TYPE: kind for kind in _below(PayloadType) if "TYPE" in vars(kind)}


def _below(kind: type[PayloadType]) -> Iterator[type[PayloadType]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
