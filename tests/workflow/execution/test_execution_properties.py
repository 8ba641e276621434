"""What holds for every graph: it ends, in the order of 08 §7.2, and a pause or a replay changes nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.workflow.records.record_files import load_run
from tests.counts import COUNT
from tests.workflow.workbench import Bench

Dict = dict[str, Any]
KINDS = "stage verify condition fork join map reduce escalation subagent".split()
BRANCHES = (None, "success", "passed", "failed", "fork", "join", "mapped", "reduced", "escalated", "error")
IMPOSSIBLE = 10_000


def nodes() -> st.SearchStrategy[Dict]:
    return st.one_of(*map(node, KINDS))


def node(kind: str) -> st.SearchStrategy[Dict]:
    parts: dict[str, Dict] = {
        "stage": {"input_contract": st.sampled_from([{}, {"min_inputs": IMPOSSIBLE}])},
        "verify": {"verify": st.sampled_from([None, {"assert_text": "never said"}])},
        "condition": {"metadata": st.sampled_from([{}, {"contains_text": "never said"}])},
        "map": {"map_policy": st.sampled_from([{"items": ["a", "b"]}, {"items": ["a"]}])},
        "join": {"join_policy": joins()},
    }
    return st.fixed_dictionaries({"kind": st.just(kind), **parts.get(kind, {})})


def joins() -> st.SearchStrategy[Dict]:
    return st.fixed_dictionaries(
        {},
        optional={
            "strategy": st.sampled_from(["all", "first", "quorum"]),
            "require_all_inputs": st.booleans(),
            "min_completed": st.integers(0, 3),
        },
    )


@st.composite
def graphs(draw: st.DrawFn) -> Dict:
    """A graph that is valid, whatever else may be odd about it."""
    ids = "abcdef"[: draw(st.integers(1, 6))]
    made = {id: draw(nodes()) for id in ids}
    edges = []
    for id in ids:
        kind = made[id]["kind"]
        branches = draw(st.lists(st.sampled_from(BRANCHES), max_size=3))
        if kind == "condition":
            branches = ["true", "false", *branches]
        elif kind == "fork":
            branches = [*branches, None, None]
        targets = (draw(st.sampled_from(ids)) for _ in branches)
        edges += [
            {"from": id, "to": target, "branch": branch}
            for target, branch in zip(targets, branches, strict=True)
        ]
    return {"entry": draw(st.sampled_from(ids)), "nodes": made, "edges": edges}


def expected(graph: Dict, max_steps: int) -> tuple[list[tuple[str, str]], list[str]]:
    """The nodes with their branches, and what is pending then: 08 §7.2, word by word."""
    ready, completed, path, steps, artifacts = [graph["entry"]], set(), [], 0, 0
    while steps < max_steps and ready:
        steps += 1
        current = ready.pop(0)
        if waits(graph, current, completed):
            if current not in ready:
                ready.append(current)
            continue
        branch, made = outcome(graph["nodes"][current], artifacts)
        artifacts += made
        path.append((current, branch))
        completed.add(current)
        own = [edge for edge in graph["edges"] if edge["from"] == current]
        next_edges = [edge for edge in own if edge["branch"] == branch]
        if not next_edges:
            next_edges = [edge for edge in own if edge["branch"] is None]
        for edge in next_edges:
            if edge["to"] not in ready:
                ready.append(edge["to"])
    return path, ready


def unhandled(graph: Dict, path: list[tuple[str, str]]) -> set[str]:
    """The nodes whose last stage failed, and no edge on its branch leads on."""
    edges = {(edge["from"], edge["branch"]) for edge in graph["edges"]}
    return {
        id for id, branch in dict(path).items() if branch in ("failed", "error") and (id, branch) not in edges
    }


def waits(graph: Dict, current: str, completed: set[str]) -> bool:
    if graph["nodes"][current]["kind"] != "join":
        return False
    policy = graph["nodes"][current]["join_policy"]
    incoming = [edge["from"] for edge in graph["edges"] if edge["to"] == current]
    if policy.get("min_completed") is not None:
        required = policy["min_completed"]
    elif policy.get("require_all_inputs") or policy.get("strategy", "all") == "all":
        required = len(incoming)
    else:
        required = 1
    return len([source for source in incoming if source in completed]) < required


def outcome(node: Dict, artifacts: int) -> tuple[str, int]:
    """The branch that a node ends on, and how many artifacts it makes."""
    match node["kind"]:
        case "stage":
            return ("error", 0) if node["input_contract"] else ("success", 1)
        case "verify":
            return ("failed" if node["verify"] else "passed"), 1
        case "condition":
            return ("true" if artifacts and not node["metadata"] else "false"), 0
        case "map":
            return "mapped", len(node["map_policy"]["items"])
        case "reduce":
            return "reduced", 1
        case "escalation":
            return "escalated", 1
        case "subagent":
            return "success", 2  # what it made, and the worker's receipt
        case kind:
            return kind, 0


def path_of(result: Dict) -> list[tuple[str, str]]:
    return [(stage["node_id"], stage["branch"]) for stage in result["run"]["stages"]]


def without(stage: Dict, *keys: str) -> Dict:
    return {key: value for key, value in stage.items() if key not in keys}


@settings(max_examples=COUNT.examples(20))
@given(graphs())
def test_every_graph_ends_and_visits_its_nodes_as_its_edges_say(graph: Dict) -> None:
    bench = Bench()
    max_steps = 4 * len(graph["nodes"])
    result = bench.execute(graph)
    path, pending = expected(graph, max_steps)
    assert path_of(result) == path
    assert result["run"]["pending_nodes"] == pending
    assert result["status"] == ("paused" if pending else "failed" if unhandled(graph, path) else "completed")
    assert (result["error"] is None) == (result["status"] != "failed")
    assert result["run"]["completed_nodes"] == sorted({id for id, _ in path})
    assert [checkpoint["reason"] for checkpoint in result["run"]["checkpoints"]] == [
        "start",
        *["stage_complete"] * len(path),
        "finalize",
    ]
    assert load_run(result["path"], bench.runtime.world) == result["run"]
    # Cut after any line, it is the record as it was then.
    lines = bench.files[result["path"]].splitlines(keepends=True)
    for count in range(len(path) + 1):
        bench.files["/cut.json"] = "".join(lines[: count + 1])
        then = load_run("/cut.json", bench.runtime.world)
        assert [then[key] for key in ("status", "stages")] == ["running", result["run"]["stages"][:count]]
        assert then["checkpoints"] == result["run"]["checkpoints"][: count + 1]
        assert then["pending_nodes"] == then["checkpoints"][-1]["ready_nodes"]
        assert then["completed_nodes"] == then["checkpoints"][-1]["completed_nodes"]


# In a ring of reduces every step doubles the record: 20 steps make megabytes, 40 would fill any memory.
@settings(max_examples=COUNT.examples(12))
@given(graphs(), st.none() | st.integers(1, 20))
def test_a_replay_comes_to_the_same(graph: Dict, max_steps: int | None) -> None:
    bench = Bench()
    result = bench.execute(graph, max_steps=max_steps)
    calls = bench.models.trace.counts["llm_call"]
    again = bench.execute(graph, replay_run=result["run"], replay_mode="deterministic")
    assert bench.models.trace.counts["llm_call"] == calls
    assert again["status"] == result["status"]
    assert again["run"]["pending_nodes"] == result["run"]["pending_nodes"]
    assert again["artifacts"] == result["artifacts"]
    assert again["transcript"] == result["transcript"]
    own = ("id", "started_at", "finished_at")
    first, second = ([without(stage, *own) for stage in run["run"]["stages"]] for run in (result, again))
    assert first == second


@settings(max_examples=COUNT.examples(12))
@given(graphs(), st.integers(1, 12), st.integers(1, 12))
def test_a_pause_changes_nothing(graph: Dict, before: int, after: int) -> None:
    bench = Bench()
    paused = bench.execute(graph, max_steps=before)
    if paused["status"] == "completed":
        return
    resumed = bench.execute(graph, max_steps=after, resume_path=paused["path"])
    whole = Bench().execute(graph, max_steps=before + after)
    assert path_of(resumed) == path_of(whole)
    assert resumed["status"] == whole["status"]
    assert resumed["run"]["pending_nodes"] == whole["run"]["pending_nodes"]
    assert len(resumed["artifacts"]) == len(whole["artifacts"])
