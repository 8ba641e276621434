"""Every moment of a loop is in its session's log: a program a row, the log's appends in order.

Spec: 10 §C16.1. A line of an expected log is one append.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from harnpy import Vm
from harnpy.agent.loop.loop import run_loop
from harnpy.agent.rules.hooks import Hooks
from harnpy.agent.runtime import Runtime
from harnpy.session import SessionRegistry
from tests.worlds import models_with, world_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BEGIN = "turn_started register_set register_set"
START = f"{BEGIN}\nmessage_added step_started"
#: What follows from a reply: a call, or the last word, with which the turn ends.
REPLY = "step_completed message_added"
LAST = f"{REPLY} turn_completed"
#: A tool that ran, and the rest of the turn.
REST = f"step_started\n{LAST}"
RAN = f"tool_completed message_added\n{REST}"

PRELUDE = """
fn loop(reg, opts = {}) {
  let own = {provider: "mock", tools: reg, tool_format: "native", session_id: "s"}
  return agent_loop("go", "sys", own + opts)
}
fn acting(handler) { return tool_define(tool_registry(), "act", "Act", {parameters: {}, handler: handler}) }
let NODE = {kind: "stage", model_policy: {provider: "mock"}}
fn triggered() {
  let worker = spawn_agent({task: "sub", node: NODE, carry: {retriggerable: true}})
  sleep(1ms)
  worker_trigger(worker, "more")
  sleep(1ms)
  return close_agent(worker).status
}
fn calls(name = "act") { llm_mock({tool_calls: [{id: "c", name: name, arguments: {}}]}) }
"""


class Row(NamedTuple):
    """``log`` has an append a line, behind ``session_created``."""

    program: str
    log: str


HANDOFF = """artifact({kind: "handoff", data: {source_persona: "me", task: "t", reason: "r",
  target_persona_or_human: {kind: "persona", id: "you"}}}).kind"""

TALK = """
for i in range(0, 3) {
  agent_session_inject("s", {role: "user", content: "question ${i}"})
  agent_session_inject("s", {role: "assistant", content: "answer ${i}"})
}
"""
TALKED = "\n".join(["message_added"] * 6)


def acting(handler: str, options: str = "{}", before: str = "") -> str:
    """A program whose model calls a tool and says `ok`."""
    return f'{before}\ncalls()\nllm_mock({{text: "ok"}})\nloop(acting({{ a -> {handler} }}), {options})'


ROWS = {
    # Verbs.
    "inject": Row('agent_session_inject("s", {role: "user", content: "a"})', "message_added"),
    "client prompt": Row(
        'agent_session_attach("s", "web", {mode: "controller"})\n'
        'agent_session_client_inject_prompt("s", "web", "a")',
        "transcript_event\nmessage_added",
    ),
    "reset": Row('agent_session_reset("s")', "history_replaced"),
    "trim": Row(f'{TALK}\nagent_session_trim("s", 2)', f"{TALKED}\ncompaction_triggered"),
    "compact": Row(
        f'{TALK}\nagent_session_compact("s", {{keep_last: 2}})', f"{TALKED}\ncompaction_triggered"
    ),
    "a register": Row('agent_session_set_scratchpad("s", {a: 1})', "register_set"),
    # A loop.
    "a turn": Row('llm_mock({text: "ok"})\nloop(tool_registry())', f"{START}\n{LAST}"),
    "a second turn": Row(
        'llm_mock({text: "ok"})\nllm_mock({text: "ok"})\nloop(tool_registry())\nloop(tool_registry())',
        f"{START}\n{LAST}\nturn_started\nmessage_added step_started\n{LAST}",
    ),
    "a call is retried": Row(
        'llm_mock({error: {category: "rate_limit"}})\nllm_mock({text: "ok"})\n'
        "loop(tool_registry(), {llm_backoff_ms: 0})",
        f"{START}\nescalation_retried\n{LAST}",
    ),
    "a schema nudge": Row(
        'llm_mock({text: "no"})\nllm_mock({text: "{}"})\n'
        'loop(tool_registry(), {schema_retries: 1, output_format: "json", json_schema: {type: "object"}})',
        f"{START}\nstep_completed escalation_retried message_added step_started\n{LAST}",
    ),
    "a context overflow": Row(
        f'{TALK}\nllm_mock({{error: {{category: "generic", message: "maximum context length"}}}})\n'
        'llm_mock({text: "ok"})\nloop(tool_registry(), {compaction: {strategy: "hybrid", keep_last: 2}})',
        f"{TALKED}\n{START}\nstep_completed escalation_retried\ncompaction_triggered\n{REST}",
    ),
    "a call that fails for good": Row(
        'llm_mock({error: {category: "auth"}})\nlet r = try { loop(tool_registry()) }',
        f"{START}\nstep_completed turn_completed",
    ),
    "a compaction by the model": Row(
        f'{TALK}\nllm_mock({{text: "short"}})\nllm_mock({{text: "ok"}})\n'
        'loop(tool_registry(), {compaction: {strategy: "llm", keep_last: 2}, compact_threshold: 0})',
        f"{TALKED}\n{BEGIN}\nmessage_added\ncompaction_started step_started\nstep_completed\n"
        f"compaction_triggered\n{REST}",
    ),
    # Tools.
    "a tool": Row(acting('"x"'), f"{START}\n{REPLY} tool_started\n{RAN}"),
    "a tool of a text format": Row(
        'llm_mock({text: "<tool_call>\\nact({})\\n</tool_call>"})\n'
        'llm_mock({text: "<user_response>ok</user_response>"})\n'
        'loop(acting({ a -> "x" }), {tool_format: "text"})',
        f"{START}\n{REPLY} tool_started\ntool_completed\nmessage_added\n{REST}",
    ),
    "a refused call": Row(
        acting('"x"', '{policy: {tools: ["other"]}}'), f"{START}\n{REPLY} transcript_event {RAN}"
    ),
    "a tool that shows its output": Row(
        'gen fn out() { emit "x"\n emit "y" }\n' + acting("out()"),
        f"{START}\n{REPLY} tool_started\ntool_output_delta\n{RAN}",
    ),
    # People.
    "a question": Row(
        acting('ask_user("Which?")', before='host_mock("hitl", "question", {answer: "main"})'),
        f"{START}\n{REPLY} tool_started\nexternal_input wait_started\nwait_resolved external_input\n{RAN}",
    ),
    "an approval": Row(
        acting(
            'request_approval("push").approved',
            before='host_mock("hitl", "approval", {approved: true, reviewer: "ann"})',
        ),
        f"{START}\n{REPLY} tool_started\napproval_requested\napproval_resolved\n{RAN}",
    ),
    "a function of a rule": Row(
        acting(
            '"x"',
            '{permissions: {allow: {act: { a -> agent_session_length("s") == 2 }}}}',
        ),
        f"{START}\n{REPLY}\ntranscript_event tool_started\n{RAN}",
    ),
    "an escalation that is granted": Row(
        acting('"x"', '{permissions: {deny: ["act"], on_escalation: { r -> true }}}'),
        f"{START}\n{REPLY} approval_requested\napproval_resolved\n"
        f"transcript_event transcript_event tool_started\n{RAN}",
    ),
    "an escalation that is denied": Row(
        acting('"x"', '{permissions: {deny: ["act"], on_escalation: { r -> false }}}'),
        f"{START}\n{REPLY} approval_requested\napproval_resolved\ntranscript_event transcript_event {RAN}",
    ),
    "an escalation that fails": Row(
        "let r = try {\n"
        + acting('"x"', '{permissions: {deny: ["act"], on_escalation: { r -> throw "no" }}}')
        + "\n}",
        f"{START}\n{REPLY} approval_requested\napproval_canceled\n"
        "tool_completed message_added turn_completed",
    ),
    # Others.
    "a handoff": Row(
        acting(HANDOFF),
        f"{START}\n{REPLY} tool_started\nhandoff\n{RAN}",
    ),
    "a sub-agent": Row(
        'calls()\nllm_mock({text: "inner"})\nllm_mock({text: "ok"})\n'
        'loop(acting({ a -> sub_agent_run("sub", {provider: "mock", tools: tool_registry()}).summary }))',
        f"{START}\n{REPLY} tool_started\nchild_requested child_started\nchild_completed child_merged\n{RAN}",
    ),
    "a stage's worker": Row(
        'calls()\nllm_mock({text: "inner"})\nllm_mock({text: "ok"})\n'
        'loop(acting({ a -> wait_agent(spawn_agent({task: "sub", node: NODE})).status }))',
        f"{START}\n{REPLY} tool_started\nchild_requested\nchild_started\n"
        f"artifact_recorded child_completed\nchild_merged\n{RAN}",
    ),
    "a stage": Row(
        'llm_mock({text: "ok"})\nlet policy = {provider: "mock", session_id: "s"}\n'
        'workflow_execute("t", {nodes: {a: {kind: "stage", model_policy: policy}}, entry: "a"})',
        f"turn_started register_set\nmessage_added step_started\n{LAST}\nartifact_recorded",
    ),
    "a worker that fails": Row(
        'calls()\nllm_mock({error: {category: "auth"}})\nllm_mock({text: "ok"})\n'
        'loop(acting({ a -> wait_agent(spawn_agent({task: "sub", node: NODE})).status }))',
        f"{START}\n{REPLY} tool_started\nchild_requested\nchild_started\nchild_failed\n{RAN}",
    ),
    "a worker that is closed": Row(
        acting('close_agent(spawn_agent({task: "sub", node: NODE})).status'),
        f"{START}\n{REPLY} tool_started\nchild_requested\nchild_canceled\n{RAN}",
    ),
    "a worker that awaits a trigger": Row(
        'calls()\nllm_mock({text: "inner"})\nllm_mock({text: "again"})\nllm_mock({text: "ok"})\n'
        "loop(acting({ a -> triggered() }))",
        f"{START}\n{REPLY} tool_started\nchild_requested\nchild_started\nchild_blocked\n"
        f"child_progressed\nchild_started\nchild_blocked\nchild_canceled\n{RAN}",
    ),
}


def program_of(source: str, store: str | None) -> str:
    opened = 'agent_session_open("s")' if store is None else f'agent_session_open("s", {{store: "{store}"}})'
    return f"{PRELUDE}\npipeline main(task) {{\n{opened}\n{source}\n}}"


def log_of(source: str, store: str | None, **options: Any) -> list[Any]:
    vm = Vm(**options)
    vm.run_source(program_of(source, store))
    session = vm.sessions.session("s")
    assert session
    return session.events()


def appends(events: list[Any]) -> list[str]:
    """The types of the events, an append a line; not the parts of requests that are set when they change."""
    lines: list[str] = []
    types: list[str] = []
    for event in events:
        if event.type != "register_set" or not event.data["key"].startswith("settings.request."):
            types.append(event.type)
        if not event.more:
            lines.append(" ".join(types))
            types = []
    return lines


@pytest.mark.parametrize("kept", [False, True], ids=["memory", "jsonl"])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_log_has(row: Row, kept: bool, tmp_path: Path) -> None:
    found = log_of(row.program, f"jsonl:{tmp_path}" if kept else None)
    assert appends(found) == ["session_created", *row.log.split("\n")]


def test_a_last_answer_is_stored_before_hooks_and_subscribers_hear_of_it() -> None:
    row = ROWS["a turn"]
    apart = row.log.replace(LAST, f"{REPLY}\nturn_completed").split("\n")

    def stored_with(prepare: Callable[[SessionRegistry, Hooks], object]) -> list[str]:
        models, sessions, hooks = models_with({}), SessionRegistry(), Hooks()
        models.mock.add({"text": "ok"})
        sessions.open("s")
        prepare(sessions, hooks)
        run_loop(Runtime(models, sessions, hooks=hooks), "go", "sys", {"provider": "mock", "session_id": "s"})
        session = sessions.session("s")
        assert session
        return appends(session.events())[1:]

    assert stored_with(lambda sessions, hooks: None) == row.log.split("\n")
    assert stored_with(lambda sessions, hooks: hooks.add("PostAgentTurn", lambda payload: None)) == apart
    assert stored_with(lambda sessions, hooks: sessions.subscribe("s", lambda event: None)) == apart


def only(events: list[Any], type: str) -> Any:
    """The payload of the one event of that type."""
    (found,) = [event for event in events if event.type == type]
    return found.data


def test_a_turn_that_ends_with_a_handoff_says_so() -> None:
    events = log_of(acting(HANDOFF), None)
    assert only(events, "handoff").items() >= {"target_agent_id": "you", "reason": "r"}.items()
    assert only(events, "handoff")["context"].startswith("<handoff>")
    assert only(events, "turn_completed")["turn_stop_reason"] == "handoff"


def test_a_handoff_before_another_call_doesnt_end_the_turn() -> None:
    first = 'llm_mock({tool_calls: [{id: "b", name: "act", arguments: {first: true}}]})\n'
    events = log_of(first + acting(f'if a.first ?? false {{ {HANDOFF} }} else {{ "x" }}'), None)
    assert only(events, "handoff")["target_agent_id"] == "you"
    assert only(events, "turn_completed")["turn_stop_reason"] == "completed"


@pytest.mark.parametrize(("seconds", "deltas"), [(0.0, ["a"]), (0.25, ["a", "b", "c"]), (0.1, ["a", "bcd"])])
def test_output_is_stored_at_most_four_times_a_second(seconds: float, deltas: list[str]) -> None:
    times = [0.0]
    sessions = SessionRegistry(world=world_with(monotonic=lambda: times[0]))
    models = models_with({})
    models.mock.add({"tool_calls": [{"id": "c", "name": "act"}]})
    models.mock.add({"text": "ok"})

    def act(_: Any) -> Iterator[str]:
        for piece in "abcd" if seconds == 0.1 else "abc":
            yield piece
            times[0] += seconds

    tools = {"_type": "tool_registry", "tools": [{"name": "act", "description": "Act", "handler": act}]}
    given = {"provider": "mock", "session_id": "s", "tools": tools, "tool_format": "native"}
    run_loop(Runtime(models, sessions), "go", None, given)
    session = sessions.session("s")
    assert session
    shown = [event.data["delta"] for event in session.events() if event.type == "tool_output_delta"]
    whole = only(session.events(), "tool_completed")["output"]
    assert (shown, whole.startswith("".join(deltas))) == (deltas, True)


def test_a_worker_is_known_by_its_own_id_and_no_transcript_shows_it() -> None:
    row = ROWS["a stage's worker"]
    vm = Vm()
    vm.run_source(program_of(row.program, None))
    session = vm.sessions.session("s")
    assert session
    events = [event for event in session.events() if event.type.startswith("child_")]
    asked, ended = events[0].data, events[2].data
    assert asked["child_id"].startswith("worker_")
    assert asked["metadata"] == {
        "worker": "stage",
        "detached": True,
    }
    assert {event.data["child_id"] for event in events} == {asked["child_id"]}
    assert {event.turn_id for event in events} == {session.events()[1].id}
    assert (ended["summary"], ended["artifact_ids"]) == ("inner", events[3].data["artifact_ids"])
    kept = only(session.events(), "artifact_recorded")
    assert kept["child_id"] == asked["child_id"]
    assert kept["artifact"].items() >= {"id": ended["artifact_ids"][0], "size": 5}.items()
    shown = {event["kind"] for event in (vm.sessions.snapshot("s") or {})["events"]}
    assert not any(kind.startswith("sub_agent") for kind in shown)


def test_a_worker_outlives_the_turn_that_started_it() -> None:
    program = (
        "fn stop() { spawn_agent({task: 'sub', node: NODE}); throw 'no' }".replace("'", '"')
        + '\ncalls()\nllm_mock({error: {category: "auth"}})\n'
        + "let r = try { loop(acting({ a -> try { stop() } })) }"
    )
    events = log_of(program, None)
    assert [event.type for event in events if event.type.startswith("child_")][:1] == ["child_requested"]
    assert "child_canceled" not in {event.type for event in events}


def test_an_approval_by_a_callback_is_automated() -> None:
    events = log_of(ROWS["an escalation that is denied"].program, None)
    asked, resolved = only(events, "approval_requested"), only(events, "approval_resolved")
    assert asked.items() >= {"session_id": "s", "tool": "act", "args": {}, "kind": "permission"}.items()
    assert asked["metadata"]["reason"] == "permission denied by deny rule: act"
    assert (resolved["id"], resolved["decision"], resolved["automated"]) == (asked["id"], "deny", True)


def test_a_tool_that_is_retried_says_so() -> None:
    class Bridge:
        tries = 0

        def list(self) -> list[dict[str, Any]]:
            return []

        def call(self, name: str, arguments: dict[str, Any]) -> str:
            self.tries += 1
            if self.tries < 3:
                raise ConnectionError("gone")
            return "x"

    models = models_with({})
    models.mock.add({"tool_calls": [{"id": "c", "name": "act"}]})
    models.mock.add({"text": "ok"})
    sessions = SessionRegistry(world=models.world)
    models.world.host.bridge = Bridge()
    tools = [{"name": "act", "description": "Act", "executor": "host_bridge"}]
    given = {"provider": "mock", "session_id": "s", "tools": {"_type": "tool_registry", "tools": tools}}
    given |= {"tool_format": "native", "tool_retries": 2, "tool_backoff_ms": 0}
    run_loop(Runtime(models, sessions), "go", None, given)
    session = sessions.session("s")
    assert session
    retries = [event.data for event in session.events() if event.type == "escalation_retried"]
    assert [retry["attempt"] for retry in retries] == [1, 2]
    assert retries[0].items() >= {"scope": "tool", "target": "act", "error": "gone"}.items()


def test_a_request_that_stays_too_long_fails_after_one_more_call() -> None:
    error = 'llm_mock({error: {category: "generic", message: "maximum context length"}})\n'
    options = '{compaction: {strategy: "hybrid", keep_last: 2}}'
    events = log_of(f"{TALK}{error * 2}let r = try {{ loop(tool_registry(), {options}) }}", None)
    types = [event.type for event in events]
    assert (types.count("step_started"), types.count("escalation_retried")) == (2, 1)
    assert only(events, "turn_completed")["turn_stop_reason"] == "failed"


def test_an_asset_that_a_session_takes_over_is_recorded_once() -> None:
    sessions = SessionRegistry()
    sessions.open("s")
    asset = {"_type": "transcript_asset", "id": "a1", "kind": "blob", "title": "Old", "text": "body"}
    transcript = {"messages": [{"role": "user", "content": "a"}], "assets": [asset]}
    sessions.store_transcript("s", transcript)
    sessions.store_transcript("s", transcript)
    session = sessions.session("s")
    assert session
    kept = only(session.events(), "artifact_recorded")["artifact"]
    assert kept == {
        "id": "a1",
        "kind": "blob",
        "uri": "artifact:a1",
        "label": "Old",
        "size": 4,
        "digest": "sha256:230d8358dc8e8890b4c58deeb62912ee2f20357ae92a5cc861b98e68fe31acb5",
        "producer_session_id": "s",
    }
