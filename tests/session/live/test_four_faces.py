"""One session, driven by agent_session_*, std/session, agent loops and Python in random order.

Whatever one of them does, all of them see the same at once: messages, forks, registers, live clients; and
who observes by one of them hears what the others do. Spec: 10 §C7.2, §C9.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy import Vm
from harnpy.session import SessionRuntime
from harnpy.world import World
from harnpy.world.streams import RealStreams

STORES = ["memory:", "jsonl:{}/log?durability=relaxed", "sqlite:{}/s.db?durability=relaxed"]


class Program:
    """A Vm that runs one statement after the other on the session ``s`` of a store."""

    def __init__(self, url: str) -> None:
        self._out: list[str] = []
        self.vm = Vm(World(streams=RealStreams(stdout=self._out.append, stderr=self._out.append)))
        self.url = url
        self.asked(f"""
            session_create({{id: "s", store: {json.dumps(url)}}})
            agent_session_open("s", {{store: {json.dumps(url)}}})
            nil""")
        self.runtime = SessionRuntime(self.vm.sessions.stores.of(url))

    def asked(self, statements: str) -> Any:
        """Return the value of the last of the statements."""
        *first, last = statements.strip().splitlines()
        store = f"session_store({json.dumps(self.url)})"
        printed = f"println(json_stringify({last.strip()}))"
        self._out.clear()
        self.vm.run_source("\n".join(['import "std/session"', store, *first, printed]))
        return json.loads("".join(self._out))


def said(role: str, text: str) -> str:
    return json.dumps({"role": role, "content": text})


def answered(program: Program, call: str) -> None:
    program.asked(f"""
        llm_mock({{tool_calls: [{{name: "look", arguments: {{}}}}]}})
        llm_mock({{text: "answer"}})
        let handled = {{parameters: {{}}, handler: {{ args -> "seen" }}}}
        let look = tool_define(tool_registry(), "look", "Look.", handled)
        let options = {{provider: "mock", tool_format: "native", tools: look}}
        let result = {call}
        nil""")


def fork(program: Program, name: str, call: str) -> None:
    program.asked(f"{call.format(json.dumps(name))} != nil")


Step = Callable[[Program, int], None]
STEPS: dict[str, Step] = {
    "agent_session_inject": lambda p, n: p.asked(f'agent_session_inject("s", {said("user", f"a{n}")})'),
    "agent_session_trim": lambda p, n: p.asked(f'agent_session_trim("s", {n % 7})'),
    "agent_session_fork": lambda p, n: fork(p, f"a{n}", 'agent_session_fork("s", {})'),
    "agent_session_set_scratchpad": lambda p, n: p.asked(f'agent_session_set_scratchpad("s", {{n: {n}}})'),
    "agent_session_attach": lambda p, n: p.asked(
        f'agent_session_attach("s", "c{n % 2}", {{mode: "observer"}})'
    ),
    "agent_loop": lambda p, n: answered(p, f'agent_loop("l{n}", nil, options + {{session_id: "s"}})'),
    "session_send": lambda p, n: answered(p, f'session_send("s", "s{n}", options)'),
    "session_add_history": lambda p, n: p.asked(f'session_add_history("s", [{said("user", f"h{n}")}])'),
    "session_fork": lambda p, n: fork(p, f"s{n}", 'session_fork("s", {{id: {}}})'),
    "session_set": lambda p, n: p.asked(f'session_set("s", "system_prompt", "p{n}")'),
    "session_execute": lambda p, n: p.asked(
        f'session_execute("s", "write_metadata", {{key: "k", value: {n}}})'
    ),
    "session_reset": lambda p, n: p.asked('session_reset("s")'),
    "runtime.append": lambda p, n: p.runtime.get("s").add_history([{"role": "user", "content": f"p{n}"}]),
    "runtime.send": lambda p, n: p.runtime.send("s", f"r{n}", agent=lambda messages, turn: f"reply {n}"),
    "runtime.fork": lambda p, n: p.runtime.get("s").fork(f"r{n}"),
    "runtime.set": lambda p, n: p.runtime.get("s").set("scratchpad", {"n": -n}),
    "registry.inject": lambda p, n: p.vm.sessions.inject("s", {"role": "user", "content": f"g{n}"}),
    "registry.fork": lambda p, n: p.vm.sessions.fork("s", f"g{n}"),
}


def texts(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]


def seen(program: Program) -> Iterator[tuple[str, Any]]:
    """What each of them sees of the session."""
    by_snapshot = program.asked('agent_session_snapshot("s")')
    yield (
        "agent_session_*",
        (
            texts(by_snapshot["messages"]),
            by_snapshot["child_ids"],
            by_snapshot["scratchpad"],
            by_snapshot["system_prompt"],
        ),
    )
    yield (
        "ancestry",
        (
            texts(program.vm.sessions.messages("s")),
            program.vm.sessions.ancestry("s")["child_ids"],
            program.vm.sessions.scratchpad("s"),
            by_snapshot["system_prompt"],
        ),
    )
    messages, children, scratchpad, prompt = program.asked(
        '[session_messages("s"), session_children("s").map({ info -> info.id }), '
        'session_get("s", "scratchpad"), session_get("s", "system_prompt")]'
    )
    yield "std/session", (texts(messages), children, scratchpad, prompt)
    session, forks = program.runtime.get("s"), program.runtime.children("s")
    yield (
        "SessionRuntime",
        (
            texts(session.messages()),
            [info.id for info in forks],
            session.get("scratchpad"),
            session.get("system_prompt"),
        ),
    )


@pytest.mark.parametrize("url", STORES)
@settings(max_examples=6, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=10))
def test_all_see_what_one_does(url: str, steps: list[str]) -> None:
    with TemporaryDirectory() as directory:
        program = Program(url.format(directory))
        heard: list[int] = []
        program.runtime.get("s").observe(lambda event: heard.append(event.seq))
        known = program.runtime.get("s").seq
        for number, step in enumerate(steps):
            STEPS[step](program, number)
            views = dict(seen(program))
            assert len({json.dumps(view, sort_keys=True) for view in views.values()}) == 1, (step, views)
            session = program.runtime.get("s")
            assert program.asked('session_seq("s")') == session.seq
            assert heard == list(range(known + 1, session.seq + 1))
            clients = program.asked('agent_session_live_clients("s")')
            assert clients == [*session.view.clients.values()]
        program.runtime.close()
