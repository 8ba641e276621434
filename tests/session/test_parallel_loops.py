"""Many loops at once on sessions of their own: nobody sees anybody else's session (08 §1.1)."""

from __future__ import annotations

import pytest

from harnpy import Vm

pytestmark = pytest.mark.usefixtures("clock")

SOURCE = """
    let ids = range(10).map({ n -> "session-${n}" }).to_list()
    for id in ids {
      agent_subscribe(id, { e -> note(e.session_id, agent_session_current_id()) })
      agent_session_attach(id, "ui-${id}", {mode: "controller"})
      agent_session_attach(id, "observer")
    }

    fn drive(id) {
      agent_subscribe(id, { e ->
        sleep(1)
        if e.type == "iteration_end" {
          agent_session_heartbeat(id, "observer", {metadata: {at: agent_session_current_id()}})
          agent_session_client_inject_prompt(id, "ui-${id}", "seen from ${agent_session_current_id()}")
        }
      })
      let options = {session_id: id, provider: "mock", persistent: true, max_iterations: 4}
      agent_loop("start ${id}", nil, options)
      return agent_session_current_id()
    }

    let tasks = ids.map({ id -> spawn { drive(id) } })
    return {
      after: tasks.map({ t -> await(t) }),
      prompts: ids.map({ id ->
        agent_session_snapshot(id).messages.filter({ m -> m.content.starts_with("seen") })
      }),
      seen_at: ids.map({ id -> agent_session_live_clients(id)[1].metadata.at }),
    }
"""
TURNS = 4
EVENTS = TURNS * 3 + 1  # of a loop: its turns' starts and ends, and the used-up budget


def test_ten_loops_on_ten_sessions_each_see_their_own() -> None:
    heard: list[tuple[str, str]] = []
    vm = Vm()
    vm.register("note(session: string, current: string) -> nil", lambda *pair: heard.append(pair))
    result = vm.run_source(SOURCE)
    ids = [f"session-{n}" for n in range(10)]
    assert all(session == current for session, current in heard)
    assert sorted(session for session, _ in heard) == sorted(ids * EVENTS)
    assert len({session for session, _ in heard[:20]}) > 1, "they did run at the same time"
    assert result["after"] == [None] * 10
    assert result["seen_at"] == ids
    for id, prompts in zip(ids, result["prompts"], strict=True):
        assert [prompt["content"] for prompt in prompts] == [f"seen from {id}"] * TURNS
        assert {prompt["metadata"]["live_session"]["client_id"] for prompt in prompts} == {f"ui-{id}"}
