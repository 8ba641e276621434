"""A run that was killed goes on with another graph: what has run is used, or refused by name (10 §C19.1)."""

from __future__ import annotations

import copy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harnpy.durable.graphs import check
from harnpy.workflow.engines.contract import Step
from harnpy.workflow.execution.changes import StagesChanged
from tests.counts import COUNT
from tests.durable.processes import Model, Record, empty, job, process

Dict = dict[str, Any]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(text: str, count: int) -> Dict:
    return {"text": "said"}


# A model of a run: which node comes next, as 08 §7.2 says, in as few words as possible.


class Walk:
    """Walks a graph; ``queue`` are the nodes to come, ``done`` those that were."""

    def __init__(self, graph: Dict) -> None:
        self.graph = graph
        self.queue: list[str] = [graph["entry"]]
        self.done: list[str] = []

    def waits(self, id: str) -> bool:
        if self.graph["nodes"][id].get("kind") != "join":
            return False
        return any(edge["from"] not in self.done for edge in self.graph["edges"] if edge["to"] == id)

    def problem(self, id: str) -> bool:
        return id not in self.graph["nodes"] or id not in self.queue or self.waits(id)

    def take(self, id: str) -> None:
        """Go on behind a node that has run; joins that wait before it go to the end of the queue."""
        while not self.problem(id) and self.queue[0] != id and self.waits(self.queue[0]):
            self.queue.append(self.queue.pop(0))
        self.pass_by(id)

    def pass_by(self, id: str) -> None:
        """Go on behind a node, wherever it stood in the queue."""
        if id in self.queue:
            self.queue.remove(id)
        self.done.append(id)
        branch = branch_of(self.graph["nodes"].get(id, {}))
        edges = [edge for edge in self.graph["edges"] if edge["from"] == id]
        taken = [edge for edge in edges if edge.get("branch") == branch]
        for edge in taken or [edge for edge in edges if not edge.get("branch")]:
            if edge["to"] not in self.queue:
                self.queue.append(edge["to"])

    def rest(self, steps: int) -> list[str]:
        """The nodes that come next, as far as the steps go."""
        begin = len(self.done)
        for _ in range(steps):
            if not self.queue:
                break
            if self.waits(self.queue[0]):
                self.queue.append(self.queue.pop(0))
            else:
                self.pass_by(self.queue[0])
        return self.done[begin:]


def branch_of(node: Dict) -> str:
    kind = node.get("kind", "stage")
    if kind == "condition":
        return "true" if node["metadata"]["contains_text"] == "said" else "false"
    names = {
        "stage": "success",
        "reduce": "reduced",
        "escalation": "escalated",
        "join": "join",
        "fork": "fork",
    }
    return names[kind]


MAX_STEPS = 12


def random_graph(random: Random) -> Dict:
    """Nodes of all kinds, each with edges to others; there may be loops, and nodes that nobody reaches."""
    ids = [f"n{number}" for number in range(random.randint(4, 7))]
    nodes = {id: random_node(random) for id in ids}
    nodes["n0"] = {"system": "first"}
    edges = [
        edge
        for at, id in enumerate(ids)
        for edge in edges_from(random, id, nodes[id], ids[at + 1 :] or ids[:1])
        if at + 1 < len(ids) or nodes[id].get("kind") == "condition" or random.random() < 0.2
    ]
    return {"id": "random", "entry": "n0", "nodes": nodes, "edges": edges}


def random_node(random: Random) -> Dict:
    kind = random.choice(["stage", "stage", "condition", "reduce", "escalation", "join"])
    if kind == "stage":
        return {"system": f"Be {random.randint(0, 99)}."}
    if kind == "condition":
        return {"kind": kind, "metadata": {"contains_text": random.choice(["said", "nope"])}}
    return {"kind": kind, "metadata": {"mark": random.randint(0, 99)}}


def edges_from(random: Random, id: str, node: Dict, targets: list[str]) -> list[Dict]:
    if node.get("kind") == "condition":
        return [{"from": id, "to": random.choice(targets), "branch": branch} for branch in ("true", "false")]
    return [
        {"from": id, "to": to} for to in random.sample(targets, min(len(targets), random.choice([1, 1, 2])))
    ]


def changed(random: Random, graph: Dict) -> tuple[Dict, set[str]]:
    """Return a graph with one change, and the nodes whose text has changed."""
    graph = copy.deepcopy(graph)
    nodes, edges = graph["nodes"], graph["edges"]
    id = random.choice([*nodes])
    what = random.choice(["edit", "edit", "add", "insert", "remove", "rewire", "entry", "nothing"])
    if what == "edit":
        nodes[id]["task_label"] = "Other"
        return graph, {id}
    if what == "add":
        nodes["new"] = {"kind": "escalation"}
        edges.append(
            {"from": id, "to": "new", **({"branch": "true"} if nodes[id].get("kind") == "condition" else {})}
        )
    elif what == "insert" and edges:
        edge = random.choice(edges)
        nodes["new"] = {"kind": "reduce"}
        edges.append({"from": "new", "to": edge["to"]})
        edge["to"] = "new"
    elif what == "remove" and id != graph["entry"]:
        into = [edge for edge in edges if edge["to"] == id and edge.get("branch")]
        if not into:  # a condition needs both branches
            del nodes[id]
            graph["edges"] = [edge for edge in edges if id not in (edge["from"], edge["to"])]
    elif what == "rewire" and edges:
        random.choice(edges)["to"] = id
    elif what == "entry":
        graph["entry"] = id
    return graph, set()


def test_random_changes() -> None:
    refused = kept = 0
    for seed in COUNT.seeds(COUNT.graph_changes):
        random = Random(seed)
        graph = random_graph(random)
        options = {"options": {"max_steps": MAX_STEPS}}
        path = Walk(graph).rest(MAX_STEPS)
        cut = random.randint(1, max(1, len(path)))
        steps: list[Step] = []
        store = empty()
        process(store, Record(steps, dies_after=cut), job(graph, **options), Model(said))
        finished = path[:cut]
        assert [step.output["stage"]["node_id"] for step in steps[1:]] == finished, seed
        graph, edited = changed(random, graph)
        walk = Walk(graph)
        problems = []
        for id in finished:
            if walk.problem(id) or id in edited:
                problems.append(id)
            walk.take(id)
        model, record = Model(said), Record(steps)
        if problems:
            refused += 1
            with pytest.raises(StagesChanged) as failure:
                process(store, record, job(graph, **options), model)
            assert set(failure.value.stages) == set(problems), seed
            assert all(f"'{id}'" in str(failure.value) for id in problems)
            assert (model.asked, record.ran, len(steps)) == ([], [], cut + 1), seed
            options["accept_changes"] = sorted(set(problems))  # type: ignore[assignment]
            record = Record(steps)
        else:
            kept += 1
        found = process(store, record, job(graph, **options), model)
        ran = [stage["node_id"] for stage in found["stages"]]
        assert ran[: len(finished)] == finished, seed
        assert record.ran == [f"stage:{id}:{n}" for n, id in enumerate(ran, 1) if n > len(finished)], seed
        expected = walk.rest(MAX_STEPS)
        assert ran[len(finished) :] == expected[: len(ran) - len(finished)], seed
        assert (found["status"] == "paused") == bool(found["pending_nodes"])
        assert found["status"] == "paused" or ran[len(finished) :] == expected, seed
    assert refused
    assert kept


def test_what_goes_into_finished_stages_counts() -> None:
    graph = {
        "id": "g",
        "entry": "a",
        "nodes": {
            "a": {"system": "one"},
            "b": {"system": "two"},
            "v": {"kind": "verify", "verify": {"command": "true"}},
        },
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "v"}],
    }  # fmt: skip

    def refusal(given: Any) -> str:
        store, steps = empty(), list[Step]()
        process(store, Record(steps, dies_after=1), job(graph), Model(said))
        check(job(graph), "run-1", steps)
        with pytest.raises(StagesChanged):
            check(given, "run-1", steps)
        with pytest.raises(StagesChanged) as failure:
            process(store, Record(steps), given, Model(said))
        return str(failure.value)

    edited = copy.deepcopy(graph)
    edited["nodes"]["a"]["system"] = "other"  # type: ignore[index]
    assert refusal(job(edited)) == (
        "run 'run-1' can't go on with this graph: stage 'a' was edited: its `system`. Go on with the stored "
        "graph (harnpy run --resume run-1), begin a new run, or keep what the stage came to: "
        "--accept-changes a"
    )
    assert "'a' would get something else: `task`" in refusal(job(graph, task="Another one"))
    assert "'a' would get something else: `artifacts`" in refusal(job(graph, artifacts=[{"text": "more"}]))
    checked = copy.deepcopy(graph)
    checked["nodes"]["v"]["verify"] = {"command": "false"}  # type: ignore[index]
    assert "'a' would get something else: `contracts`" in refusal(job(checked))
    ruled = {**graph, "capability_policy": {"tools": ["read_file"]}}
    assert "'a' would get something else: `policy`" in refusal(job(ruled))
    assert "'a' was edited: its `model_policy`" in refusal(job(graph, options={"model": "other"}))


def test_stages_to_come_may_be_edited() -> None:
    graph = {
        "id": "g",
        "entry": "a",
        "nodes": {"a": {}, "b": {"system": "two"}},
        "edges": [{"from": "a", "to": "b"}],
    }
    store, steps = empty(), list[Step]()
    process(store, Record(steps, dies_after=1), job(graph), Model(said))
    edited = copy.deepcopy(graph)
    edited["nodes"]["b"]["system"] = "other"  # type: ignore[index]
    found = process(store, Record(steps), job(edited), Model(said))
    assert [stage["metadata"].get("system_prompt") for stage in found["stages"]] == [None, "other"]


def test_what_has_no_id_is_the_same_in_each_process() -> None:
    graph = {"entry": "a", "nodes": {"a": {}, "b": {}}, "edges": [{"from": "a", "to": "b"}]}
    given = job(graph, artifacts=[{"kind": "note", "text": "one"}, {"kind": "note", "text": "two"}])
    store, steps = empty(), list[Step]()
    process(store, Record(steps, dies_after=1), given, Model(said))
    found = process(store, Record(steps), given, Model(said))
    [first, second] = found["stages"]
    assert first["consumed_artifact_ids"] == second["consumed_artifact_ids"][-2:]
    assert [artifact["id"] for artifact in found["artifacts"]][:2] == first["consumed_artifact_ids"]


def test_a_stage_that_was_cut_off_is_edited() -> None:
    """Its turn is in the log, ended or not, but the stage isn't finished: it runs as it is written now."""
    graph = {
        "id": "g",
        "entry": "a",
        "nodes": {"a": {"mode": "agent", "system": "one", "done_sentinel": "!"}},
    }
    for lives in range(8):
        store, steps, model = empty(), list[Step](), Model(lambda text, count: {"text": "done!"})
        if process(store, Record(steps), job(graph), model, lives) is not None:
            break
        edited = copy.deepcopy(graph)
        edited["nodes"]["a"]["task_label"] = "Other"  # type: ignore[index]
        found = process(store, Record(steps), job(edited), model)
        assert "<label>Other</label>" in found["stages"][0]["metadata"]["prompt"]
        assert found["stages"][0]["branch"] == "success"
