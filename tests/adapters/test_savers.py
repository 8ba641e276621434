"""Threads of LangGraph's own savers come into a store as they are, and go on there. Spec: 10 §C20."""

from __future__ import annotations

import operator
import pickle
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from harnpy.adapters.langgraph import HarnpySaver
from harnpy.adapters.savers import import_threads
from harnpy.storage import Store, open_store
from tests.counts import COUNT
from tests.session.transfer.test_databases import GRAPHS, Bomb, copied, moved_to

Config = dict[str, Any]


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    said: Annotated[list[str], operator.add]
    #: Of which only the changes are kept.
    notes: Annotated[list[str], DeltaChannel(lambda known, added: [*known, *chain.from_iterable(added)])]
    facts: Any


def graph(saver: Any) -> Any:
    """Says something, asks a person in a graph below, and answers."""
    below = StateGraph(State)
    below.add_node("begin", lambda state: {"said": ["below"], "facts": {"pair": (1, 2), "data": b"\x00"}})
    below.add_node("ask", lambda state: {"messages": [AIMessage(str(interrupt({"go": "on?"})))]})
    below.add_edge(START, "begin")
    below.add_edge("begin", "ask")
    built = StateGraph(State)
    built.add_node("first", lambda state: {"said": ["first"], "notes": ["noted"], "facts": {3, 4}})
    built.add_node("below", below.compile())
    built.add_node("last", lambda state: {"said": ["last"], "facts": None})
    for before, behind in ((START, "first"), ("first", "below"), ("below", "last"), ("last", END)):
        built.add_edge(before, behind)
    return built.compile(checkpointer=saver)


def thread(name: str) -> Config:
    return {"configurable": {"thread_id": name}}


def do(app: Any, action: str, config: Config, number: int) -> None:
    """Take a step in a thread: ask, answer, change the state now or in the past."""
    if action == "ask":
        app.invoke({"messages": [HumanMessage(f"Question {number}", id=f"h{number}")]}, config)
    elif action == "answer":
        app.invoke(Command(resume=f"Answer {number}"), config)
    elif past := list(app.get_state_history(config)):
        chosen = past[number % len(past) if action == "change the past" else 0]
        app.update_state(chosen.config, {"said": [f"changed {number}"]})


@contextmanager
def saving(path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(str(path)) as saver:
        yield saver


def check_same(theirs: SqliteSaver, ours: HarnpySaver, config: Config) -> None:
    expected = list(theirs.list(config))
    assert list(ours.list(config)) == expected
    assert [ours.get_tuple(each.config) for each in expected] == expected
    assert ours.get_tuple(config) == theirs.get_tuple(config)


ACTIONS = st.sampled_from(["ask", "answer", "change", "change the past"])


@settings(max_examples=COUNT.examples(6), deadline=None)
@example(before=["ask", "answer", "answer"], behind=["answer"])  # replaces what was answered
@given(before=st.lists(ACTIONS, min_size=1, max_size=4), behind=st.lists(ACTIONS, max_size=3))
def test_law_a_thread_is_the_same_for_both_savers(before: list[str], behind: list[str]) -> None:
    config, store = thread("t"), open_store("memory:")
    ours = HarnpySaver(store)
    with tempfile.TemporaryDirectory() as folder, saving(Path(folder, "graphs.db")) as theirs:
        app, path = graph(theirs), str(Path(folder, "graphs.db"))
        for actions in (before, behind):
            for number, action in enumerate(actions):
                do(app, action, config, number)
            report = import_threads([path], store)
            assert report.errors == []
            check_same(theirs, ours, config)
        again = import_threads([path], store)
        assert again.imported == []
        assert again.skipped == (["t"] if list(theirs.list(config)) else [])


def test_an_interrupted_graph_goes_on_where_it_waits(tmp_path: Path) -> None:
    file = tmp_path / "graphs.db"
    with saving(file) as theirs:
        graph(theirs).invoke({"messages": [HumanMessage("Go?")]}, thread("user 2/b"))
    store = open_store(f"sqlite:{tmp_path / 'ours.db'}")
    assert import_threads([str(file)], store).imported == ["user 2/b"]
    app = graph(HarnpySaver(store))
    [task] = app.get_state(thread("user 2/b")).tasks
    assert [each.value for each in task.interrupts] == [{"go": "on?"}]
    done = app.invoke(Command(resume="Yes."), thread("user 2/b"))
    assert [message.content for message in done["messages"]] == ["Go?", "Yes."]
    assert done["said"][-1] == "last"


def test_a_long_thread_is_the_same_at_each_of_its_steps(tmp_path: Path) -> None:
    built = StateGraph(State)
    built.add_node("count", lambda state: {"said": [str(len(state["said"]))]})
    built.add_edge(START, "count")
    built.add_conditional_edges(
        "count", lambda state: END if len(state["said"]) > 40 else "count", ["count", END]
    )
    with saving(tmp_path / "graphs.db") as theirs:
        built.compile(checkpointer=theirs).invoke({"said": ["x"]}, {**thread("t"), "recursion_limit": 99})
        store = open_store("memory:")
        import_threads([str(tmp_path / "graphs.db")], store)
        check_same(theirs, HarnpySaver(store), thread("t"))


def grown(tmp_path: Path, store: Store) -> tuple[Path, Any]:
    """Import a thread that waits, and let it go on in the store."""
    file = tmp_path / "graphs.db"
    with saving(file) as theirs:
        graph(theirs).invoke({"messages": [HumanMessage("Go?")]}, thread("t"))
    import_threads([str(file)], store)
    app = graph(HarnpySaver(store))
    app.invoke(Command(resume="Ours."), thread("t"))
    return file, app


def test_what_the_store_has_beside_it_stays(tmp_path: Path) -> None:
    store = open_store("memory:")
    file, app = grown(tmp_path, store)
    assert import_threads([str(file)], store).skipped == ["t"]
    assert app.get_state(thread("t")).values["said"][-1] == "last"
    ours = {each.config["configurable"]["checkpoint_id"] for each in HarnpySaver(store).list(thread("t"))}
    with saving(file) as theirs:
        graph(theirs).invoke(Command(resume="Theirs."), thread("t"))
        assert import_threads([str(file)], store).imported == ["t"]
        newest = theirs.get_tuple(thread("t"))
        found = HarnpySaver(store).get_tuple(thread("t"))
        assert newest is not None
        assert found is not None
        assert found.checkpoint == newest.checkpoint
    there = {each.config["configurable"]["checkpoint_id"] for each in HarnpySaver(store).list(thread("t"))}
    assert ours < there


def test_what_was_pruned_stays_away(tmp_path: Path) -> None:
    store = open_store("memory:")
    file = tmp_path / "graphs.db"
    with saving(file) as theirs:
        graph(theirs).invoke({"messages": [HumanMessage("Go?")]}, thread("t"))
    import_threads([str(file)], store)
    saver = HarnpySaver(store)
    saver.prune(["t"])
    before = list(saver.list(thread("t")))
    assert import_threads([str(file)], store).skipped == ["t"]
    assert list(saver.list(thread("t"))) == before


def test_another_thread_of_that_id_is_left_alone(tmp_path: Path) -> None:
    store = open_store("memory:")
    graph(HarnpySaver(store)).invoke({"messages": [HumanMessage("Mine.")]}, thread("one"))
    report = import_threads([str(GRAPHS)], store)
    assert report.imported == ["user 2/b"]
    [(name, reason)] = report.errors
    assert name.endswith(": one")
    assert "another thread" in reason


def test_threads_of_a_server(bare_postgres: str, tmp_path: Path) -> None:
    store = open_store("memory:")
    with moved_to(bare_postgres):
        assert import_threads([bare_postgres], store).imported == ["one", "user 2/b"]
        assert import_threads([bare_postgres], store).skipped == ["one", "user 2/b"]
    with saving(copied(GRAPHS, tmp_path)) as theirs:
        for name in ("one", "user 2/b"):
            check_same(theirs, HarnpySaver(store), thread(name))


@pytest.mark.parametrize("table", ["checkpoints", "writes"])
def test_a_pickled_thread_is_refused_and_the_others_come_in(table: str, tmp_path: Path) -> None:
    file = copied(GRAPHS, tmp_path)
    column = {"checkpoints": "checkpoint", "writes": "value"}[table]
    with closing(sqlite3.connect(file)) as writer:
        update = f"UPDATE {table} SET type = 'pickle', {column} = ? WHERE thread_id = 'one'"
        writer.execute(update, (pickle.dumps(Bomb()),))
        writer.commit()
    store = open_store("memory:")
    report = import_threads([str(file)], store)
    assert report.imported == ["user 2/b"]
    assert [name for name, _ in report.errors] == [f"{file}: one"]
    assert list(HarnpySaver(store).list(thread("one"))) == []


def test_what_is_no_such_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_text("no database", encoding="utf-8")
    file = copied(GRAPHS, tmp_path)
    with closing(sqlite3.connect(file)) as writer:
        writer.execute("UPDATE checkpoints SET checkpoint = x'c0' WHERE thread_id = 'one'")
        writer.commit()
    agents = GRAPHS.with_name("openai_agents.db")
    report = import_threads([str(tmp_path / "no.db"), str(agents), str(file)], open_store("memory:"))
    assert report.imported == ["user 2/b"]
    assert len(report.errors) == 3
    assert all(reason and "\n" not in reason for _, reason in report.errors)
