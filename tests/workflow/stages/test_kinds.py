"""What nodes do in a world without tasks, programs and workers: as a library (08 §7.3)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.agent.runtime import Runtime
from harnpy.faults import MisuseError
from harnpy.session import SessionStore
from harnpy.workflow.artifacts import normalised_artifact
from harnpy.workflow.execution.stage import loop_settings
from harnpy.workflow.execution.stage_kinds import run_node
from harnpy.workflow.execution.stage_work import Ended, StageSession, Work
from harnpy.workflow.graph import normalise_node
from harnpy.world import World
from harnpy.world.processes import Ended as Process
from tests.worlds import models_with, world_with

Dict = dict[str, Any]
ENV = {"HARN_LLM_PROVIDER": "mock"}


def a_runtime(**methods: Any) -> Runtime:
    return Runtime(models_with(ENV), SessionStore(world=world_with(get=ENV.get, **methods)))


def do(runtime: Runtime, node: Dict, texts: tuple[str, ...] = (), **work: Any) -> Ended:
    artifacts = [normalised_artifact({"text": text}, World()) for text in texts]
    given = {"execution": None, "session": StageSession("s", given=False), **work}
    return run_node(
        Work(
            runtime=runtime,
            node=normalise_node(node, "n"),
            task="t",
            artifacts=artifacts,
            transcript=None,
            run_id="r",
            stage_id="r:n:1",
            **given,
        )
    )


def test_branches_follow_one_another_without_tasks() -> None:
    runtime = a_runtime()
    for reply in ({"text": "one"}, {"error": {"category": "auth", "message": "no key"}}, {"text": "three"}):
        runtime.models.mock.add(reply)
    ended = do(runtime, {"kind": "map", "prompt": "p", "input_contract": {}}, ("a", "b", "c"))
    assert ended.result["text"] == "mapped 2 of 3 items"
    assert ended.result["failures"] == [{"index": 1, "status": "failed", "error": "no key"}]
    assert [artifact["text"] for artifact in ended.artifacts] == ["one", "three"]


def test_mistakes_of_ours_are_no_failures_of_branches() -> None:
    def broken(arguments: Dict) -> str:
        raise AssertionError

    runtime = a_runtime()
    runtime.sessions.world.ids.new = lambda: broken({})
    with pytest.raises(AssertionError):
        do(runtime, {"kind": "map", "map_policy": {"items": ["x"]}})


def test_commands_are_run_where_the_execution_says() -> None:
    calls = []

    async def run_program(argv: Any, cwd: str, env: Any) -> Process:
        calls.append((tuple(argv), cwd, dict(env)))
        return Process(1, -9, b"out", b"")

    runtime = a_runtime(run=run_program, cwd=lambda: "/w", all=dict)
    verify = {"kind": "verify", "verify": {"command": "make"}}
    with runtime.context().work_at({"cwd": "here", "env": {"A": "1"}}):
        ended = do(runtime, verify)
    do(runtime, verify)
    runtime.tasks.close()
    make = ("/bin/sh", "-lc", "make")
    assert calls == [(make, "/w/here", {"A": "1"}), (make, "/w", {})]
    assert (ended.result["exit_status"], ended.result["success"], ended.outcome) == (-1, False, "verified")


def test_what_a_world_lacks_is_said() -> None:
    async def no_programs(*given: Any) -> Process:
        raise OSError("no programs can be run here")

    runtime = a_runtime(run=no_programs)
    with pytest.raises(MisuseError, match="no programs can be run here"):
        do(runtime, {"kind": "verify", "verify": {"command": "make"}})
    runtime.tasks.close()
    with pytest.raises(MisuseError, match="no workers can be employed here"):
        do(a_runtime(), {"kind": "subagent"})


@pytest.mark.parametrize(("stored", "messages"), [(True, 2), (False, None)])
def test_a_single_call_leaves_its_messages_only_in_a_session_that_was_named(
    stored: bool, messages: int | None
) -> None:
    runtime = a_runtime()
    runtime.models.mock.add({"text": "hi"})
    ended = do(runtime, {}, session=StageSession("s", given=stored))
    assert ended.transcript is not None
    assert (ended.transcript["id"], len(ended.transcript["messages"])) == ("s", 2)
    exists = runtime.sessions.exists("s")
    assert (len(runtime.sessions.messages("s")) if exists else None) == messages


def test_how_often_loops_try_again_is_settled() -> None:
    node = normalise_node({"mode": "agent", "model_policy": {"max_iterations": 5}}, "n")
    settings = loop_settings(a_runtime(), node, "s", "p")
    wanted = {
        "persistent": True, "max_iterations": 5, "max_nudges": 3, "tool_retries": 0, "loop_detect_warn": 2,
        "loop_detect_block": 3, "loop_detect_skip": 4, "session_id": "s",
    }  # fmt: skip
    assert {key: getattr(settings.options, key) for key in wanted} == wanted
    assert (settings.request.retries, settings.request.backoff_ms) == (2, 2000)
    assert settings.compaction is None


def test_a_command_policy_is_never_dropped() -> None:
    for policy in ({"command_policy": {"deny": ["rm"]}}, {"policy": {"command_policy": {"deny": ["rm"]}}}):
        with pytest.raises(MisuseError, match="command_policy: unknown option key 'deny'"):
            do(a_runtime(), {"mode": "agent", "model_policy": policy})
