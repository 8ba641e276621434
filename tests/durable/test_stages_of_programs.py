"""Stages of a workflow that a program runs, each kept as a step; closures are tools there (10 §C19.1)."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.builtins.agents.agent_runtime import runtime_of
from harnpy.durable.stages import VmStages
from harnpy.session import SessionRuntime
from harnpy.storage import Store
from harnpy.workflow.engines.contract import Step
from tests.counts import COUNT
from tests.durable.processes import IMMORTAL, URL, Model, Record, Shelf, empty, timeless
from tests.session.rules.mortal import Killed

Dict = dict[str, Any]

EVERY = 1 if COUNT.campaign else 4

PROGRAM = """
var tools = tool_registry()
tools = tool_define(tools, "act", "Act.", {
  parameters: {n: "int"}, handler: { args -> append_file("ran.txt", "${args.n}"); "did ${args.n}" },
})
tools = tool_define(tools, "again", "Act again.", {
  parameters: {n: "int"}, on_ambiguous: "retry",
  handler: { args -> append_file("ran.txt", "${args.n}"); "did ${args.n}" },
})
let graph = {
  entry: "work",
  nodes: {
    work: {tools: tools, done_sentinel: "##DONE##", model_policy: {tool_format: "native"}},
    sum_up: {system: "Be brief."},
  },
  edges: [{from: "work", to: "sum_up"}],
}
let done = workflow_execute("Act", graph, nil, {provider: "model"})
return json_stringify(done.run)
"""


def acts(text: str, count: int) -> Dict:
    if count == 1 and "workflow_context" not in text:
        calls = [("act", 1), ("again", 2)]
    elif count == 4:
        calls = [("again", 3)]
    else:
        return {"text": f"done after {count} ##DONE##"}
    return {"tool_calls": [{"id": f"c{n}", "name": name, "arguments": {"n": n}} for name, n in calls]}


def keep_stages(vm: Vm, record: Record) -> None:
    """Have the stages of the program kept as steps; what a Vm gives to agents belongs to one run of it."""

    def prepare() -> None:
        runtime_of(vm).stages = VmStages(vm, record.step, URL)

    vm.on_start.append(prepare)


def process(store: Store, record: Record, model: Model, lives: int = IMMORTAL) -> Any:
    vm = Vm()
    vm.provide("model", model)
    vm.sessions.stores._open[URL] = Shelf(store, lives)  # type: ignore[assignment]
    keep_stages(vm, record)
    with suppress(Killed):
        return timeless(json.loads(vm.run_source(PROGRAM)))
    return None


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ran.txt"


def ids_apart(run: Dict) -> str:
    return json.dumps(run, sort_keys=True).replace(run["workflow_id"], "")


def test_killed_at_every_append(ran: Path) -> None:
    steps: list[Step] = []
    model = Model(acts)
    expected = process(empty(), Record(steps), model)
    assert [step.key for step in steps] == ["begin", "stage:work:1", "stage:sum_up:2"]
    assert ran.read_text() == "123"
    asked, lives, fenced = len(model.asked), 0, 0
    while True:
        ran.write_text("")
        store, left, model = empty(), list[Step](), Model(acts)
        if process(store, Record(left), model, lives) is not None:
            break
        record = Record(left)
        found = process(store, record, model)
        texts = [recording["result"] for recording in found["tool_recordings"]]
        is_fenced = any("acrfence" in text for text in texts)
        fenced += is_fenced
        assert ran.read_text().count("1") <= 1  # not idempotent
        assert set(ran.read_text()) == {"1", "2", "3"}
        assert len(model.asked) <= asked + 1
        assert all("acrfence" not in text for text in texts[1:])
        if not is_fenced:
            assert ids_apart(found) == ids_apart(expected)
        for info in SessionRuntime(store).list().items:
            assert not SessionRuntime(store).get(info.id).view.open_turns
        lives += EVERY
    assert lives > 15


def test_a_run_inside_a_stage_is_part_of_its_step(ran: Path) -> None:
    program = """
    let inner = { args -> workflow_execute("in", {nodes: {i: {}}}, nil, {provider: "model"}).status }
    let tools = tool_define(tool_registry(), "go", "Go.", {parameters: {}, handler: inner})
    let node = {tools: tools, done_sentinel: "##DONE##", model_policy: {tool_format: "native"}}
    return workflow_execute("out", {nodes: {a: node}}, nil, {provider: "model"}).run.stages.count()
    """

    def answer(text: str, count: int) -> Dict:
        if "\nout\n" in text and count == 1:
            return {"tool_calls": [{"id": "c", "name": "go", "arguments": {}}]}
        return {"text": "well ##DONE##"}

    steps: list[Step] = []
    vm, model = Vm(), Model(answer)
    vm.provide("model", model)
    vm.sessions.stores._open[URL] = Shelf(empty(), IMMORTAL)  # type: ignore[assignment]
    keep_stages(vm, Record(steps))
    assert vm.run_source(program) == 1
    assert [step.key for step in steps] == ["begin", "stage:a:1"]
    assert len(model.asked) == 3
