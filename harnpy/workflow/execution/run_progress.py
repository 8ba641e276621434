"""The progress of a run: its queue and its record, kept in step on disk, and what its models and tools did.

Spec: 08 §7.2–7.4, §8.1.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from harnpy.agent.people import merged_history
from harnpy.agent.worker import without_functions
from harnpy.formats.dicts import as_dicts
from harnpy.formats.json import to_json
from harnpy.formats.shapes import made, only
from harnpy.workflow.artifacts import ArtifactIndex
from harnpy.workflow.execution.stage_work import Ended
from harnpy.workflow.execution.verification import failed_check
from harnpy.workflow.graph import VERIFY
from harnpy.workflow.records.record import (
    FINALIZE,
    STAGE_COMPLETE,
    START,
    new_attempt,
    new_checkpoint,
    new_stage,
    new_transition,
)
from harnpy.workflow.records.record_shapes import UsageRecord, data_parts
from harnpy.workflow.records.replay_fixture import fixture_of
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from harnpy.agent.context import ToolCall
    from harnpy.agent.people import Question
    from harnpy.agent.rules.policy import CapabilityPolicy
    from harnpy.agent.runtime import Runtime
    from harnpy.formats.dicts import Dict
    from harnpy.llm.reply import Reply
    from harnpy.workflow.graph_shapes import Edge, Graph, Node
    from harnpy.workflow.records.record_files import RunWriter
    from harnpy.workflow.records.record_shapes import RunRecord, StageRecord, Transition
    from harnpy.world import World

# Which node comes next: the queue of a run, its joins and branches. Spec: 08 §7.2.
#
# Pure: it knows nodes by their ids, and stages by the branches they ended on.


JOIN = "join"


class Ready:
    """The queued nodes, the next one first. ``steps`` counts turns, including those in which a join kept
    waiting."""

    def __init__(
        self, graph: Graph, max_steps: int, pending: Iterable[str], completed: Iterable[str] = ()
    ) -> None:
        self.steps = 0
        self.max_steps = max_steps
        self.completed = set(completed)
        #: The same, sorted.
        self.done = sorted(self.completed)
        self._nodes = graph["nodes"]
        self._outgoing: dict[str, list[Edge]] = {}
        self._incoming: dict[str, list[str]] = {}
        for edge in graph["edges"]:
            self._outgoing.setdefault(edge["from"], []).append(edge)
            self._incoming.setdefault(edge["to"], []).append(edge["from"])
        self._queue = deque(pending)
        self._queued = Counter(self._queue)

    @property
    def pending(self) -> list[str]:
        return list(self._queue)

    def __bool__(self) -> bool:
        """Return whether anything is left to do."""
        return bool(self._queue)

    def add(self, id: str) -> None:
        """Queue a node, unless it is queued already."""
        if not self._queued[id]:
            self._queue.append(id)
            self._queued[id] += 1

    def take(self) -> str | None:
        """Take the node to run now; None when the queue is empty or no step is left.

        This may be a node that the graph doesn't have.
        """
        while self._queue and self.steps < self.max_steps:
            self.steps += 1
            id = self._queue.popleft()
            self._queued[id] -= 1
            if not self._waits(id):
                return id
            self.add(id)
        return None

    def take_again(self, id: str) -> None:
        """Take a node that the run has taken before: the next one, unless the graph was changed."""
        found = None if self.problem_with(id) else self.take()
        if found == id:
            return
        if found is not None:
            self._queue.appendleft(found)
            self._queued[found] += 1
        if self._queued[id]:
            self._queue.remove(id)
            self._queued[id] -= 1

    def problem_with(self, id: str) -> str | None:
        """Return why a node can't run now; None if it can."""
        if id not in self._nodes:
            return "is gone from the graph"
        if not self._queued[id]:
            return "isn't reached any more by what has run before it"
        return "waits for further nodes now" if self._waits(id) else None

    def complete(self, id: str, branch: str | None) -> list[Edge]:
        """Queue what follows a stage that ended on ``branch``. Return the edges followed."""
        if id not in self.completed:
            self.completed.add(id)
            insort(self.done, id)
        followed = self._following(id, branch)
        for edge in followed:
            self.add(edge["to"])
        return followed

    def _following(self, id: str, branch: str | None) -> list[Edge]:
        edges = self._outgoing.get(id, [])
        taken = [edge for edge in edges if branch is not None and edge["branch"] == branch]
        return taken or [edge for edge in edges if edge["branch"] is None]

    def _waits(self, id: str) -> bool:
        """Return whether a node is a join that needs more of its predecessors."""
        node = self._nodes.get(id)
        if node is None or node["kind"] != JOIN:
            return False
        sources = self._incoming.get(id, [])
        return sum(source in self.completed for source in sources) < _required(node, len(sources))


def _required(join: Node, incoming: int) -> int:
    policy = join["join_policy"]
    if policy["min_completed"] is not None:
        return int(policy["min_completed"])
    wants_all = policy["require_all_inputs"] or policy["strategy"] == "all"
    return incoming if wants_all else 1


# Recording what a run's models, tools and people did. Spec: 08 §8.1.
#
# A recorder is notified of everything that happens in the tasks of its run, including runs inside it, and of
# nothing else.


_HASH_DIGITS, _SPAN_DIGITS = 16, 8


def no_usage() -> UsageRecord:
    return made(UsageRecord, {})


def copied_usage(usage: UsageRecord) -> UsageRecord:
    return {**usage, "models": list(usage["models"])}


def count_usage(usages: Iterable[UsageRecord], reply: Reply, ms: int) -> None:
    """Add a model call to each; ``models`` are in the order of their first call."""
    cost = reply.cost or 0.0
    for usage in usages:
        usage["input_tokens"] += reply.input_tokens
        usage["output_tokens"] += reply.output_tokens
        usage["total_duration_ms"] += ms
        usage["call_count"] += 1
        usage["total_cost"] += cost
        if reply.model not in usage["models"]:
            usage["models"].append(reply.model)


class RunRecorder:
    """The recorder of the run whose record is ``run``."""

    def __init__(self, runtime: Runtime, run: RunRecord) -> None:
        self._runtime = runtime
        self._run = run
        self._world = runtime.sessions.world
        self.usage = copied_usage(run["usage"] or no_usage())
        #: The usage of the current stage.
        self.stage_usage = no_usage()
        self._over = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Record what happens inside the block; a worker may outlive the run."""
        observers = self._runtime.models.account.observers
        observers.append(self._replied)
        try:
            yield
        finally:
            observers.remove(self._replied)
            self._over = True

    def _replied(self, reply: Reply, ms: int) -> None:
        workflow = self._runtime.context().workflow
        if workflow is None or self not in workflow.recorders:
            return
        count_usage((self.usage, self.stage_usage), reply, ms)
        tokens = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
        self._span("llm_call", reply.model, ms, {"provider": reply.provider, **tokens})

    def tool_called(self, call: ToolCall) -> None:
        if self._over:
            return
        arguments = to_json(call.arguments).encode("utf-8", "surrogatepass")
        self._run["tool_recordings"].append(
            {
                "tool_name": call.name,
                "tool_use_id": call.id,
                "args_hash": sha256(arguments).hexdigest()[:_HASH_DIGITS],
                "result": call.text,
                "is_rejected": call.rejected,
                "duration_ms": call.ms,
                "iteration": call.iteration,
                "timestamp": rfc3339(self._world.clock.now()),
            }
        )
        self._span("tool_call", call.name, call.ms, {"is_rejected": call.rejected})

    def asked(self, question: Question) -> None:
        if self._over:
            return
        self._run["hitl_questions"].append(question)

    def hitl(self, entry: Dict) -> None:
        if self._over:
            return
        metadata = self._run["metadata"]
        self._run["metadata"] = {**metadata, "hitl": merged_history(metadata.get("hitl"), [entry])}

    def _span(self, kind: str, name: str, ms: int, metadata: Dict) -> None:
        """Add a span that has just ended."""
        self._run["trace_spans"].append(
            {
                "span_id": self._world.ids.new()[-_SPAN_DIGITS:],
                "parent_id": None,
                "kind": kind,
                "name": name,
                "start_ms": int(self._world.clock.now() * 1000) - ms,
                "duration_ms": ms,
                "metadata": metadata,
            }
        )


# The record of a stage within a run's record. Spec: 08 §7.3, §7.4, §8.1.


STAGE_COMPLETED, FAILED, ERROR = "completed", "failed", "error"
_NOT_VERIFIED = "verification failed"
_OF_NODE = (
    "model_policy", "auto_compact", "context_policy", "retry_policy", "input_contract", "output_contract"
)  # fmt: skip
_OF_RESULT = (
    "prompt", "system_prompt", "rendered_context", "verification_contracts", "rendered_verification_context",
    "selected_artifact_ids", "selected_artifact_titles",
)  # fmt: skip


def failed_stage(error: str, category: str, retry_after: float | None) -> Ended:
    """Return the end of a stage that failed with an error."""
    failure = {"error": error, "error_category": category, "retry_after": retry_after}
    return Ended({"status": FAILED, **failure}, ERROR, ERROR, [], None)


def stage_record(node: Node, ended: Ended, **fields: Any) -> StageRecord:
    """Return the record of a stage with its one attempt; ``fields`` come from the run."""
    result, branch = ended.result, ended.branch
    came_of = {
        "status": FAILED if branch in (FAILED, ERROR) else STAGE_COMPLETED,
        "outcome": ended.outcome,
        "branch": branch,
        "verification": ended.verification,
    }
    error = result["error"] if branch == ERROR else None
    times = {key: fields[key] for key in ("started_at", "finished_at")}
    return new_stage(
        node_id=node["id"],
        kind=node["kind"],
        visible_text=result.get("visible_text"),
        private_reasoning=result.get("private_reasoning"),
        transcript=ended.transcript,
        artifacts=ended.artifacts,
        produced_artifact_ids=[artifact["id"] for artifact in ended.artifacts],
        attempts=[new_attempt(attempt=1, error=error, **came_of, **times)],
        **came_of,
        **fields,
    )


def stage_metadata(node: Node, policy: CapabilityPolicy, ended: Ended, plain: Collection[int] = ()) -> Dict:
    """Return the metadata about how a stage ran. The parts with the ``plain`` ids are known to be data."""
    result, worker = ended.result, ended.worker
    errors = {FAILED: _NOT_VERIFIED, ERROR: result.get("error")}
    optional = {
        "output_visibility": node["output_visibility"],
        "worker": worker,
        "worker_id": worker and worker["id"],
        "error": errors.get(ended.branch),
        **{key: result.get(key) for key in _OF_RESULT},
        "tool_calling_mode": (result.get("tools") or {}).get("mode"),
    }
    return {
        **_settings(node, plain),
        "effective_capability_policy": policy,
        **{key: value for key, value in optional.items() if value is not None},
    }


def _settings(node: Node, plain: Collection[int]) -> Dict:
    """Return what a stage's metadata says of its node."""
    settings = only(node, _OF_NODE)
    if data_parts(settings, plain) is not None:
        return settings
    return {key: without_functions(value) for key, value in settings.items()}


COMPLETED, PAUSED = "completed", "paused"


def unhandled_failures(run: RunRecord) -> list[str]:
    """Return why a run failed: each node's last stage that failed, with no edge followed on its branch.

    Spec: 08 §7.2.
    """
    last = {stage["node_id"]: stage for stage in run["stages"]}
    handled = {(each["from_stage_id"], each["branch"]) for each in run["transitions"]}
    return [
        f"node '{id}': {_failure(stage)}"
        for id, stage in last.items()
        if stage["status"] == FAILED and (stage["id"], stage["branch"]) not in handled
    ]


def _failure(stage: StageRecord) -> str:
    """Return in what way a stage failed."""
    if stage["branch"] == ERROR:
        return str(stage["metadata"].get("error") or ERROR)
    if stage["kind"] == VERIFY:
        problems = [failed_check(check) for check in as_dicts((stage["verification"] or {}).get("checks"))]
        return ": ".join(filter(None, (_NOT_VERIFIED, ", ".join(filter(None, problems)))))
    return stage["outcome"] or FAILED


class Progress:
    """``run`` is the record; the ``recorder`` adds what models, tools and people do."""

    def __init__(self, ready: Ready, writer: RunWriter, recorder: RunRecorder, world: World) -> None:
        self.run = writer.run
        self.artifacts = ArtifactIndex(writer.run["artifacts"])
        self.ready = ready
        self.recorder = recorder
        self._writer = writer
        self._world = world

    @contextmanager
    def saved(self) -> Iterator[None]:
        """Write the record's state to its file when the block begins, and make the file whole if the block
        is left early."""
        self._checkpoint(START, self.now())
        try:
            self._writer.checkpoint()
            yield
        except BaseException:
            self._writer.leave()
            raise

    def stage_id(self, node_id: str) -> str:
        """Return the id of the next stage."""
        return f"{self.run['id']}:{node_id}:{len(self.run['stages']) + 1}"

    def add(self, stage: StageRecord) -> None:
        """Add a stage that has ended, and continue the run from it."""
        run, now = self.run, self.now()
        run["artifacts"] += stage["artifacts"]
        if stage["transcript"] is not None and stage["branch"] != ERROR:
            run["transcript"] = stage["transcript"]
        run["stages"].append(stage)
        for edge in self.ready.complete(stage["node_id"], stage["branch"]):
            run["transitions"].append(self._transition(stage, edge, now))
        self._checkpoint(STAGE_COMPLETE, now)
        self._writer.checkpoint()

    def end(self) -> None:
        """End the run, completed, failed or out of steps, and write it durably. Raise `MisuseError`."""
        run = self.run
        failures = [] if self.ready else unhandled_failures(run)
        run["status"] = PAUSED if self.ready else FAILED if failures else COMPLETED
        if failures:
            run["metadata"] = {**run["metadata"], "error": "; ".join(failures)}
        elif "error" in run["metadata"]:  # of a run that was begun again
            run["metadata"] = {key: value for key, value in run["metadata"].items() if key != "error"}
        run["finished_at"] = self.now()
        run["replay_fixture"] = fixture_of(run, self._world)
        self._checkpoint(FINALIZE, self.now())
        self._writer.save()

    def now(self) -> str:
        return rfc3339(self._world.clock.now())

    def _transition(self, stage: StageRecord, edge: Edge, now: str) -> Transition:
        return new_transition(
            self._world,
            now,
            from_stage_id=stage["id"],
            from_node_id=stage["node_id"],
            to_node_id=edge["to"],
            branch=edge["branch"],
            consumed_artifact_ids=stage["consumed_artifact_ids"],
            produced_artifact_ids=stage["produced_artifact_ids"],
        )

    def _checkpoint(self, reason: str, now: str) -> None:
        """Record the current state."""
        run, stages = self.run, self.run["stages"]
        checkpoint = new_checkpoint(
            self._world,
            now,
            ready_nodes=self.ready.pending,
            completed_nodes=[*self.ready.done],
            last_stage_id=stages[-1]["id"] if stages else None,
            reason=reason,
        )
        run["checkpoints"].append(checkpoint)
        run["pending_nodes"] = checkpoint["ready_nodes"]
        run["completed_nodes"] = checkpoint["completed_nodes"]
        run["usage"] = copied_usage(self.recorder.usage)
