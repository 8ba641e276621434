"""A loop inside a loop: a child that works on a task in a session of its own, now or in the background.

The child's session is a fork of the one that drives it, so it knows what was said; what it says itself stays
there. The parent's log records that it began and how it ended; transcripts derive their events from that.
Spec: 07 §10.2, §11.2; 08 §13.2.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harnpy.agent.loop.loop import make_loop
from harnpy.agent.loop.tool_runner import PERMISSION_DENIED
from harnpy.agent.rules.policy import strings
from harnpy.agent.worker import (
    CARRY_FORK,
    CARRY_RESET,
    SUB_AGENT,
    Outcome,
    carried_policies,
    forked_transcript,
    read_carry,
    read_execution,
    read_request,
)
from harnpy.faults import MisuseError
from harnpy.formats.globs import first_match
from harnpy.formats.json import compact_json
from harnpy.formats.schema_checks import check
from harnpy.formats.schemas import canonical
from harnpy.llm.json_extraction import extract
from harnpy.llm.native_tools import is_registry
from harnpy.session.info import FORK, FRESH, Child
from harnpy.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.agent.loop.loop import Loop
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.worker import Worker
    from harnpy.agent.workers import Workers
    from harnpy.formats.dicts import Dict, Options
    from harnpy.session.info import Fact

CALLER = "sub_agent_run"
NAME = "sub-agent"

#: Loop options that a child ignores.
_WITHOUT = tuple(
    "compaction auto_compact daemon persist_path resume_path wake_interval_ms watch_paths "
    "consolidate_on_idle idle_watchdog_attempts task_ledger root_task deliverables".split()
)
_STRUCTURED = ("output_format", "json_schema", "schema", "output_schema")


@dataclass(slots=True)
class SubAgent:
    """A child that is ready to run. ``parent_id`` is the session that it was started from, stored or not;
    ``forked`` says whether its session begins with what that one has, ``detached`` whether it goes on when
    its parent ends."""

    runtime: Runtime
    loop: Loop
    name: str
    task: str
    parent_id: str | None
    schema: Dict | None
    structured: bool
    forked: bool
    detached: bool = False

    @property
    def session_id(self) -> str:
        return self.loop.conversation.id

    def run(self) -> Dict:
        """Run the child. Return its envelope, also when it fails."""
        child, mode = self._child, FORK if self.forked else FRESH
        metadata = {"detached": True} if self.detached else None
        self._record(child.requested(self.name, mode, self.task, metadata=metadata), child.started(self.name))
        try:
            envelope = self._run()
        except BaseException as error:
            with suppress(StorageError):
                self._record(child.canceled(str(error) or "cancelled"))
            raise
        ended = [self._end(envelope)]
        if envelope["ok"] and not self.detached:  # its outcome is taken as soon as it is there
            ended.append(child.merged())
        self._record(*ended)
        return envelope

    def _end(self, envelope: Dict) -> Fact:
        """Return the fact that says how the child ended."""
        error = envelope["error"]
        metadata = {"name": self.name}
        metadata |= {key: envelope[key] for key in ("evidence_added", "budget_exceeded")}
        if error is None:
            usage = {"total_tokens": envelope["tokens_used"]}
            return self._child.completed(envelope["summary"], usage=usage, metadata=metadata)
        metadata |= {"summary": envelope["summary"], "error": error}
        return self._child.failed(error["message"], metadata)

    def _run(self) -> Dict:
        try:
            result = self.loop.run()
        except Exception as error:
            if not self.runtime.is_failure(error):
                raise
            return self._envelope({}, error=_described(error))
        return self._ended(result)

    def _ended(self, result: Dict) -> Dict:
        """Return the envelope of a child whose loop has ended."""
        data, error = self._data(result)
        denied = _denied(result["transcript"]["events"])
        text = result["visible_text"]
        if self.structured and data is not None:
            text = compact_json(data)
        return self._envelope(result, data=data, error=denied or error, summary=text or _last_words(result))

    def _envelope(
        self, result: Dict, *, data: Any = None, error: Dict | None = None, summary: str = ""
    ) -> Dict:
        transcript = result.get("transcript")
        tokens = _tokens(transcript["events"]) if transcript else 0
        budget = self.loop.options.token_budget
        return {
            "ok": error is None,
            "summary": summary,
            "artifacts": [],
            "evidence_added": 0,
            "tokens_used": tokens,
            "budget_exceeded": budget is not None and tokens >= budget,
            "session_id": self.session_id,
            "transcript": transcript,
            "data": data if error is None else None,
            "error": error,
        }

    def _data(self, result: Dict) -> tuple[Any, Dict | None]:
        """Return the JSON of a child that was asked for some, and what is wrong with it."""
        values = self.runtime.models.values
        if not self.structured:
            return None, None
        for text in _texts(result):
            try:
                found = extract(text, values.read_json)
            except ValueError:
                continue
            problems = [] if self.schema is None else check(found, self.schema, values).errors
            failed = f"return schema validation failed: {'; '.join(problems)}"
            return found, _schema_error(failed) if problems else None
        if self.schema is None:
            return None, None
        return None, _schema_error("child transcript did not contain valid JSON")

    @property
    def _child(self) -> Child:
        return Child(self.session_id, self.session_id)

    def _record(self, *facts: Fact) -> None:
        """Record facts of the child in its parent's log; an anonymous loop keeps them itself."""
        if self.parent_id is not None:
            self.runtime.record_child(self.parent_id, list(facts))


def make_sub_agent(runtime: Runtime, task: str, given: Any, bound_registry: Dict | None = None) -> SubAgent:
    """Return the child that ``given``, the options of `sub_agent_run`, describe. Its session is created now.

    Raises `OptionError` and `MisuseError` for options that make no loop.
    """
    if given is not None and not isinstance(given, dict):
        raise MisuseError(f"{CALLER}: options must be a dict")
    options = runtime.models.options(given)
    child = {key: value for key, value in options.given.items() if key not in _WITHOUT}
    child["tools"] = _tools(options, bound_registry)
    child["policy"] = _policy(options)
    child["compaction"] = False
    stored = _parent(runtime)
    session_id = options.string("session_id") or ""
    if not session_id.strip():
        session_id = new_session_id(runtime)
    child["session_id"] = session_id
    schema = runtime.models.options(options.mapping("returns")).mapping("schema")
    loop = make_loop(runtime, task, options.string("system"), child, caller=CALLER, default_format="")
    if stored is not None and not runtime.sessions.exists(session_id):
        runtime.sessions.fork(stored, session_id)
    return SubAgent(
        runtime=runtime,
        loop=loop,
        name=options.string("name", NAME) or NAME,
        task=task,
        parent_id=runtime.sessions.current_id(),
        schema=None if schema is None else canonical(schema),
        structured=schema is not None or _wants_json(options),
        forked=stored is not None,
    )


def execution_here(given: Any) -> Dict:
    """Return the `execution` of a child that its parent waits for. Raises `MisuseError`."""
    execution = read_execution(given.get("execution") if isinstance(given, dict) else None, CALLER)
    if execution.get("worktree") is not None:
        raise MisuseError(f"{CALLER}: execution.worktree is for workers: set `background: true`")
    return execution


def new_session_id(runtime: Runtime) -> str:
    return f"sub_agent_session_{runtime.sessions.world.ids.new()}"


def _parent(runtime: Runtime) -> str | None:
    """Return the stored session that this task drives, if any; an anonymous loop's isn't stored."""
    current = runtime.sessions.current_id()
    return current if current is not None and runtime.sessions.exists(current) else None


def _tools(options: Options, bound: Dict | None) -> Any:
    """Return the child's registry: its own or the caller's, restricted to what it may use."""
    tools = options.value("tools") if options.value("tools") is not None else bound
    if tools is not None and not is_registry(tools):
        raise MisuseError(f"{CALLER}: tools must be a tool registry")
    allowed = _allowed(options)
    if tools is None or allowed is None:
        return tools
    return {**tools, "tools": [entry for entry in tools["tools"] if entry.get("name") in allowed]}


def _allowed(options: Options) -> list[str] | None:
    """Return those of ``allowed_tools`` that the ``policy`` grants; None when all may be used."""
    allowed = options.value("allowed_tools")
    if allowed is None:
        return None
    if not isinstance(allowed, list) or not all(isinstance(name, str) for name in allowed):
        raise MisuseError(f"{CALLER}.allowed_tools: expected a list of strings")
    granted = strings((options.mapping("policy") or {}).get("tools"))
    return [name for name in allowed if first_match(granted, name) is not None] if granted else allowed


def _policy(options: Options) -> Any:
    """Return the child's ceiling: ``policy``, restricted to ``allowed_tools``."""
    allowed, policy = _allowed(options), options.value("policy")
    if allowed is None:
        return policy
    return {**(policy if isinstance(policy, dict) else {}), "tools": allowed}


def _wants_json(options: Options) -> bool:
    if options.string("response_format", "text") != "text":
        return True
    return any(options.value(key) is not None for key in _STRUCTURED)


def _texts(result: Dict) -> Iterator[str]:
    """Return the texts that may hold a child's JSON, in the order of the search."""
    yield result["visible_text"]
    transcript = result["transcript"]
    for message in reversed(transcript["messages"]):
        if message.get("role") == "assistant" and isinstance(message.get("content"), str):
            yield message["content"]
    for event in reversed(transcript["events"]):
        if event.get("role") == "assistant":
            yield event["text"]
    yield transcript.get("summary") or ""


def _last_words(result: Dict) -> str:
    for message in reversed(result["transcript"]["messages"]):
        if message.get("role") == "assistant" and isinstance(message.get("content"), str):
            return str(message["content"])
    return ""


def _described(error: Exception) -> Dict:
    """Return the error that ended a child; a thrown dict may describe itself."""
    thrown = getattr(error, "value", None)
    said = thrown if isinstance(thrown, dict) and isinstance(thrown.get("category"), str) else {}
    category = said.get("category") or getattr(error, "category", None) or "runtime"
    message = said.get("message") or getattr(error, "message", None) or str(error)
    return {"category": category, "message": message}


def _denied(events: list[Dict]) -> Dict | None:
    """Return the error of a child whose last denied call this was."""
    for event in reversed(events):
        metadata = event.get("metadata") or {}
        if event["kind"] == "tool_execution" and metadata.get("error_category") == PERMISSION_DENIED:
            return {
                "category": PERMISSION_DENIED,
                "message": _reason(event["text"]),
                "tool": metadata.get("tool_name"),
            }
    return None


def _reason(denial: str) -> str:
    """Return the reason in the text of a denied call, which is JSON."""
    return str(json.loads(denial)["reason"])


def _tokens(events: list[Dict]) -> int:
    payloads = [event["metadata"] for event in events if event["kind"] == "provider_payload"]
    return sum(payload["input_tokens"] + payload["output_tokens"] for payload in payloads)


def _schema_error(what: str) -> Dict:
    message = f"Error [schema_validation]: {CALLER}: {what}"
    return {"category": "schema_validation", "message": message}


def delegate(runtime: Runtime, workers: Workers, task: str, given: Any) -> Worker:
    """Start a worker that does what `sub_agent_run` with the options ``given`` would.

    Raises `MisuseError` and `OptionError` for options that make no sub-agent or no worker.
    """
    options = runtime.models.options(given)
    carry = options.value("carry")
    return workers.spawn(
        SUB_AGENT,
        task,
        name=options.string("name", NAME) or NAME,
        config={"task": task, "options": given},
        request=read_request(task, options.string("system"), options.given),
        carry=read_carry(carry, CALLER),
        policies=carried_policies(carry, CALLER),
        execution=read_execution(options.value("execution"), CALLER),
        audit=options.value("audit"),
        caller=CALLER,
    )


class SubAgentJob:
    """The first task's child is made with the job, so that it sees its parent as it is now."""

    def __init__(self, runtime: Runtime, worker: Worker) -> None:
        self._runtime = runtime
        self._options: Any = worker.config.get("options")
        self._first: SubAgent | None = None
        if worker.session_id is None:
            self._first = make_sub_agent(runtime, worker.task, self._options)
            self.session_id = self._first.session_id
        else:
            self.session_id = worker.session_id

    def run(self, worker: Worker) -> Outcome:
        former = self.session_id
        envelope = self._child(worker).run()
        transcript, artifacts = envelope["transcript"], envelope["artifacts"]
        if (
            transcript is not None
            and self.session_id != former
            and worker.carry.transcript_mode == CARRY_FORK
        ):
            transcript = forked_transcript({**transcript, "id": former}, self.session_id)
            envelope = {**envelope, "transcript": transcript}
        return Outcome(envelope, transcript, artifacts)

    def _child(self, worker: Worker) -> SubAgent:
        child, self._first = self._first, None
        if child is None or worker.restarted:
            self._continue(worker)
            options = {**(self._options or {}), "session_id": self.session_id}
            child = make_sub_agent(self._runtime, worker.task, options)
        child.detached = True
        return child

    def _continue(self, worker: Worker) -> None:
        """Make sure that the session exists which the next child continues."""
        sessions, mode = self._runtime.sessions, worker.carry.transcript_mode
        former = self.session_id
        if mode != CARRY_RESET and not sessions.exists(former):
            sessions.open(former)
            if worker.transcript is not None:
                sessions.store_transcript(former, worker.transcript)
        if mode in (CARRY_FORK, CARRY_RESET):
            self.session_id = new_session_id(self._runtime)
        if mode == CARRY_FORK:
            sessions.fork(former, self.session_id)
        elif mode == CARRY_RESET:
            sessions.open(self.session_id)
