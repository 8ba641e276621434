"""Laws of every loop, whatever the model says and the tools do (07 §6, §9.3; 08 §1.11–1.12)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from harnpy.agent.loop.loop import run_loop
from harnpy.agent.runtime import Runtime
from harnpy.agent.tool_registry import ToolFailure
from harnpy.faults import Interruption
from harnpy.llm.errors import CallError
from harnpy.session import SessionRegistry
from harnpy.session.messages import has_payload
from harnpy.session.transcript import plain_message
from tests.worlds import models_with

Dict = dict[str, Any]

STATUSES = ("done", "stuck", "budget_exhausted", "failed")

# What models say.

CALLS = [
    "<tool_call>\nok({ n: 1 })\n</tool_call>",
    "<tool_call>ok({ n: 2 })</tool_call>",
    "<tool_call>fail({})</tool_call>",
    "<tool_call>run({ out: 'exit_code=0' })</tool_call>",
    "<tool_call>run({ out: 'exit_code=1' })</tool_call>",
    "<tool_call>ledger({ action: 'mark', id: 'deliverable-1', status: 'done' })</tool_call>",
    "<tool_call>unknown({})</tool_call>",
    "<tool_call>no call</tool_call>",
    "<tool_call>ok({ n: </tool_call>",
    "<tool_call>ok({})\nok({})</tool_call>",
    "ok({ n: 3 })",
    "<ok({ n: 4 })>",
    '[{"id": "c", "function": {"name": "ok", "arguments": "{}"}}]',
]
PROSE = [
    "",
    "stray",
    "<assistant_prose>prose</assistant_prose>",
    "<user_response>answer</user_response>",
    "<done>##DONE##</done>",
    "<done></done>",
    "##DONE##",
    "next_phase: build",
    "<think>hm",
    "<odd>",
    '{"n": 1}',
    "ä" * 50,
]
TEXTS = st.lists(st.sampled_from(CALLS + PROSE), max_size=4).map("\n".join)
NAMES = st.sampled_from(["ok", "fail", "reject", "run", "read", "needy", "unknown", "ledger", "read_file"])
ARGUMENTS = st.sampled_from(
    [{}, {"n": 1}, {"n": "1", "limit": "2"}, {"need": "x", "out": "exit_code=0"}, {"__parse_error": "cut"}]
)
NATIVE_CALLS = st.lists(st.fixed_dictionaries({"name": NAMES, "arguments": ARGUMENTS}), max_size=4)
ERRORS = st.sampled_from(["timeout", "overloaded", "auth", "rate_limit", "schema_validation", "generic"])
MOCKS = st.one_of(
    st.fixed_dictionaries({"text": TEXTS}),
    st.fixed_dictionaries({"text": TEXTS, "tool_calls": NATIVE_CALLS}),
    st.fixed_dictionaries({"tool_calls": NATIVE_CALLS}),
    ERRORS.map(lambda category: {"error": {"category": category, "message": "m"}}),
)

# What programs want of a loop.

READING = {"kind": "read", "side_effect_level": "read_only"}
OPTIONS = st.fixed_dictionaries(
    {"max_iterations": st.integers(0, 6)},
    optional={
        "profile": st.sampled_from(["tool_using", "researcher", "verifier", "completer"]),
        "persistent": st.booleans(),
        "tool_format": st.sampled_from(["text", "native"]),
        "native_tool_fallback": st.sampled_from(["allow", "allow_once", "reject"]),
        "max_nudges": st.integers(0, 3),
        "llm_retries": st.integers(0, 2),
        "schema_retries": st.integers(0, 2),
        "output_schema": st.just({"type": "object", "required": ["n"]}),
        "done_sentinel": st.sampled_from(["##DONE##", "FINIS"]),
        "break_unless_phase": st.sampled_from(["plan", "build"]),
        "exit_when_verified": st.booleans(),
        "turn_policy": st.fixed_dictionaries(
            {"require_action_or_yield": st.booleans(), "allow_done_sentinel": st.booleans()}
        ),
        "stop_after_successful_tools": st.just(["run"]),
        "require_successful_tools": st.just(["ok"]),
        "loop_detect_warn": st.integers(0, 3),
        "loop_detect_skip": st.integers(0, 4),
        "token_budget": st.integers(0, 400),
        "budget": st.fixed_dictionaries({"max_input_tokens": st.integers(0, 2000)}),
        "deliverables": st.just(["docs"]),
        "prefill": st.just("<tool_call>"),
        "permissions": st.just({"deny": ["run"]}),
        "approval_policy": st.just({"require_approval": ["ok"]}),
        "policy": st.just({"tool_annotations": {"ok": READING, "read": READING}}),
        "tool_output_max_chars": st.just(200),
        "post_turn_callback": st.sampled_from([None, True, "look", {"stop": False, "message": "m"}]).map(
            lambda answer: lambda info: answer
        ),
    },
)
COMPACTION = st.fixed_dictionaries(
    {
        "compact_threshold": st.integers(0, 100),
        "compaction": st.fixed_dictionaries(
            {"type": st.sampled_from(["truncate", "hybrid"]), "keep_last": st.integers(0, 3)}
        ),
    }
)


def tool(name: str, handler: Callable[[Dict], Any] | None, **parameters: Any) -> Dict:
    return {"name": name, "description": name, "parameters": parameters, "handler": handler}


def failing(category: str) -> Callable[[Dict], Any]:
    def handler(arguments: Dict) -> Any:
        raise ToolFailure("no", category)

    return handler


TOOLS = [
    tool("ok", lambda arguments: f"ok {arguments.get('n')}"),
    tool("read", lambda arguments: "x" * 500),
    tool("run", lambda arguments: arguments.get("out")),
    tool("fail", failing("timeout")),
    tool("reject", failing("tool_rejected")),
    tool("needy", lambda arguments: "fed", need="string"),
    tool("read_file", None),
]


class Run:
    """One loop on the session `s`, and all that can be seen of it."""

    def __init__(self, mocks: list[Dict], options: Dict, tools: list[Dict] = TOOLS) -> None:
        self.models = models_with({}, warn=lambda topic, message: None)
        self.sessions = SessionRegistry()
        self.runtime = Runtime(self.models, self.sessions)
        self.events: list[Dict] = []
        self.sessions.subscribe("s", self.events.append)
        for mock in mocks:
            self.models.mock.add(mock)
        given = {"provider": "mock", "session_id": "s", "tools": tools, **options}
        self.result: Dict | None = None
        self.error: BaseException | None = None
        try:
            self.result = run_loop(self.runtime, "go", None, given)
        except (CallError, Interruption) as error:
            self.error = error

    def snapshot(self) -> Dict:
        snapshot = self.sessions.snapshot_value("s")
        assert snapshot is not None
        return snapshot

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


def check_pairs(messages: list[Dict]) -> None:
    """Each native call is answered once, in order, right behind the message that made it."""
    waiting: list[str] = []
    for message in messages:
        if message.get("role") == "tool":
            assert waiting
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        waiting = [call["id"] for call in message.get("tool_calls") or []]
    assert not waiting


def check_events(run: Run) -> None:
    types = run.types()
    starts = [event["iteration"] for event in run.events if event["type"] == "iteration_start"]
    ends = [event["iteration"] for event in run.events if event["type"] == "iteration_end"]
    assert starts == list(range(len(starts)))
    assert ends == starts[: len(ends)]
    assert len(ends) == len(starts) or (run.error is not None and len(ends) == len(starts) - 1)
    for before, after in pairwise([*run.events, {"type": None}]):
        if before["type"] == "turn_start":
            assert (after["type"], after["iteration"]) == ("iteration_start", before["iteration"])
        if before["type"] == "turn_end":
            assert (after["type"], after["turn_info"]) == ("iteration_end", before["turn_info"])
    assert types.count("turn_start") == len(starts)
    if "budget_exhausted" in types:
        assert types.index("budget_exhausted") > max(
            (n for n, type in enumerate(types) if type == "iteration_end"), default=-1
        )


def check_calls_heard(run: Run) -> None:
    """`tool_call`, then a failure at once, or the beginning and the end."""
    steps = [
        (event["tool_call_id"], event["status"])
        for event in run.events
        if event["type"] in ("tool_call", "tool_call_update")
    ]
    while steps:
        id, status = steps.pop(0)
        assert status == "pending"
        assert steps
        assert steps[0][0] == id
        if steps[0][1] == "in_progress":
            steps.pop(0)
        ended = steps.pop(0)
        assert ended[0] == id
        assert ended[1] in ("completed", "failed")


def check_result(run: Run, most: int) -> None:
    result = run.result
    assert result is not None
    assert result["status"] in STATUSES
    assert result["llm"]["iterations"] <= most
    assert result["transcript"]["state"] == ("active" if result["status"] == "done" else "paused")
    stored = [plain_message(message) for message in run.snapshot()["messages"]]
    assert stored == result["transcript"]["messages"]
    tools = result["tools"]
    assert set(tools["successful"]) <= set(tools["calls"])
    for names in (tools["successful"], tools["rejected"]):
        assert len(names) == len(set(names))
    assert result["trace"]["status"] == result["status"]


def check_session(run: Run) -> None:
    """Its events are in step with its messages."""
    snapshot = run.snapshot()
    told = [event for event in snapshot["events"] if event["kind"] in ("message", "tool_result")]
    assert [event["role"] for event in told] == [message["role"] for message in snapshot["messages"]]


def check_failure(run: Run) -> None:
    """The session holds what was said up to the failed call, and can be gone on with."""
    if isinstance(run.error, CallError):
        sent = run.models.mock.calls()[-1]["messages"]
        kept = run.snapshot()["messages"]
        contents = [m["content"] for m in sent if "<runtime_injection" not in str(m["content"])]
        assert [m["content"] for m in kept if has_payload(m) or m["role"] != "assistant"] == contents
    before = run.snapshot()["messages"]
    run.models.mock.clear()
    result = run_loop(run.runtime, "on", None, {"provider": "mock", "session_id": "s", "compaction": False})
    assert result["status"] == "done"
    assert run.snapshot()["messages"][: len(before)] == before


@given(st.lists(MOCKS, max_size=6), OPTIONS)
@example(
    [{"text": "<tool_call>\nok({ n: 1 })\n</tool_call>\n" * 2}],
    {"max_iterations": 1, "tool_format": "native"},
)
def test_every_loop_keeps_the_laws(mocks: list[Dict], options: Dict) -> None:
    run = Run(mocks, options)
    check_events(run)
    check_calls_heard(run)
    check_session(run)
    check_pairs(run.snapshot()["messages"])
    for call in run.models.mock.calls():
        check_pairs([message for message in call["messages"] if "metadata" not in message])
    assert run.types().count("iteration_start") <= options["max_iterations"]
    if run.error is None:
        check_result(run, options["max_iterations"])
    else:
        assert isinstance(run.error, CallError)
        assert run.error.category in {mock["error"]["category"] for mock in mocks if "error" in mock}
        check_failure(run)


@given(st.lists(MOCKS, max_size=6), OPTIONS, COMPACTION)
def test_compaction_breaks_no_law(mocks: list[Dict], options: Dict, compaction: Dict) -> None:
    run = Run(mocks, {**options, **compaction})
    check_events(run)
    check_calls_heard(run)
    check_session(run)
    if run.error is None:
        check_result(run, options["max_iterations"])


@given(st.lists(MOCKS, min_size=1, max_size=6), OPTIONS)
def test_an_interrupted_loop_leaves_a_session_to_go_on_with(mocks: list[Dict], options: Dict) -> None:
    def stop(arguments: Dict) -> Any:
        raise Interruption("stopped")

    stopping = [{**entry, "handler": stop} if entry["name"] == "ok" else entry for entry in TOOLS]
    run = Run(mocks, options, stopping)
    check_session(run)
    check_pairs(run.snapshot()["messages"])
    if run.error is not None:
        check_failure(run)


@given(st.lists(MOCKS, max_size=4), OPTIONS)
def test_an_anonymous_loop_does_the_same_and_stores_nothing(mocks: list[Dict], options: Dict) -> None:
    named = Run(mocks, options)
    anonymous = Run(mocks, {**options, "session_id": ""})
    assert (named.error is None) == (anonymous.error is None)
    if named.result is not None and anonymous.result is not None:
        for key in ("status", "text", "visible_text", "tools", "task_ledger"):
            assert anonymous.result[key] == named.result[key]
        assert anonymous.result["transcript"]["messages"] == named.result["transcript"]["messages"]
    assert anonymous.snapshot()["messages"] == []
