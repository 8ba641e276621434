"""Which session a stage talks in, and who chose it (08 §7.7)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.formats.dicts import Dict
from harnpy.session import SessionStore
from harnpy.workflow.execution.stage_work import StageSession, close_minted, run_session, worker_session
from harnpy.workflow.graph import normalise_graph, normalise_node

MINTED = StageSession("workflow_stage_r_n", given=False)
NAMED = StageSession("mine", given=True, shared=True)
BY_WORKER = StageSession("w", given=True)


@pytest.mark.parametrize(
    ("policy", "metadata", "session"),
    [
        ({}, {}, MINTED),
        ({"session_id": "mine"}, {"worker_session_id": "w"}, NAMED),
        ({}, {"worker_session_id": "w"}, BY_WORKER),
        ({"session_id": " "}, {"worker_session_id": ""}, MINTED),
        ({"session_id": 7}, {"worker_session_id": 7}, MINTED),
    ],
)
def test_the_node_comes_first_then_its_worker_then_the_run(
    policy: Dict, metadata: Dict, session: StageSession
) -> None:
    assert run_session(a_node(policy, metadata), "r") == session


def test_a_worker_has_a_session_for_a_node_that_names_none() -> None:
    assert worker_session(a_node({}, {}), "w1") == StageSession("worker_session_w1_n", given=True)
    assert worker_session(a_node({"session_id": "mine"}, {}), "w1") == NAMED


def test_branches_of_a_map_share_only_a_session_that_the_node_names() -> None:
    assert NAMED.of_branch(2) == NAMED
    assert BY_WORKER.of_branch(2) == StageSession("w_map_2", given=True)
    assert MINTED.of_branch(2) == StageSession("workflow_stage_r_n_map_2", given=False)


def test_a_run_closes_what_it_has_made_and_nothing_else() -> None:
    made, given = ("workflow_stage_r_n", "workflow_stage_r_n_map_2"), ("mine", "workflow_stage_r_m")
    graph = {"nodes": {"n": {}, "m": {"model_policy": {"session_id": "workflow_stage_r_m"}}}}
    sessions = SessionStore()
    for id in (*made, *given):
        sessions.open(id)
    close_minted(sessions, normalise_graph(graph, sessions.world), "r")
    assert sorted(sessions.ids()) == sorted(given)


def a_node(policy: Dict, metadata: Dict) -> Any:
    return normalise_node({"model_policy": policy, "metadata": metadata}, "n")
