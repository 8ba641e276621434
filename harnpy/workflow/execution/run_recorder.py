"""Recording what a run's models, tools and people did. Spec: 08 §8.1.

A recorder is notified of everything that happens in the tasks of its run, including runs inside it, and of
nothing else.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from harnpy.agent.people.history import merged
from harnpy.text.json.writer import to_json
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.agent.people.requests import Question
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.workflow_scope import ToolCall
    from harnpy.llm.reply import Reply
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import RunRecord, UsageRecord


_HASH_DIGITS, _SPAN_DIGITS = 16, 8


@dataclass(slots=True)
class Usage:
    """The total use of model calls; ``models`` in the order of their first call."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_duration_ms: int = 0
    call_count: int = 0
    total_cost: float = 0.0
    models: dict[str, None] = field(default_factory=dict)

    def add(self, reply: Reply, ms: int) -> None:
        self.input_tokens += reply.input_tokens
        self.output_tokens += reply.output_tokens
        self.total_duration_ms += ms
        self.call_count += 1
        self.total_cost += reply.cost
        self.models[reply.model] = None

    def as_dict(self) -> UsageRecord:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_duration_ms": self.total_duration_ms,
            "call_count": self.call_count,
            "total_cost": self.total_cost,
            "models": list(self.models),
        }


def usage_of(record: UsageRecord | None) -> Usage:
    """Return the usage in a record, to continue counting."""
    if not record:
        return Usage()
    return Usage(
        record["input_tokens"],
        record["output_tokens"],
        record["total_duration_ms"],
        record["call_count"],
        record["total_cost"],
        dict.fromkeys(record["models"]),
    )


class RunRecorder:
    """The recorder of the run whose record is ``run``."""

    def __init__(self, runtime: Runtime, run: RunRecord) -> None:
        self._runtime = runtime
        self._run = run
        self._world = runtime.sessions.world
        self.usage = usage_of(run["usage"])
        #: The usage of the current stage.
        self.stage_usage = Usage()
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
        self.usage.add(reply, ms)
        self.stage_usage.add(reply, ms)
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
        self._run["metadata"] = {**metadata, "hitl": merged(metadata.get("hitl"), [entry])}

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
