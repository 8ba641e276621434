"""A stage by itself: which options its loop gets, what it leaves (08 §7.3)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.agent.runtime import Runtime
from harnpy.faults import MisuseError
from harnpy.session import SessionStore
from harnpy.workflow.execution.stage import Stage, StageResult, read_stage_node
from harnpy.workflow.execution.stage_work import StageSession
from tests.worlds import models_with, world_with

Dict = dict[str, Any]
DONE = "<done>##DONE##</done>"


class Bench:
    def __init__(self, **env: str) -> None:
        self.models = models_with({"HARN_LLM_PROVIDER": "mock", **env})
        self.sessions = SessionStore(world=world_with(get=env.get))
        self.runtime = Runtime(self.models, self.sessions)

    def stage(self, **node: Any) -> Stage:
        return Stage(self.runtime, read_stage_node(node, "n"), StageSession("s", given=True))

    def run(self, *replies: Any, **node: Any) -> StageResult:
        for reply in replies:
            self.models.mock.add({"text": reply} if isinstance(reply, str) else reply)
        return self.stage(**node).run("t", [])


def tool(**more: Any) -> Dict:
    entry = {"name": "look", "description": "", "parameters": {}, "handler": lambda arguments: "x" * 9000}
    return {"_type": "tool_registry", "tools": [{**entry, **more}]}


CALL = {"tool_calls": [{"name": "look", "arguments": {}}]}


@pytest.mark.parametrize(
    ("env", "policy", "mode"),
    [
        ({}, {}, "text"),
        ({"HARN_AGENT_TOOL_FORMAT": "native"}, {}, "native"),
        ({"HARN_AGENT_TOOL_FORMAT": "native"}, {"tool_format": "text"}, "text"),
        ({}, {"tool_format": "native"}, "native"),
    ],
)
def test_the_tool_format_is_the_nodes_then_the_environments(env: Dict, policy: Dict, mode: str) -> None:
    policy = {**policy, "max_iterations": 1}
    for tools in (tool(), None):
        result = Bench(**env).run(CALL if tools else "hi", tools=tools, model_policy=policy).result
        assert result["tools"]["mode"] == mode


def test_a_sentinel_of_its_own_ends_the_loop() -> None:
    bench = Bench()
    made = bench.run("not ##DONE## yet", "All STOP here", mode="agent", done_sentinel="STOP")
    assert (made.result["status"], made.result["llm"]["iterations"]) == ("done", 2)
    assert made.succeeded


def test_a_loop_that_runs_out_of_turns_hasnt_succeeded() -> None:
    made = Bench().run("one", mode="agent", model_policy={"max_iterations": 1})
    assert (made.result["status"], made.succeeded) == ("budget_exhausted", False)


def test_long_conversations_are_compacted_only_when_asked_for() -> None:
    compaction = {"compact_strategy": "truncate", "token_threshold": 1, "keep_last": 1}
    for given, compactions in (
        ({}, 0),
        (compaction, 0),
        ({**compaction, "enabled": True}, 1),
        ({**compaction, "auto_compact": True}, 1),
        ({**compaction, "enabled": False, "auto_compact": True}, 0),
    ):
        bench = Bench()
        made = bench.run(CALL, DONE, tools=tool(), auto_compact=given)
        events = [event["kind"] for event in made.result["transcript"]["events"]]
        assert min(events.count("compaction"), 1) == compactions, given


def test_tool_output_is_cut_as_the_node_says() -> None:
    made = Bench().run(CALL, DONE, tools=tool(), auto_compact={"tool_output_max_chars": 500})
    text = next(e["text"] for e in made.result["transcript"]["events"] if e["kind"] == "tool_execution")
    assert len(text) < 1000


def test_policies_of_the_node_hold() -> None:
    for policies in (
        {"capability_policy": {"tools": ["other"]}},
        {"approval_policy": {"auto_deny": ["look"]}},
        {"model_policy": {"permissions": {"deny": ["look"]}}},
    ):
        model = {**policies.get("model_policy", {}), "max_iterations": 1}
        made = Bench().run(CALL, tools=tool(), **{**policies, "model_policy": model})
        assert made.result["tools"]["rejected"] == ["look"]


def test_the_write_allowlist_is_what_the_artifact_may_have_changed() -> None:
    made = Bench().run("x", id="w", approval_policy={"write_path_allowlist": ["src/*"]})
    assert made.artifact["metadata"] == {
        "input_artifact_ids": [],
        "node_kind": "stage",
        "changed_paths": ["src/*"],
    }


def test_a_failing_call_leaves_the_question_in_the_session() -> None:
    bench = Bench()
    with pytest.raises(Exception, match="no key"):
        bench.run({"error": {"category": "auth", "message": "no key"}})
    assert [message["role"] for message in bench.sessions.messages("s")] == ["user"]
    assert bench.sessions.current_id() is None


def test_wrong_contracts_are_named() -> None:
    with pytest.raises(MisuseError, match=r"at nodes\.n\.input_contract\.min_inputs: expected int"):
        Bench().run("x", input_contract={"min_inputs": "x"})
    with pytest.raises(MisuseError, match=r"at nodes\.n\.output_contract\.output_kinds: expected list of"):
        Bench().run("x", output_contract={"output_kinds": [1]})
