"""`Worker`: an agent that runs in the background, task after task, and its state in a file.

What it is asked for and what it carries from one task to the next are read here. Functions don't outlive a
program, so a snapshot leaves them out: tools come back without their handlers. Spec: 07 §11.2–11.3, 08 §13.1.
"""

from __future__ import annotations

import os.path
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harnpy.agent.rules.command_policy import COMMAND_POLICY_TYPE as COMMAND_POLICY
from harnpy.agent.rules.command_policy import with_hooks_as_texts
from harnpy.agent.rules.policy import Policy, policy_dict, read_policy
from harnpy.agent.workplace import read_worktree
from harnpy.faults import MisuseError, paced
from harnpy.formats.dicts import errors_after
from harnpy.formats.json import compact_json, parse_json, pretty_json
from harnpy.formats.manifest import require_inside
from harnpy.session import compaction
from harnpy.session.compaction import CompactPolicy, merged_summary
from harnpy.session.pairs import Pairs
from harnpy.session.transcript_operations import Transcripts
from harnpy.world.files import plain_reason, private_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.agent.context import AgentContext
    from harnpy.agent.tasks import Activity, Bell
    from harnpy.formats.dicts import Dict
    from harnpy.world import World

_LISTS = {
    "research_questions": "questions",
    "action_items": "actions",
    "workflow_stages": "stages",
    "verification_steps": "verification",
}


def requested_policies(policy: Any, tools: Any, caller: str) -> list[Policy]:
    """Return the ceilings in a policy and in the shorthand `tools`, a list of names.

    Raises `MisuseError`, which names ``caller``.
    """
    asked = []
    if policy is not None:
        with errors_after(f"{caller}: "):
            asked.append(read_policy(policy))
    if tools is None:
        return asked
    if not isinstance(tools, list) or not all(isinstance(name, str) for name in tools):
        raise MisuseError(f"{caller}: tools shorthand must be a list of strings")
    if not tools:
        raise MisuseError(f"{caller}: tools shorthand must include at least one tool name")
    return [*asked, Policy(tools=tuple(tools))]


def read_request(task: str, system: str | None, given: Dict) -> Dict:
    """Return what a worker was asked for; the lists of ``given`` also have shorter names."""
    lists = {key: _list(given, key) or _list(given, alias) for key, alias in _LISTS.items()}
    payload = given.get("request")
    if payload is None:
        payload = {key: items for key, items in lists.items() if items}
    return {"task": task, "system": system, "payload": payload, **lists}


def _list(given: Dict, key: str) -> list[Any]:
    value = given.get(key)
    return value if isinstance(value, list) else []


def read_execution(given: Any, caller: str) -> Dict:
    """Return where a worker works: `{cwd?, env?, worktree?}`. Raises `MisuseError`."""
    if given is None:
        return {}
    name = f"{caller}: execution"
    if not isinstance(given, dict):
        raise MisuseError(f"{name} must be a dict")
    cwd, env = given.get("cwd"), given.get("env")
    if cwd is not None and not isinstance(cwd, str):
        raise MisuseError(f"{name}.cwd must be a string")
    if env is not None and not _is_environment(env):
        raise MisuseError(f"{name}.env must be a dict of strings")
    if given.get("worktree") is None:
        return given
    return {**given, "worktree": read_worktree(given["worktree"], caller)}


def _is_environment(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def mutation_session(
    given: Any, worker_id: str, session_id: str, caller: str, outer: Dict | None = None
) -> Dict:
    """Return a worker's mutation session; its id defaults to ``session_id``. Spec: 08 §8.1.

    ``outer`` is that of the workflow that started the worker.
    """
    if given is not None and not isinstance(given, dict):
        raise MisuseError(f"{caller}: audit parse error: expected a dict")
    outer = outer or {}
    inherited = {
        "parent_session_id": outer.get("session_id"),
        "run_id": outer.get("run_id"),
        "mutation_scope": outer.get("mutation_scope", "read_only"),
        "approval_policy": outer.get("approval_policy"),
    }
    made = {**inherited, "execution_kind": "worker", **(given or {})}
    return {**made, "session_id": made.get("session_id") or session_id, "worker_id": worker_id}


CARRY_INHERIT, CARRY_FORK, CARRY_RESET, CARRY_COMPACT = TRANSCRIPT_MODES = (
    "inherit", "fork", "reset", "compact"
)  # fmt: skip
CARRY_NONE = "none"
ARTIFACT_MODES = (CARRY_INHERIT, CARRY_NONE)
#: How many messages `compact` keeps.
_KEPT = 2


@dataclass(frozen=True, slots=True)
class Carry:
    """``transcript_mode`` says how a restarted worker's conversation continues, ``artifact_mode`` whether it
    starts from its artifacts; ``context_policy`` selects among those."""

    transcript_mode: str = CARRY_INHERIT
    artifact_mode: str = CARRY_INHERIT
    context_policy: Dict | None = None
    resume_workflow: bool = True
    persist_state: bool = True
    retriggerable: bool = False

    def as_dict(self) -> Dict:
        return asdict(self)


def read_carry(given: Any, caller: str) -> Carry:
    """Return the settings in a dict. Raises `MisuseError`, which names ``caller``."""
    if given is None:
        return Carry()
    if not isinstance(given, dict):
        raise MisuseError(f"{caller}: carry must be a dict")
    transcript, artifacts = given.get("transcript"), given.get("artifacts")
    if isinstance(transcript, dict):
        transcript = transcript.get("mode")
    policy = given.get("context_policy")
    if isinstance(artifacts, dict):
        policy, artifacts = artifacts if policy is None else policy, None
    if policy is not None and not isinstance(policy, dict):
        raise MisuseError(f"{caller}: carry.context_policy must be a dict")
    return Carry(
        _mode(given, "transcript_mode", transcript, TRANSCRIPT_MODES, caller),
        _mode(given, "artifact_mode", artifacts, ARTIFACT_MODES, caller),
        policy,
        _flag(given, "resume_workflow", True),
        _flag(given, "persist_state", True),
        _flag(given, "retriggerable", False),
    )


def carried_policies(given: Any, caller: str) -> list[Policy]:
    """Return the ceilings among the settings."""
    settings = given if isinstance(given, dict) else {}
    return requested_policies(settings.get("policy"), settings.get("tools"), caller)


def _mode(given: Dict, key: str, alias: Any, modes: Sequence[str], caller: str) -> str:
    mode = alias if given.get(key) is None else given[key]
    if mode is None:
        return CARRY_INHERIT
    if mode not in modes:
        shown = mode if isinstance(mode, str) else compact_json(mode)
        raise MisuseError(f"{caller}: carry.{key} must be one of {', '.join(modes)}; got `{shown}`")
    return str(mode)


def _flag(given: Dict, key: str, default: bool) -> bool:
    value = given.get(key)
    return default if value is None else bool(value)


# Transcripts.


def forked_transcript(transcript: Dict, id: str) -> Dict:
    """Return a copy under another id that records its origin."""
    metadata = {**(transcript.get("metadata") or {}), "parent_transcript_id": transcript.get("id")}
    return {**transcript, "id": id, "metadata": metadata}


def compacted_transcript(transcript: Dict, world: World) -> Dict:
    """Return the transcript with its last two messages, and a summary of those before them.

    A tool call and its result stay together, so there may be one more message.
    """
    messages = transcript["messages"]
    if len(messages) <= _KEPT:
        return transcript
    split = Pairs(messages).whole_cut(len(messages) - _KEPT, 0)
    if split == 0:
        return transcript
    text = compaction.write("truncate", messages[:split], split, CompactPolicy())
    summary = merged_summary(transcript.get("summary"), text)
    return Transcripts(world).with_messages(transcript, messages[split:], summary=summary)


RUNNING, COMPLETED, AWAITING = "running", "completed", "awaiting"
FAILED, CANCELLED, INTERRUPTED = "failed", "cancelled", "interrupted"
STATUSES = (RUNNING, COMPLETED, AWAITING, FAILED, CANCELLED, INTERRUPTED)

STAGE, WORKFLOW, SUB_AGENT = "stage", "workflow", "sub_agent"
DELEGATED_STAGE = "delegated_stage"


_ORIGIN = (
    "mode", "parent_worker_id", "parent_stage_id", "session_id", "parent_session_id", "snapshot_path",
)  # fmt: skip
#: What programs see of a worker as it is.
_SHOWN = (
    "id", "name", "task", "mode", "status", "created_at", "started_at", "finished_at", "awaiting_started_at",
    "request", "result", "error", "parent_worker_id", "parent_stage_id", "child_run_id", "child_run_path",
    "execution", "snapshot_path", "audit",
)  # fmt: skip


class Outcome(NamedTuple):
    """The outcome of a run: ``result`` is for the caller, the next run continues from the rest."""

    result: Dict
    transcript: Dict | None
    artifacts: list[Any]


class Job(Protocol):
    """The work of a worker: it carries out one task after another."""

    @property
    def session_id(self) -> str | None:
        """The session that it works in, if any."""

    def run(self, worker: Worker) -> Outcome:
        """Carry out the worker's task, which isn't the first one if its history has others."""


@dataclass(slots=True)
class Worker:
    """``request`` and ``history`` keep what was asked: the first task with its lists, and all tasks.

    ``config`` is what its job is made of. ``artifacts`` and ``transcript`` are those of the last run.
    ``failure`` is the last run's error, ``failure_raised`` whether a waiting caller has received it,
    ``merged`` whether somebody has taken its outcome.
    """

    id: str
    name: str
    task: str
    mode: str
    request: Dict
    config: Dict
    carry: Carry
    context: AgentContext
    created_at: str
    bell: Bell
    audit: Dict
    execution: Dict = field(default_factory=dict)
    status: str = RUNNING
    started_at: str | None = None
    finished_at: str | None = None
    awaiting_started_at: str | None = None
    history: list[str] = field(default_factory=list)
    result: Dict | None = None
    error: str | None = None
    artifacts: list[Any] = field(default_factory=list)
    transcript: Dict | None = None
    session_id: str | None = None
    parent_session_id: str | None = None
    parent_worker_id: str | None = None
    parent_stage_id: str | None = None
    child_run_id: str | None = None
    child_run_path: str | None = None
    snapshot_path: str | None = None
    job: Job | None = None
    activity: Activity | None = None
    failure: BaseException | None = None
    failure_raised: bool = False
    merged: bool = False
    #: How often it was started or stopped. The outcome of a run with an older number is dropped.
    turn: int = 0

    @property
    def resting(self) -> bool:
        """Return True if it neither runs nor awaits a trigger."""
        return self.status not in (RUNNING, AWAITING)

    @property
    def restarted(self) -> bool:
        return len(self.history) > 1

    def provenance(self) -> Dict:
        return {
            "worker_id": self.id,
            "worker_name": self.name,
            **{key: getattr(self, key) for key in _ORIGIN},
            "run_id": self.child_run_id,
            "run_path": self.child_run_path,
        }

    def handle(self) -> Dict:
        """Return the worker as programs see it."""
        return {
            "_type": "agent_handle",
            **{key: getattr(self, key) for key in _SHOWN},
            "history": list(self.history),
            "provenance": self.provenance(),
            "artifact_count": len(self.artifacts),
            "has_transcript": self.transcript is not None,
        }


SNAPSHOT_TYPE = "worker_snapshot"
STATE_DIRECTORY_VARIABLE = "HARN_WORKER_STATE_DIR"
_STATE_ROOT = "HARN_STATE_DIR"

#: The keys of a snapshot that are fields of the worker.
_FIELDS = (
    "id", "name", "task", "mode", "status", "request", "config", "created_at", "started_at", "finished_at",
    "awaiting_started_at", "history", "result", "error", "artifacts", "transcript", "session_id",
    "parent_session_id", "parent_worker_id", "parent_stage_id", "child_run_id", "child_run_path", "execution",
    "audit",
)  # fmt: skip
_DICTS = ("request", "config", "execution", "audit")
_SNAPSHOT_LISTS = ("history", "artifacts")
_TEXTS = ("id", "name", "task", "mode", "created_at")


class Snapshots:
    """The files of one program's workers."""

    def __init__(self, world: World) -> None:
        self._world = world

    def path(self, id: str) -> str:
        """Return the path of the worker's snapshot."""
        env = self._world.unguarded.environment.get
        directory = (env(STATE_DIRECTORY_VARIABLE) or "").strip()
        if not directory:
            root = (env(_STATE_ROOT) or "").strip() or ".harn"
            directory = os.path.join(root, "workers")
        return self._absolute(os.path.join(directory, f"{id}.json"))

    def locate(self, id_or_path: str) -> str:
        """Return the file that an id or a path stands for."""
        is_path = "/" in id_or_path or id_or_path.endswith(".json")
        return self._absolute(id_or_path) if is_path else self.path(id_or_path)

    def save(self, worker: Worker) -> None:
        """Write the worker's file, if it has one. Raises `MisuseError`."""
        path = worker.snapshot_path
        if path is None:
            return
        files = self._world.files
        if path == self.path(worker.id):
            require_inside(self._world.unguarded, self._world.files.cwd(), path)
            files = self._world.state_files
        try:
            private_files(files).replace_text(path, pretty_json(_snapshot(worker)) + "\n", durable=False)
        except OSError as error:
            raise MisuseError(f"failed to write worker snapshot '{path}': {plain_reason(error)}") from error

    def load(self, path: str) -> Dict | None:
        """Return the snapshot in a file, None when there is no file. Raises `MisuseError` for other files."""
        try:
            read = parse_json(self._world.files.read_text(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise MisuseError(f"resume_agent: failed to read '{path}': {plain_reason(error)}") from error
        problem = _problem(read)
        if problem is not None:
            raise MisuseError(f"resume_agent: '{path}' is no worker snapshot: {problem}")
        snapshot: Dict = read
        return snapshot

    def _absolute(self, path: str) -> str:
        return os.path.join(self._world.files.cwd(), path)


def restored_worker(snapshot: Dict, path: str, context: AgentContext, bell: Bell) -> Worker:
    """Return the worker of a snapshot, at rest. One that was running is interrupted."""
    fields = {key: snapshot[key] for key in _FIELDS}
    if fields["status"] == RUNNING:
        fields["status"] = INTERRUPTED
    carry = read_carry(snapshot.get("carry_policy"), "resume_agent")
    return Worker(**fields, carry=carry, context=context, bell=bell, snapshot_path=path)


def _snapshot(worker: Worker) -> Dict:
    policy = worker.context.rules.policy
    return {
        **worker.handle(),
        "_type": SNAPSHOT_TYPE,
        "config": without_functions(worker.config),
        "latest_payload": worker.result,
        "latest_error": worker.error,
        "transcript": worker.transcript,
        "artifacts": worker.artifacts,
        "carry_policy": worker.carry.as_dict(),
        "policy": None if policy is None else policy_dict(policy.kept()),
        "session_id": worker.session_id,
        "parent_session_id": worker.parent_session_id,
    }


def without_functions(value: Any) -> Any:
    """Return a value without the functions in it. Of a command policy's hooks their texts stay."""
    if isinstance(value, dict):
        return {
            key: with_hooks_as_texts(item) if key == COMMAND_POLICY else without_functions(item)
            for key, item in paced([*value.items()])
            if not callable(item)
        }
    if isinstance(value, list):
        return [without_functions(item) for item in paced(value) if not callable(item)]
    return value


def _problem(read: Any) -> str | None:
    """Return why a value isn't a snapshot, if so."""
    if not isinstance(read, dict) or read.get("_type") != SNAPSHOT_TYPE:
        return f"`_type` must be {SNAPSHOT_TYPE}"
    missing = [key for key in _FIELDS if key not in read]
    if missing:
        return f"missing {', '.join(missing)}"
    for keys, kind in ((_DICTS, dict), (_SNAPSHOT_LISTS, list), (_TEXTS, str)):
        for key in keys:
            if not isinstance(read[key], kind):
                return f"`{key}` has the wrong type"
    return None if read["status"] in STATUSES else "unknown status"
