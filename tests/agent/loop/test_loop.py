"""The agent loop without tools: turns, completion, budgets, events, results, sessions (07 §6–7, 9)."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from harnpy.agent.loop.loop import run_loop
from harnpy.agent.runtime import Runtime
from harnpy.faults import Fault, MisuseError, OptionError
from harnpy.llm.errors import CallError
from harnpy.session import SessionRegistry
from tests.worlds import models_with

NUDGE = '<runtime_feedback kind="nudge">\nContinue — make progress in your reply.\n</runtime_feedback>'


class Program:
    """The models and sessions of one program."""

    def __init__(self, *replies: Any) -> None:
        self.models = models_with({})
        self.sessions = SessionRegistry()
        for reply in replies:
            self.models.mock.add({"text": reply} if isinstance(reply, str) else reply)

    def loop(self, message: str = "go", system: str | None = None, **options: Any) -> dict[str, Any]:
        return run_loop(Runtime(self.models, self.sessions), message, system, {"provider": "mock", **options})

    def listen(self, id: str, *fields: str) -> list[Any]:
        heard: list[Any] = []
        self.sessions.subscribe(id, lambda e: heard.append((e["type"], *(e.get(field) for field in fields))))
        return heard

    def sent(self, call: int) -> list[Any]:
        return [message["content"] for message in self.models.mock.calls()[call]["messages"]]


def contents(transcript: dict[str, Any]) -> list[Any]:
    return [message["content"] for message in transcript["messages"]]


# One turn.


def test_a_plain_loop_is_one_turn() -> None:
    result = Program().loop("continue the greeting")
    answer = "Mock response to 3-word prompt: continue the greeting"
    assert (result["status"], result["text"], result["visible_text"]) == ("done", answer, answer)
    assert contents(result["transcript"]) == ["continue the greeting", answer]
    assert result["llm"] | {"duration_ms": 0} == {
        "iterations": 1,
        "duration_ms": 0,
        "input_tokens": 21,
        "output_tokens": 30,
    }
    assert result["tools"] == {"calls": [], "successful": [], "rejected": [], "mode": "text"}
    assert (result["daemon_state"], result["daemon_snapshot_path"]) == ("active", None)
    assert (result["deferred_user_messages"], result["ledger_done_rejections"]) == ([], 0)
    assert (result["trace"]["llm_calls"], result["trace"]["status"]) == (1, "done")
    assert "iterations" not in result


@pytest.mark.parametrize("session", [{}, {"session_id": "s"}], ids=["anonymous", "session"])
@pytest.mark.parametrize("calls", [[], [{"name": "act"}]], ids=["plain", "tool"])
def test_a_loop_leaves_nothing_to_the_garbage_collector(session: dict[str, Any], calls: list[Any]) -> None:
    program = Program(*({"tool_calls": calls}, "done") * 2) if calls else Program("done", "done")
    runtime = Runtime(program.models, program.sessions)
    tools = [{"name": "act", "parameters": {}, "handler": lambda arguments: "done"}]
    options = {"provider": "mock", "tools": tools, "tool_format": "native", **session}
    run_loop(runtime, "go", None, options)
    gc.collect()
    gc.disable()
    try:
        run_loop(runtime, "go on", None, options)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_no_system_prompt_is_none() -> None:
    program = Program()
    program.loop(system="  ")
    assert program.models.mock.calls()[0]["system"] is None


def test_the_transcript_of_an_anonymous_loop() -> None:
    program = Program({"text": "a", "thinking": "hm", "thinking_summary": "h"})
    transcript = program.loop()["transcript"]
    kinds = ["message", "message", "provider_payload", "private_reasoning", "thinking_summary"]
    assert [event["kind"] for event in transcript["events"]] == kinds
    assert transcript["events"][2]["metadata"] | {"model": "?"} == {
        "model": "?",
        "input_tokens": 7,
        "output_tokens": 30,
        "tool_calls": [],
        "thinking_summary": "h",
        "tool_calling_mode": "text",
        "structural_experiment": None,
    }
    assert transcript["events"][3]["visibility"] == "private"
    assert (transcript["state"], transcript["assets"]) == ("active", [])
    assert transcript["id"].startswith("agent_session_")
    assert program.sessions.ids() == []


def test_messages_in_the_options_replace_the_prompt() -> None:
    program = Program()
    messages = [{"role": "assistant", "content": "a"}, "dropped", {"content": "b"}]
    result = program.loop("not sent", messages=messages)
    assert program.sent(0) == ["a", "b"]
    assert [message["role"] for message in result["transcript"]["messages"]] == [
        "assistant",
        "user",
        "assistant",
    ]


# Persistence.


def test_a_persistent_loop_nudges_until_the_sentinel_comes() -> None:
    program = Program("thinking", "There. ##DONE##")
    result = program.loop(persistent=True)
    assert (result["status"], result["llm"]["iterations"]) == ("done", 2)
    assert (result["text"], result["visible_text"]) == ("thinkingThere. ##DONE##", "There. ##DONE##")
    assert program.sent(1) == ["go", "thinking", NUDGE]
    system = program.models.mock.calls()[0]["system"]
    assert "You MUST keep working until the current request is complete." in system
    assert "include ##DONE## exactly once" in system


def test_the_system_prompt_is_the_callers_and_then_the_loops() -> None:
    program = Program("##DONE##")
    program.loop(system=" Be brief. ", persistent=True)
    assert program.models.mock.calls()[0]["system"].startswith("Be brief.\n\nYou MUST keep working")


@pytest.mark.parametrize(
    ("reply", "options", "status"),
    [
        ("all <done>##DONE##</done>", {}, "done"),
        ("<done>##DONE##</done>", {}, "done"),
        ("<assistant_prose>x</assistant_prose><done>##DONE##</done>", {}, "stuck"),
        ("<assistant_prose>x</assistant_prose><done>##DONE##</done>", {"tool_format": "native"}, "done"),
        ("<user_response>x</user_response>", {}, "done"),
        ("<user_response> </user_response>", {}, "stuck"),
        ("<user_response>x</user_response>", {"turn_policy": {"allow_done_sentinel": False}}, "stuck"),
        ("READY", {"done_sentinel": "READY"}, "done"),
        ("##DONE##", {"exit_when_verified": True}, "stuck"),
        ("next_phase: plan\nnext_phase: build", {"break_unless_phase": "plan"}, "done"),
        ("next_phase: plan", {"break_unless_phase": "plan"}, "stuck"),
        ("next_phase: build", {}, "stuck"),
    ],
)
def test_completion(reply: str, options: dict[str, Any], status: str) -> None:
    assert Program(reply).loop(persistent=True, max_nudges=0, **options)["status"] == status


def test_an_unverified_completion_is_answered_before_the_turns_message() -> None:
    program = Program("##DONE##", "x")
    program.loop(persistent=True, max_iterations=2, exit_when_verified=True)
    assert 'kind="verification_gate"' in program.sent(1)[1]
    assert program.sent(1)[2] == "##DONE##"


def test_tagged_replies_are_recorded_in_canonical_form() -> None:
    result = Program("stray <user_response> b </user_response>").loop()
    assert contents(result["transcript"])[1] == "<user_response>\nb\n</user_response>"
    assert result["visible_text"] == "b"


def test_too_many_text_turns_are_a_stuck_loop() -> None:
    program = Program(*["x" * 300] * 3)
    heard = program.listen("s", "max_nudges", "last_iteration", "tail_excerpt")
    result = program.loop(session_id="s", persistent=True, max_nudges=2)
    assert (result["status"], result["transcript"]["state"]) == ("stuck", "paused")
    assert [event for event in heard if event[0] == "loop_stuck"] == [("loop_stuck", 2, 2, "x" * 240 + "…")]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"nudge": "Go on."}, "Go on."),
        ({"turn_policy": {"require_action_or_yield": True}}, "Keep prose brief, then"),
        (
            {"turn_policy": {"require_action_or_yield": True, "max_prose_chars": 9}},
            "Keep prose to at most 9 visible characters, then",
        ),
    ],
)
def test_nudges(options: dict[str, Any], text: str) -> None:
    program = Program("x", "x")
    program.loop(persistent=True, max_iterations=2, **options)
    assert program.sent(1)[2].startswith(f'<runtime_feedback kind="nudge">\n{text}')


def test_native_loops_demand_an_action_first() -> None:
    program = Program("x", "y")
    heard = program.listen("s", "turn_info")
    policy = {"require_action_or_yield": True}
    result = program.loop(session_id="s", tool_format="native", turn_policy=policy, max_nudges=1)
    assert result["status"] == "stuck"
    assert [content[:40] for content in contents(result["transcript"])] == [
        "go",
        '<runtime_feedback kind="action_required"',
    ]
    turns = [event[1] for event in heard if event[0] == "iteration_end"]
    assert [(turn["failed"], turn["action_required"]) for turn in turns] == [(True, True), (True, True)]


def test_long_visible_prose_is_cut_and_the_record_is_whole() -> None:
    result = Program("abcdef").loop(turn_policy={"max_prose_chars": 3})
    note = "<assistant prose truncated by turn policy; keep prose brief and act>"
    assert result["visible_text"] == f"abc\n\n{note}"
    assert contents(result["transcript"])[1] == "abcdef"


def test_an_enormous_reply_is_cut_in_the_history() -> None:
    result = Program("x" * 131073).loop()
    note = "<assistant turn truncated: raw length 131073 chars exceeded history cap (131072)>"
    assert contents(result["transcript"])[1] == "x" * 131072 + "\n\n" + note


# Ends.


def test_iterations_run_out() -> None:
    program = Program()
    heard = program.listen("s", "max_iterations")
    result = program.loop(session_id="s", persistent=True, max_iterations=2)
    assert (result["status"], result["llm"]["iterations"]) == ("budget_exhausted", 2)
    assert heard[-1] == ("budget_exhausted", 2)


def test_no_iterations_run_nothing() -> None:
    program = Program()
    result = program.loop(max_iterations=0)
    assert (result["status"], result["text"], result["llm"]["iterations"]) == ("done", "", 0)
    assert program.models.mock.calls() == []


@pytest.mark.parametrize(("profile", "iterations"), [("verifier", 1), ("completer", 1), ("researcher", 5)])
def test_profiles(profile: str, iterations: int) -> None:
    result = Program().loop(persistent=True, profile=profile)
    assert (result["status"], result["llm"]["iterations"]) == ("stuck", iterations)


def test_a_token_budget_ends_the_loop_after_the_turn() -> None:
    result = Program("a", "b").loop(persistent=True, token_budget=30)
    assert (result["status"], result["text"]) == ("budget_exhausted", "a")


def test_a_budget_ends_the_loop_before_the_call() -> None:
    program = Program("a")
    heard = program.listen("s", "turn_info")
    result = program.loop(session_id="s", budget={"max_output_tokens": 1})
    assert (result["status"], program.models.mock.calls()) == ("budget_exhausted", [])
    info = {"iteration": 0, "failed": False, "text": "", "status": "budget_exhausted"}
    assert heard == [("turn_start", None), ("iteration_start", None), ("iteration_end", info)]


def test_tools_that_had_to_succeed_didnt() -> None:
    assert Program().loop(require_successful_tools=["run"])["status"] == "failed"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"profile": "x"},
            MisuseError,
            "agent_loop: profile must be one of tool_using, researcher, verifier, completer; got `x`",
        ),
        (
            {"native_tool_fallback": "x"},
            MisuseError,
            "agent_loop: native_tool_fallback must be one of allow, allow_once, reject; got `x`",
        ),
        (
            {"tools": [{"name": "f"}]},
            MisuseError,
            "agent_loop: tool 'f' has no executable backend — attach a `handler`, or declare the",
        ),
        (
            {"mcp_servers": "x"},
            MisuseError,
            "agent_loop: `mcp_servers` must be a list of server config dicts",
        ),
        ({"transcript": 1}, OptionError, "llm_call / agent_loop: the `transcript` option was removed. Open"),
    ],
)
def test_options_that_make_no_loop(options: dict[str, Any], error: type[Fault], message: str) -> None:
    program = Program()
    with pytest.raises(error) as caught:
        program.loop(session_id="s", **options)
    assert str(caught.value).startswith(message)
    assert program.sessions.ids() == []


# Sessions.


def test_two_loops_on_one_session_leave_four_messages() -> None:
    program = Program("one", "two")
    program.loop("first", session_id="s")
    second = program.loop("second", session_id="s")
    assert contents(second["transcript"]) == ["first", "one", "second", "two"]
    assert program.sessions.length("s") == 4
    assert program.sent(1) == ["first", "one", "second"]
    snapshot = program.sessions.snapshot("s") or {}
    kinds = [event["kind"] for event in snapshot["events"]]
    assert kinds == ["message"] * 4 + ["provider_payload"] * 2
    assert snapshot["state"] == "active"
    assert [event["kind"] for event in second["transcript"]["events"]] == ["message"] * 4 + [
        "provider_payload"
    ]


def test_the_session_remembers_the_callers_system_prompt() -> None:
    program = Program("##DONE##")
    program.loop(system="Be brief.", session_id="s", persistent=True, tool_format="native")
    snapshot = program.sessions.snapshot("s") or {}
    assert (snapshot["system_prompt"], snapshot["tool_format"]) == ("Be brief.", "native")


def test_stored_messages_stay_as_they_are_and_results_are_plain() -> None:
    program = Program("a")
    program.sessions.open("s")
    message = {"role": "user", "content": "x", "metadata": {"client": "web"}}
    program.sessions.inject("s", {**message, "extra": True})
    result = program.loop(session_id="s")
    assert result["transcript"]["messages"][0] == message
    assert program.sessions.messages("s")[0] == {**message, "extra": True}


def test_tool_results_are_sent_as_blocks() -> None:
    program = Program("a")
    program.sessions.open("s")
    call = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    program.sessions.inject("s", {"role": "assistant", "content": [call]})
    program.sessions.inject("s", {"role": "tool_result", "tool_use_id": "t", "content": "r"})
    program.loop(session_id="s")
    assert program.sent(0)[1] == [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]
    assert program.sessions.messages("s")[1]["role"] == "tool_result"


def test_a_blank_session_id_is_an_anonymous_loop() -> None:
    program = Program()
    program.loop(session_id="  ")
    assert program.sessions.ids() == []


def test_the_session_is_current_while_the_loop_runs_also_an_anonymous_one() -> None:
    program = Program()
    seen: list[str | None] = []
    program.sessions.subscribe("s", lambda event: seen.append(program.sessions.current_id()))
    program.loop(session_id="s")
    assert set(seen) == {"s"}
    assert program.sessions.current_id() is None


def test_a_failing_model_ends_the_loop_with_its_error_and_keeps_the_session() -> None:
    error = {"error": {"category": "auth", "message": "no key"}}
    program = Program("one", error)
    with pytest.raises(CallError, match="no key"):
        program.loop(session_id="s", persistent=True)
    assert [message["content"] for message in program.sessions.messages("s")] == ["go", "one", NUDGE]
    assert program.sessions.current_id() is None
    program.sessions.inject("s", {"role": "user", "content": "again"})
    assert program.loop(session_id="s")["status"] == "done"


def test_transport_errors_are_tried_again_twice_by_default() -> None:
    failures = [{"error": {"category": "overloaded", "message": "x"}}] * 2
    assert Program(*failures, "a").loop()["text"] == "a"


def test_a_session_closed_meanwhile_is_not_stored() -> None:
    program = Program("a")
    program.sessions.open("s")
    program.sessions.subscribe("s", lambda e: e["type"] == "turn_start" and program.sessions.close("s"))
    assert program.loop(session_id="s")["status"] == "done"
    assert not program.sessions.exists("s")


# Events and what comes in.


def test_the_order_of_events() -> None:
    program = Program("a", "##DONE##")
    heard = program.listen("s", "session_id", "iteration")
    program.loop(session_id="s", persistent=True)
    assert heard == [
        ("turn_start", "s", 0),
        ("iteration_start", "s", 0),
        ("iteration_end", "s", 0),
        ("turn_start", "s", 1),
        ("iteration_start", "s", 1),
        ("iteration_end", "s", 1),
    ]


@pytest.mark.parametrize(
    ("replies", "options", "infos"),
    [
        (["a"], {}, [{"failed": False, "text": "a"}]),
        (
            ["a", "##DONE##"],
            {"persistent": True},
            [
                {"failed": False, "text": "a", "status": "continue"},
                {"failed": False, "text": "##DONE##", "sentinel_hit": True},
            ],
        ),
        (
            ["a"],
            {"persistent": True, "max_nudges": 0},
            [{"failed": True, "text": "a", "status": "stuck"}],
        ),
    ],
)
def test_turn_infos(replies: list[str], options: dict[str, Any], infos: list[dict[str, Any]]) -> None:
    program = Program(*replies)
    heard = program.listen("s", "turn_info")
    program.loop(session_id="s", **options)
    ends = [event[1] for event in heard if event[0] == "iteration_end"]
    assert ends == [{"iteration": i, **info} for i, info in enumerate(infos)]


def test_feedback_of_one_turn_arrives_in_the_next() -> None:
    program = Program("a", "##DONE##")
    heard = program.listen("s", "kind", "content")

    def on_event(event: dict[str, Any]) -> None:
        if event["type"] == "iteration_end" and event["iteration"] == 0:
            program.sessions.inject_feedback("s", "hint & more", " be quick ")

    program.sessions.subscribe("s", on_event)
    program.loop(session_id="s", persistent=True)
    expected = '<runtime_feedback kind="hint &amp; more">\nbe quick\n</runtime_feedback>'
    assert program.sent(1) == ["go", "a", NUDGE, expected]
    assert ("feedback_injected", "hint & more", " be quick ") in heard


def test_a_prefill_is_for_one_turn_and_recorded_with_the_answer() -> None:
    program = Program("world", "##DONE##")
    program.sessions.inject_feedback("s", "prefill_assistant", "Hello ")
    result = program.loop(session_id="s", persistent=True)
    assert contents(result["transcript"]) == ["go", "Hello world", NUDGE, "##DONE##"]


def test_a_message_injected_by_a_subscriber_is_sent_with_the_next_call() -> None:
    program = Program("a", "##DONE##")

    def on_event(event: dict[str, Any]) -> None:
        if event["type"] == "iteration_end" and event["iteration"] == 0:
            program.sessions.inject("s", {"role": "user", "content": "by the way"})

    program.sessions.subscribe("s", on_event)
    result = program.loop(session_id="s", persistent=True)
    assert program.sent(1) == ["go", "a", NUDGE, "by the way"]
    assert contents(result["transcript"]) == ["go", "a", NUDGE, "by the way", "##DONE##"]


def test_a_loop_inside_a_loop_is_the_current_one_and_keeps_to_itself() -> None:
    program = Program("outer", "inner")
    seen: list[str | None] = []

    def on_event(event: dict[str, Any]) -> None:
        if event["type"] == "iteration_start":
            program.sessions.subscribe("inner", lambda e: seen.append(program.sessions.current_id()))
            program.loop(session_id="inner")
            seen.append(program.sessions.current_id())

    program.sessions.subscribe("outer", on_event)
    result = program.loop(session_id="outer")
    assert seen == ["inner", "inner", "inner", "outer"]
    assert contents(result["transcript"]) == ["go", "inner"]


def test_every_view_follows_from_the_log_after_loops() -> None:
    from harnpy.session.view import replay

    program = Program("a", "b", "##DONE##")
    program.loop(session_id="s")
    program.sessions.trim("s", 1)
    program.sessions.fork("s", "t")
    program.loop(session_id="t", persistent=True)
    session = program.sessions.session("t")
    assert session
    assert replay(session.events()).transcript("t") == session.view.transcript("t")
