"""The adapters: domain errors become the right kind of Harn error, values cross unchanged."""

from __future__ import annotations

import pytest

from harnpy import Vm, VmError
from harnpy.world import World
from harnpy.world.streams import RealStreams


def run(source: str, stderr: list[str] | None = None) -> str:
    """What the statements print."""
    out: list[str] = []
    Vm(
        World(streams=RealStreams(stdout=out.append, stderr=(stderr if stderr is not None else out).append))
    ).run_source(source)
    return "".join(out).removesuffix("\n")


def caught(expression: str) -> str:
    return run(f"try {{ {expression} }} catch (e) {{ println(e) }}")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("agent_session_open(3)", "agent_session_open: `id` must be a string or nil"),
        ('agent_session_open("s", 3)', "agent_session_open: `opts` must be a dict or nil"),
        ("agent_session_length(3)", "agent_session_length: `id` must be a string"),
        ("agent_session_exists(nil)", "agent_session_exists: `id` must be a string"),
        ("agent_session_fork(3)", "agent_session_fork: `src` must be a string"),
        ('agent_session_fork("s", 3)', "agent_session_fork: `dst` must be a string or nil"),
        ('agent_session_fork_at("s", 1.0)', "agent_session_fork_at: `keep_first` must be an int"),
        ('agent_session_trim("s", nil)', "agent_session_trim: `keep_last` must be an int"),
        ('agent_session_trim("s", -1)', "agent_session_trim: `keep_last` must be >= 0"),
        ('agent_session_inject("s")', "agent_session_inject: unknown session id 's'"),
        (
            'agent_session_inject(agent_session_open("s"))',
            "agent_session_inject: `message` required",
        ),
        ('agent_session_inject(agent_session_open("s"), [])', "agent_session_inject: message must be a dict"),
        ('agent_session_close("s", 3)', "agent_session_close: `status` must be a string, dict, or nil"),
        (
            "agent_subscribe(3)",
            "Runtime error: agent_subscribe(session_id, callback): session_id must be a string",
        ),
        (
            'agent_subscribe("s")',
            "Runtime error: agent_subscribe(session_id, callback): callback closure required",
        ),
        (
            'agent_subscribe("s", 3)',
            "Runtime error: agent_subscribe(session_id, callback): callback must be a closure",
        ),
        (
            'agent_inject_feedback("s", 3, "x")',
            "Runtime error: agent_inject_feedback(session_id, kind, content): kind must be a string",
        ),
        ("llm_mock(3)", "Runtime error: llm_mock: expected a dict argument"),
        ("llm_mock_pop_scope()", "llm_mock_pop_scope: no scope to pop"),
        (
            'agent_loop("x", nil, {provider: "mock", profile: "p"})',
            "Runtime error: agent_loop: profile must be one of tool_using, researcher, verifier, completer; "
            "got `p`",
        ),
    ],
)
def test_errors_as_scripts_see_them(expression: str, text: str) -> None:
    assert caught(expression) == text


def test_a_failed_call_is_a_dict_from_llm_call_and_a_categorized_error_from_agent_loop() -> None:
    mock = 'llm_mock({error: {category: "auth", message: "no key"}})\n'
    call = 'try { llm_call("x", nil, {provider: "mock", model: "m"}) } catch (e) { println(e) }'
    assert run(mock + call) == (
        "{category: auth, kind: terminal, message: no key, model: m, provider: mock, reason: auth_failure}"
    )
    loop = 'try { agent_loop("x", nil, {provider: "mock"}) } catch (e) { println(e) }'
    assert run(mock + loop) == "Error [auth]: no key"


def test_a_snapshot_is_a_value_of_its_own() -> None:
    source = """
        let s = agent_session_open("s")
        agent_session_inject(s, {role: "user", content: [{type: "text", text: "a"}]})
        var snap = agent_session_snapshot(s)
        snap.messages[0].content[0].text = "changed"
        snap.messages = snap.messages + [1]
        agent_session_inject(s, {role: "user", content: "b"})
        println(agent_session_snapshot(s).messages)
        println(agent_session_snapshot(s).events.map({ e -> e.text }))
        println(len(snap.messages))
    """
    assert run(source) == (
        "[{content: [{text: a, type: text}], role: user}, {content: b, role: user}]\n[a, b]\n2"
    )


def test_what_is_injected_may_be_rebound_without_harm() -> None:
    source = """
        let s = agent_session_open()
        var m = {role: "user", content: "a"}
        agent_session_inject(s, m)
        m.content = "b"
        agent_session_inject(s, m)
        println(agent_session_snapshot(s).messages.map({ x -> x.content }))
    """
    assert run(source) == "[a, b]"


def test_subscribers_hear_in_order_and_their_errors_are_warnings() -> None:
    source = """
        agent_subscribe("s", { e -> throw "oops" })
        agent_subscribe("s", { e -> println("${e.type} ${agent_session_current_id()}") })
        agent_loop("x", nil, {provider: "mock", session_id: "s"})
        println(agent_session_current_id())
    """
    errors: list[str] = []
    assert run(source, errors) == "turn_start s\niteration_start s\niteration_end s\nnil"
    assert errors == ["warning: agent.subscriber: Thrown: oops\n"] * 3


def test_each_task_has_its_own_current_session() -> None:
    source = """
        fn drive(id) {
          var seen = []
          agent_subscribe(id, { e -> println("${e.session_id} ${agent_session_current_id()}") })
          agent_loop("x", nil, {provider: "mock", session_id: id})
        }
        let a = spawn { drive("a") }
        let b = spawn { drive("b") }
        await(a)
        await(b)
    """
    lines = run(source).splitlines()
    assert sorted(lines) == ["a a"] * 3 + ["b b"] * 3


def test_an_uncaught_session_error_is_thrown() -> None:
    with pytest.raises(VmError.Thrown) as error:
        run('agent_session_reset("nope")')
    assert error.value.value == "agent_session_reset: unknown session id 'nope'"


def test_two_vms_never_see_each_others_sessions() -> None:
    one, two = Vm(), Vm()
    one.run_source('agent_session_open("s")')
    assert one.sessions.exists("s")
    assert not two.sessions.exists("s")


def test_a_python_caller_shares_the_vms_sessions() -> None:
    out: list[str] = []
    vm = Vm(World(streams=RealStreams(stdout=out.append)))
    vm.sessions.open("s")
    vm.sessions.inject("s", {"role": "user", "content": "from Python"})
    vm.run_source('print(agent_session_snapshot("s").messages[0].content)')
    assert out == ["from Python"]
