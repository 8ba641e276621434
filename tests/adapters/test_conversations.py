"""Sessions and threads of a store, together. Spec: 10 §C20, §C21."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from harnpy.adapters import conversations
from harnpy.adapters.conversations import SESSION, THREAD, Conversation
from harnpy.adapters.langgraph import HarnpySaver
from harnpy.adapters.openai_agents import HarnpySession
from harnpy.adapters.threads import ThreadCodec, put_data
from harnpy.session.errors import SessionError, SessionNotFound
from harnpy.session.events import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.storage import HeadQuery, Store, open_store
from harnpy.storage.errors import StorageError
from harnpy.world import World
from tests.storage.notes import NOTES, notes
from tests.storage.test_copying import PAIRS
from tests.support import calls_made

Opened = Callable[..., Store]


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]
    answer: str


def graph(store: Store) -> Any:
    """Says something, asks a person, says what was answered."""
    built = StateGraph(State)
    built.add_node("look", lambda state: {"messages": [AIMessage("A brown mare stands in the barn.")]})
    built.add_node("ask", lambda state: {"answer": interrupt("Shall I feed her?")})
    built.add_node("say", lambda state: {"messages": [AIMessage(f"Done: {state['answer']}.")]})
    for edge in ((START, "look"), ("look", "ask"), ("ask", "say"), ("say", END)):
        built.add_edge(*edge)
    return built.compile(checkpointer=HarnpySaver(store))


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def asked(store: Store, name: str) -> None:
    """A thread that waits for an answer."""
    graph(store).invoke({"messages": [HumanMessage("Which horse is there?")]}, thread(name))


def session(store: Store, name: str, *texts: str) -> StoredSession:
    made = StoredSession.begin(name, store, World())
    for text in texts:
        made.append(EventDraft("message_added", {"role": "user", "content": text}))
    return made


def names(listed: conversations.Listed) -> list[str]:
    return [f"{conversations.kind_of(head)} {head.name}" for head in listed.items]


def test_lists_merge_what_was_written_last(opened: Opened) -> None:
    store = opened()
    session(store, "s1", "a")
    asked(store, "t1")
    session(store, "s2", "a")
    asked(store, "t2")
    everything = ["thread t2", "session s2", "thread t1", "session s1"]
    assert names(conversations.heads(store, HeadQuery(order="created"))) == everything
    threads = conversations.heads(store, HeadQuery(order="id"), [THREAD])
    assert (names(threads), threads.next) == (["thread t1", "thread t2"], None)
    page = conversations.heads(store, HeadQuery(order="created", limit=3))
    assert names(page) == everything[:3]
    rest = conversations.heads(store, HeadQuery(order="created", limit=3, after=page.next))
    assert (names(rest), rest.next) == (everything[3:], None)
    exact = conversations.heads(store, HeadQuery(order="created", limit=4))
    assert (names(exact), exact.next) == (everything, None)


def test_a_list_reads_no_thread(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the threads are, a list takes the same work."""

    def work(prefix: str, length: int) -> int:
        store = opened()
        for number in range(100):
            stream = store.stream("checkpoint", f"{prefix}{number}", ThreadCodec())
            stream.append([record(seq) for seq in range(1, length + 1)], 0)
        store.close()
        store = opened()
        with monkeypatch.context() as forbidden:
            for name in ("decode", "texts"):
                forbidden.setattr(ThreadCodec, name, forbidden_call)
            return calls_made(lambda: conversations.heads(store, HeadQuery(limit=1000)))

    if opened().url == "memory:":
        pytest.skip("a store in memory is another one when it is opened again")
    short = work("a", 1)
    both = work("b", 40)
    assert both < 3 * short


def forbidden_call(*arguments: Any) -> Any:
    pytest.fail("a record of a thread was read")


def record(seq: int) -> Any:
    from harnpy.adapters.threads import PUT, Saved, ThreadRecord

    saved = Saved(f"{seq:09}", None, ("null", b""), ("null", b""), None, (), {"x": seq})
    return ThreadRecord(seq, PUT, seq, put_data("", saved, {"x": ("bytes", b"x" * 1000)}))


def test_names(opened: Opened) -> None:
    store = opened()
    session(store, "both")
    session(store, "thread:odd")
    for name in ("both", "odd", "alone", "thread:deep"):
        asked(store, name)
    find = conversations.find
    assert find(store, "both") == Conversation(SESSION, "both")
    assert find(store, "thread:both") == Conversation(THREAD, "both")
    assert find(store, "both", [THREAD]) == Conversation(THREAD, "both")
    assert find(store, "alone") == find(store, "thread:alone") == Conversation(THREAD, "alone")
    # A session that is called so is meant, as ever.
    assert find(store, "thread:odd") == Conversation(SESSION, "thread:odd")
    assert find(store, "odd") == Conversation(THREAD, "odd")
    assert find(store, "thread:deep") == Conversation(THREAD, "thread:deep")
    for one in (find(store, name) for name in ("both", "thread:both", "alone")):
        assert find(store, str(one)) == one
    with pytest.raises(SessionNotFound, match="'none'"):
        find(store, "none")
    with pytest.raises(SessionNotFound, match="'alone'"):
        find(store, "alone", [SESSION])
    for name, kinds in (("thread:none", [SESSION, THREAD]), ("none", [THREAD])):
        with pytest.raises(SessionError, match="Thread not found: 'none'"):
            find(store, name, kinds)


def found(hits: list[conversations.Found]) -> list[tuple[str, str]]:
    return [(str(hit.conversation), hit.text) for hit in hits]


def test_searches_find_what_threads_say_once(opened: Opened) -> None:
    store = opened()
    session(store, "s", "a brown horse", "nothing")
    asked(store, "t")
    built = graph(store)
    built.invoke(Command(resume="with oats"), thread("t"))
    search = conversations.search
    assert found(search(store, "BROWN")) == [
        ("s", "a brown horse"),
        ("thread:t", "A brown mare stands in the barn."),
    ]
    assert found(search(store, '"which horse"')) == [("thread:t", "Which horse is there?")]
    assert found(search(store, "feed her")) == [("thread:t", "Shall I feed her?")]
    assert ("thread:t", "Done: with oats.") in found(search(store, "oats"))
    assert found(search(store, "horse", kinds=[SESSION])) == [("s", "a brown horse")]
    assert found(search(store, "horse", Conversation(THREAD, "t"))) == [("thread:t", "Which horse is there?")]
    assert len(search(store, "horse", limit=1)) == 1
    assert search(store, "human") == []  # the kind of a message isn't said


def test_a_search_looks_on_until_enough_is_said(opened: Opened) -> None:
    """Each checkpoint repeats the state: the later thread isn't hidden behind the first one's repetitions."""
    store = opened()
    built = StateGraph(State)
    built.add_node("count", lambda state: {"messages": [AIMessage("one more")]})
    built.add_edge(START, "count")
    compiled = built.compile(checkpointer=HarnpySaver(store))
    for _ in range(12):
        compiled.invoke({"messages": [HumanMessage("hello there")]}, thread("a"))
    compiled.invoke({"messages": [HumanMessage("hello, too")]}, thread("b"))
    assert found(conversations.search(store, "hello", limit=2)) == [
        ("thread:a", "hello there"),
        ("thread:b", "hello, too"),
    ]


def test_a_thread_as_it_was(opened: Opened) -> None:
    store = opened()
    asked(store, "t")
    before = conversations.thread_history(store, "t")
    graph(store).invoke(Command(resume="yes"), thread("t"))
    history = conversations.thread_history(store, "t")
    place = history.latest()
    assert place is not None
    shown = history.shown(place)
    assert [message["content"] for message in shown.values["messages"]][1:] == [
        "A brown mare stands in the barn.",
        "Done: yes.",
    ]
    assert shown.values["answer"] == "yes"
    assert shown.step == "step 3 (loop)"
    again = conversations.thread_history(store, "t", before.thread.version)
    assert again.places() == before.places() != history.places()
    [question] = [value for _, channel, value in again.shown(again.places()[-1]).writes]
    assert question[0]["value"] == "Shall I feed her?"


def test_a_store_that_was_repaired_says_so_within_a_thread(tmp_path: Path) -> None:
    url = f"jsonl:{tmp_path}/store"
    with closing(open_store(url)) as store:
        asked(store, "t")
    with (tmp_path / "store/logs/checkpoint/t.jsonl").open("ab") as log:
        log.write(b'{"seq":')
    with closing(open_store(url)) as store:
        result = graph(store).invoke(Command(resume="yes"), thread("t"))
        assert result["answer"] == "yes"
        types = [record.type for record in conversations.thread_stream(store, "t").read()]
        assert "store_repaired" in types
        assert graph(store).get_state(thread("t")).values["answer"] == "yes"
        assert found(conversations.search(store, "feed")) == [("thread:t", "Shall I feed her?")]


# Copies.


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    urls = {"jsonl": f"jsonl:{tmp_path}/store", "sqlite": f"sqlite:{tmp_path}/store.db"}
    source, target = (
        request.getfixturevalue("postgres") if kind == "postgres" else urls[kind] for kind in request.param
    )
    with closing(open_store(source)) as ours, closing(open_store(target)) as theirs:
        yield ours, theirs


def test_a_copy_takes_all_that_there_is(pair: tuple[Store, Store]) -> None:
    source, target = pair
    session(source, "s", "a")
    agents = HarnpySession("agents", source)
    items: list[Any] = [{"role": "user", "content": "hi"}, {"type": "reasoning", "summary": []}]
    asyncio.run(agents.add_items(items))
    asked(source, "t")
    for number in range(3):
        source.stream("topic", f"topic{number}", NOTES).append(notes(1, "x"), 0)
    report = conversations.copy(source, target)
    topics = [f"topic:topic{number}" for number in range(3)]
    assert sorted(map(str, report.copied)) == ["agents", "s", "thread:t", *topics]
    assert (report.skipped, report.errors) == ([], [])
    assert asyncio.run(HarnpySession("agents", target).get_items()) == items
    # LangGraph goes on where the original is.
    state, there = (graph(store).get_state(thread("t")) for store in pair)
    assert (there.values, there.next, there.interrupts) == (state.values, state.next, state.interrupts)
    assert there.config == state.config
    for store in pair:
        result = graph(store).invoke(Command(resume="yes"), thread("t"))
        assert result["messages"][-1].content == "Done: yes."
    assert len([*graph(target).get_state_history(thread("t"))]) == 5


def test_a_copy_is_continued_and_named_ones_are_copied_alone(pair: tuple[Store, Store]) -> None:
    source, target = pair
    asked(source, "t")
    session(source, "t", "a")
    source.stream("topic", "topic", NOTES).append(notes(1, "x"), 0)
    report = conversations.copy(source, target, ["thread:t", "none", "thread:none"])
    assert list(map(str, report.copied)) == ["thread:t"]
    assert [(str(one), why) for one, why in report.errors] == [
        ("none", f"there is no session 'none' in {source.url}"),
        ("thread:none", f"there is no thread 'none' in {source.url}"),
    ]
    graph(source).invoke(Command(resume="yes"), thread("t"))
    report = conversations.copy(source, target)
    assert sorted(map(str, report.copied)) == ["t", "thread:t", "topic:topic"]
    assert graph(target).get_state(thread("t")).values["answer"] == "yes"
    assert len(conversations.copy(source, target).skipped) == 3


def test_copies_of_pruned_threads_and_of_branches(pair: tuple[Store, Store]) -> None:
    source, target = pair
    asked(source, "t")
    saver = HarnpySaver(source)
    saver.copy_thread("t", "branch")
    saver.prune(["t"])
    saver.copy_thread("t", "of-pruned")
    report = conversations.copy(source, target)
    assert (len(report.copied), report.errors) == (3, [])
    assert [str(one) for one in conversations.copy(source, target).skipped] == list(map(str, report.copied))
    graph(source).invoke(Command(resume="yes"), thread("t"))
    assert [str(one) for one in conversations.copy(source, target).copied] == ["thread:t"]
    for name in ("t", "branch", "of-pruned"):
        ours, theirs = (list(conversations.thread_stream(store, name).read()) for store in pair)
        assert ours == theirs
        if name != "t":
            result = graph(target).invoke(Command(resume="yes"), thread(name))
            assert result["messages"][-1].content == "Done: yes."
    assert target.fsck().clean


def test_a_pruned_thread_is_no_copy_of_what_it_was(pair: tuple[Store, Store]) -> None:
    source, target = pair
    asked(source, "t")
    conversations.copy(source, target)
    HarnpySaver(source).prune(["t"])
    report = conversations.copy(source, target)
    assert [(str(one), why) for one, why in report.errors] == [("thread:t", "Stream already exists: 't'")]
    assert graph(target).get_state(thread("t")).next == ("ask",)


def test_a_branch_is_not_made_of_another_stream_that_has_its_parents_name(pair: tuple[Store, Store]) -> None:
    source, target = pair
    session(source, "s", "ours").fork("fork")
    session(target, "s", "theirs")
    report = conversations.copy(source, target)
    assert [str(one) for one, _ in report.errors] == ["s"]
    fork = StoredSession.load("fork", target, World())
    assert fork is not None
    assert [message["content"] for message in fork.messages()] == ["ours"]


def test_a_copy_that_is_made_while_others_write_has_what_its_records_point_to(
    pair: tuple[Store, Store],
) -> None:
    source, target = pair
    done = Event()

    def write(number: int) -> None:
        """Append to a session, to a topic, and then a record that points to both."""
        said, topic = session(source, f"s{number}", "a"), source.stream("topic", f"t{number}", NOTES)
        run = source.stream("run", f"r{number}", NOTES)
        while not done.is_set() or run.version < 5:
            said.append(EventDraft("message_added", {"role": "user", "content": "x"}))
            topic.append(notes(topic.version + 1, "x"), topic.version)
            run.append(notes(run.version + 1, f"{said.version} {topic.version}"), run.version)

    with ThreadPoolExecutor(3) as writers:
        ends = [writers.submit(write, number) for number in range(3)]
        reports = [conversations.copy(source, target) for _ in range(4)]
        done.set()
        for end in ends:
            end.result()
    assert [error for report in reports for error in report.errors] == []
    for number in range(3):
        last = target.stream("run", f"r{number}", NOTES).last()
        if last is not None:
            seq, version = map(int, last.text.split())
            assert target.stream("topic", f"t{number}", NOTES).version >= version
            copied = target.head("session", f"s{number}")
            assert copied is not None
            assert copied.version >= seq
    conversations.copy(source, target)
    assert target.fsck().clean


def test_memory_is_no_end_of_a_copy(tmp_path: Path) -> None:
    with (
        closing(open_store(f"jsonl:{tmp_path}/store")) as store,
        pytest.raises(StorageError, match="memory:"),
    ):
        conversations.copy(store, open_store("memory:"))
