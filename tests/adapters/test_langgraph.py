"""LangGraph on harnpy's stores, through LangGraph itself. Spec: 10 §C20."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from harnpy.adapters.langgraph import HarnpySaver
from harnpy.adapters.threads import ThreadCodec
from harnpy.storage import HeadQuery, Row, Store

Opened = Callable[..., Store]


def test_it_does_what_langgraph_checks_of_a_checkpointer(opened: Opened) -> None:
    @checkpointer_test(name="harnpy")
    async def saver() -> AsyncIterator[HarnpySaver]:
        yield HarnpySaver(opened())

    report = asyncio.run(validate(saver))
    failed = {name: result.failures for name, result in report.results.items() if result.failures}
    assert failed == {}
    assert report.passed_all()


class State(TypedDict):
    said: Annotated[list[str], operator.add]
    answer: str


def graph(saver: HarnpySaver) -> Any:
    """Says a, asks a person, says b."""
    built = StateGraph(State)
    built.add_node("a", lambda state: {"said": ["a"]})
    built.add_node("ask", lambda state: {"answer": interrupt("go on?")})
    built.add_node("b", lambda state: {"said": ["b"]})
    built.add_edge(START, "a")
    built.add_edge("a", "ask")
    built.add_edge("ask", "b")
    built.add_edge("b", END)
    return built.compile(checkpointer=saver)


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def test_a_graph_that_was_interrupted_goes_on_from_another_saver(opened: Opened) -> None:
    store = opened()
    first = graph(HarnpySaver(store)).invoke({"said": ["start"]}, thread("t"))
    assert first["__interrupt__"][0].value == "go on?"
    result = graph(HarnpySaver(store)).invoke(Command(resume="yes"), thread("t"))
    assert (result["said"], result["answer"]) == (["start", "a", "b"], "yes")


def test_the_same_with_asyncio(opened: Opened) -> None:
    async def run() -> Any:
        built = graph(HarnpySaver(opened()))
        await built.ainvoke({"said": []}, thread("t"))
        return await built.ainvoke(Command(resume="yes"), thread("t"))

    assert asyncio.run(run())["said"] == ["a", "b"]


def test_history_goes_back_and_branches(opened: Opened) -> None:
    built = graph(HarnpySaver(opened()))
    built.invoke({"said": []}, thread("t"))
    built.invoke(Command(resume="yes"), thread("t"))
    history = list(built.get_state_history(thread("t")))
    asked = next(state for state in history if state.next == ("ask",))
    branch = built.update_state(asked.config, {"said": ["x"]})
    again = built.invoke(Command(resume="no"), branch)
    assert (again["said"], again["answer"]) == (["a", "x", "b"], "no")
    assert built.get_state(history[0].config).values["answer"] == "yes"


def test_a_thread_grows_by_what_changed(opened: Opened) -> None:
    saver = HarnpySaver(opened())
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    sizes = []
    version = None
    for number in range(3):
        version = saver.get_next_version(version, None)
        checkpoint = {
            "v": 1,
            "id": f"{number:08}",
            "ts": "",
            "channel_values": {"large": "x" * 100_000, "small": number},
            "channel_versions": {"large": "1", "small": version},
            "versions_seen": {},
            "updated_channels": None,
        }
        new = {"small": version} if number else {"large": "1", "small": version}
        config = saver.put(config, checkpoint, {}, new)  # type: ignore[arg-type,assignment]
        record = saver.store.stream("checkpoint", "t", saver._codec).last()
        sizes.append(len(str(record)))
    assert sizes[0] > 100_000 > 5_000 > sizes[1] >= sizes[2] - 10
    found = saver.get_tuple(config)  # type: ignore[arg-type]
    assert found is not None
    assert found.checkpoint["channel_values"] == {"large": "x" * 100_000, "small": 2}


def put(
    saver: HarnpySaver, thread: str, number: int, values: dict[str, Any], new: dict[str, str], **more: Any
) -> Any:
    """Put a checkpoint whose channels have these values; ``new`` are the versions of those that changed."""
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}
    checkpoint: Any = {
        "v": 1, "id": f"{number:08}", "ts": "", "channel_values": values, "versions_seen": {},
        "channel_versions": {"once": "1", "often": f"{number}", "gone": "1"}, "updated_channels": None,
    }  # fmt: skip
    return saver.put(config, checkpoint, {"step": number}, new)


def test_opening_a_long_thread_reads_its_end(opened: Opened) -> None:
    saver = HarnpySaver(opened())
    last: dict[str, Any] = {}
    for number in range(100):
        new = {"often": f"{number}", **({"once": "1", "gone": "1"} if number == 0 else {})}
        found = put(saver, "t", number, {"once": "o", "often": number}, new, **last)
        last = {"checkpoint_id": found["configurable"]["checkpoint_id"]}
    read: list[int] = []
    decode = saver._codec.decode

    def counted(rows: Any) -> Any:
        read.append(len(rows))
        return decode(rows)

    saver._codec.decode = counted  # type: ignore[method-assign]
    config: Any = {"configurable": {"thread_id": "t"}}
    newest = saver.get_tuple(config)
    assert newest is not None
    assert newest.checkpoint["channel_values"] == {"once": "o", "often": 99}
    # A value that has long been the same is found in the last record that has all of them.
    assert sum(read) <= (64 if saver.store.url.startswith("memory") else 16)
    older: Any = {"configurable": {"thread_id": "t", "checkpoint_id": f"{40:08}"}}
    then = saver.get_tuple(older)
    assert then is not None
    assert then.checkpoint["channel_values"] == {"once": "o", "often": 40}


def test_a_list_of_all_threads_has_the_newest_first(opened: Opened) -> None:
    saver = HarnpySaver(opened())
    for number, thread in enumerate(["a", "b", "a", "c", "b"]):
        put(saver, thread, number, {"often": number}, {"often": f"{number}"})
    found = [each.checkpoint["channel_values"]["often"] for each in saver.list(None)]
    assert found == [4, 3, 2, 1, 0]
    assert [each.checkpoint["id"] for each in saver.list(None, limit=2)] == [f"{4:08}", f"{3:08}"]


def test_a_copied_thread_is_a_branch(opened: Opened) -> None:
    store = opened()
    saver = HarnpySaver(store)
    built = graph(saver)
    built.invoke({"said": []}, thread("t"))
    saver.copy_thread("t", "u")
    head = store.head("checkpoint", "u")
    assert head is not None
    assert head.parent == "t"
    assert built.invoke(Command(resume="yes"), thread("u"))["said"] == ["a", "b"]
    assert built.get_state(thread("t")).next == ("ask",)
    saver.delete_thread("t")
    assert built.get_state(thread("u")).values["said"] == ["a", "b"]
    assert [head.name for head in store.heads(HeadQuery("checkpoint")).items] == ["u"]
    built.invoke({"said": []}, thread("t"))  # begun anew
    assert built.get_state(thread("t")).next == ("ask",)


def test_pruning_frees_what_was_before(opened: Opened) -> None:
    store = opened()
    saver = HarnpySaver(store)
    built = graph(saver)
    built.invoke({"said": []}, thread("t"))
    saver.copy_thread("t", "u")
    before = len(list(store.stream("checkpoint", "t", saver._codec).read()))
    saver.prune(["t"])
    assert len(list(store.stream("checkpoint", "t", saver._codec).read())) < before
    assert len(list(saver.list(thread("t")))) == 1  # type: ignore[arg-type]
    assert built.invoke(Command(resume="yes"), thread("t"))["said"] == ["a", "b"]
    assert built.invoke(Command(resume="yes"), thread("u"))["said"] == ["a", "b"]
    with pytest.raises(ValueError, match="keep_latest or delete, not 'newest'"):
        saver.prune(["t"], strategy="newest")


def test_a_pruned_thread_can_be_copied(opened: Opened) -> None:
    saver = HarnpySaver(opened())
    built = graph(saver)
    built.invoke({"said": []}, thread("t"))
    saver.prune(["t"])
    saver.copy_thread("t", "u")
    for name in ("t", "u"):
        assert built.invoke(Command(resume="yes"), thread(name))["said"] == ["a", "b"]


def test_threads_write_at_once_and_nothing_is_lost(opened: Opened) -> None:
    store = opened()
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}}

    def write(task: str) -> None:
        saver = HarnpySaver(store)
        for number in range(10):
            saver.put_writes(config, [("channel", number)], f"{task}{number}")  # type: ignore[arg-type]

    writers = [threading.Thread(target=write, args=(task,)) for task in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    saver = HarnpySaver(store)
    writes = saver._thread("t").namespaces[""].writes["1"]
    assert sorted(task for task, _ in writes) == sorted(f"{t}{n}" for t in "abcd" for n in range(10))


def test_threads_of_one_saver_take_turns(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    saver = HarnpySaver(opened())
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}}
    saver.put_writes(config, [("channel", 0)], "first")
    asked: list[int] = []
    with saver._written.stream("t") as stream:
        kind: Any = type(stream)
    refresh = kind.refresh

    def counted(stream: Any) -> int:
        asked.append(1)
        return int(refresh(stream))

    monkeypatch.setattr(kind, "refresh", counted)
    writers = [
        threading.Thread(target=saver.put_writes, args=(config, [("channel", 1)], f"{number}"))
        for number in range(8)
    ]
    asked.clear()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    refused = [] if saver.store.url.startswith("memory") else asked
    assert refused == []
    assert saver._thread("t").version == 9


def test_records_are_written_and_read_as_before() -> None:
    put = (
        '{"ns":"","id":"1","parent_id":null,"checkpoint":["msgpack","gA=="],"metadata":["json","e30="],'
        '"run_id":null,"deltas":[],"versions":{"x":"1","y":2},"values":{"x":["1","bytes","AP8="]},'
        '"empty":["y"]}'
    )
    writes = (
        '{"ns":"","id":"1","task_id":"t","task_path":"","writes":[[0,"x","null",""],[-1,"y","bytes","/w=="]]}'
    )
    removed = '{"ns":"","ids":["1"]}'
    types = ("checkpoint_put", "checkpoint_writes", "checkpoints_removed")
    rows = [
        Row(n, type, n, data, 3 - n)
        for n, (type, data) in enumerate(zip(types, (put, writes, removed), strict=True), 1)
    ]
    records = ThreadCodec().decode(rows)
    assert records[0].data["values"]["x"] == ("1", "bytes", b"\x00\xff")
    assert records[1].data["writes"][1] == (-1, "y", "bytes", b"\xff")
    assert ThreadCodec().encode(records) == rows
