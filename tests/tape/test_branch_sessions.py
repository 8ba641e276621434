"""Sessions and topics of a branch: forks of the recorded ones, under the names that the program knows.

Spec: 13 §5.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from harnpy.embedding import Vm
from harnpy.eventlog.topics import TOPIC
from harnpy.session.codec import SessionCodec
from harnpy.session.events import Origin
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.storage.contract import Head, HeadQuery, Store
from harnpy.storage.copying import Rows
from harnpy.storage.opening import open_store
from harnpy.tape import Changes, Replaying, TapeDiverged, branch
from harnpy.world import World
from tests.durable.runs import Outside
from tests.tape.branched import Branch, record

URL = "sqlite:sessions.db"
ASK = 'let usual = {provider: "p", model: "m"}\nfn ask(text) { return llm_call(text, nil, usual).text }\n'
TALK = (
    ASK
    + """
let talk = agent_session_open("talk", {store: "sqlite:sessions.db"})
agent_session_inject(talk, {role: "user", content: "before"})
ask("one")
agent_session_inject(talk, {role: "user", content: ask("two")})
let other = agent_session_open("other", {store: "sqlite:sessions.db"})
agent_session_inject(other, {role: "user", content: "later"})
for s in [talk, other] {
  for x in agent_session_snapshot(s).messages { println("${s}: ${x.content}") }
}
"""
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def store() -> Iterator[Store]:
    with closing(open_store(f"sqlite:{Path.cwd() / 'sessions.db'}")) as found:
        yield found


def heads(kind: str = KIND) -> dict[str, Head]:
    with store() as found:
        return {head.name: head for head in found.heads(HeadQuery(kind)).items}


def rows(name: str, kind: str = KIND) -> list[str]:
    with store() as found:
        return [row.data for row in found.stream(kind, name, Rows()).read()]


def test_a_session_is_a_fork_of_the_recorded_one_as_it_was_at_the_call(here: Path) -> None:
    tape, printed = record(here, TALK)
    before = {name: rows(name) for name in ("talk", "other")}
    made = Branch(tape, 2, Changes(message="changed"))
    assert made.output == printed.replace("<two>", "<changed>")
    assert {name: rows(name) for name in ("talk", "other")} == before
    fork = made.world.forks.sessions["talk"]
    found = heads()
    # The other one was made behind the call: the branch has made its own.
    (fresh,) = found.keys() - {"talk", "other", fork}
    assert (found[fork].parent, found[fork].fork_seq) == ("talk", 2)
    assert found[fork].data["fork_reason"] == "branch of run.tape at call 2"
    assert found[fork].version == found["talk"].version
    assert found[fresh].parent is None
    assert "later" in rows(fresh)[1]
    with store() as opened:
        session = StoredSession.load(fork, opened, World())
        assert session is not None
        assert [message["content"] for message in session.view.window.messages()] == ["before", "<changed>"]
        assert session.info.parent_id == "talk"


READING = (
    ASK
    + """
let talk = agent_session_open("talk", {store: "sqlite:sessions.db"})
agent_session_inject(talk, {role: "user", content: "before"})
agent_session_inject(talk, {role: "user", content: read_file("prompt.txt")})
agent_session_inject(talk, {role: "assistant", content: ask("one")})
agent_session_inject(talk, {role: "user", content: ask("two")})
for x in agent_session_snapshot(talk).messages { println(x.content) }
"""
)


def test_a_session_has_an_edited_prompt_that_was_written_to_it_before_the_call(here: Path) -> None:
    (here / "prompt.txt").write_text("old")
    tape, _ = record(here, READING)
    before = rows("talk")
    (here / "prompt.txt").write_text("new")
    made = Branch(tape, 2, Changes(files={"prompt.txt": "prompt.txt"}))
    assert made.output == "before\nnew\n<one>\n<two>\n"
    assert made.outside.asked == {"two": 1}
    fork = made.world.forks.sessions["talk"]
    assert (heads()[fork].parent, heads()[fork].fork_seq) == ("talk", 2)  # up to where they differ
    assert rows("talk") == before
    with store() as opened:
        session = StoredSession.load(fork, opened, World())
        assert session is not None
        contents = [message["content"] for message in session.view.window.messages()]
    assert contents == ["before", "new", "<one>", "<two>"]
    # And so has a branch of the branch.
    again = Branch(made.tape, 2, Changes(message="other"))
    assert again.output == "before\nnew\n<one>\n<other>\n"
    assert (heads()[again.world.forks.sessions["talk"]].parent) == fork


def test_what_else_is_written_to_a_session_before_the_call_ends_the_branch(here: Path) -> None:
    (here / "prompt.txt").write_text("old")
    tape, _ = record(here, READING)
    source = READING.replace('agent_session_inject(talk, {role: "user", content: "before"})', "")
    (here / "other.harn").write_text(source)
    with pytest.raises(TapeDiverged, match=r"recorded was that it reads the clock, now it reads prompt\.txt"):
        Branch(tape, 2, Changes(code="other.harn"))
    assert heads().keys() == {"talk"}


def test_programs_see_where_a_branch_comes_from(here: Path) -> None:
    tape, _ = record(here, TALK)
    fork = Branch(tape, 2).world.forks.sessions["talk"]
    outside = Outside()
    source = f'agent_session_open("{fork}", {{store: "{URL}"}})\nprintln(agent_session_ancestry("{fork}"))'
    Vm(world=outside).run_source(source)
    said = outside.output()
    assert said == "{child_ids: [], parent_id: talk, root_id: talk}\n"


def test_a_session_that_isnt_written_behind_the_call_has_a_fork_too(here: Path) -> None:
    source = TALK.replace('agent_session_inject(talk, {role: "user", content: ask("two")})', 'ask("two")')
    tape, _ = record(here, source)
    made = Branch(tape, 2)
    assert heads()[made.world.forks.sessions["talk"]].version == 2


def test_a_session_of_others_that_the_branch_writes_to_is_forked_first(here: Path) -> None:
    with store() as found:
        StoredSession.begin("theirs", found, World())
    tape, _ = record(here, TALK)
    (here / "new.harn").write_text(
        TALK.replace('let other = agent_session_open("other"', 'let other = agent_session_open("theirs"')
    )
    made = Branch(tape, 2, Changes(code="new.harn"))
    assert "theirs: later" in made.output
    assert len(rows("theirs")) == 1
    fork = made.world.forks.sessions["theirs"]
    assert heads()[fork].parent == "theirs"
    assert "later" in rows(fork)[-1]


LATER = (
    ASK
    + """
let talk = agent_session_open("talk", {store: "sqlite:sessions.db"})
agent_session_inject(talk, {role: "user", content: "before"})
ask("one")
agent_session_close(talk)
let again = agent_session_open("talk", {store: "sqlite:sessions.db"})
println(agent_session_ancestry("talk"))
for x in agent_session_snapshot(again).messages { println(x.content) }
agent_session_inject(again, {role: "user", content: "behind"})
let fork = agent_session_fork("talk", "mine")
agent_session_inject(fork, {role: "user", content: "in the fork"})
agent_session_close(fork)
agent_session_open("mine", {store: "sqlite:sessions.db"})
println(agent_session_ancestry("mine"))
for x in agent_session_snapshot("mine").messages { println(x.content) }
"""
)


def test_the_program_goes_on_calling_it_by_its_name(here: Path) -> None:
    tape, printed = record(here, LATER)
    before = {name: rows(name) for name in ("talk", "mine")}
    made = Branch(tape, 1)
    assert made.output == printed
    assert {name: rows(name) for name in before} == before
    fork = made.world.forks.sessions["talk"]
    (mine,) = heads().keys() - {"talk", "mine", fork}
    assert heads()[mine].parent == fork
    again = Branch(made.tape, 1)
    assert again.output == printed
    outside = Outside()
    vm = Vm(world=Replaying(again.tape, outside))
    outside.prepare(vm)
    vm.run_recorded()
    assert outside.output() == printed
    second = again.world.forks.sessions["talk"]
    assert heads()[second].parent == fork


def test_topics_are_forked_as_well(here: Path) -> None:
    (here / "harn.toml").write_text(f'[event_log]\nstore = "{URL}"\n')
    source = (
        ASK
        + """
event_log.emit("news", "said", {n: 1})
ask("one")
event_log.emit("news", "said", {n: 2})
println(event_log.latest("news"))
"""
    )
    tape, printed = record(here, source)
    before = rows("news", TOPIC)
    assert len(before) == 2
    (here / "sub").mkdir()
    made = Branch(tape, 1)
    assert made.output == printed
    assert rows("news", TOPIC) == before
    (fork,) = heads(TOPIC).keys() - {"news"}
    assert len(rows(fork, TOPIC)) == 2


def test_sessions_in_memory_need_no_fork(here: Path) -> None:
    tape, printed = record(here, TALK.replace(', {store: "sqlite:sessions.db"}', ""))
    made = Branch(tape, 2)
    assert made.output == printed
    assert made.world.forks.sessions == {}


def test_a_branch_says_which_forks_it_made(here: Path) -> None:
    record(here, TALK)
    outside = Outside()
    found = branch("run.tape", 2, world=outside, prepare=outside.prepare)
    assert found.error is None
    (name,) = found.sessions
    assert name == "talk"
    assert heads()[found.sessions["talk"]].parent == "talk"


def test_lists_and_searches_show_what_the_program_knows(here: Path) -> None:
    tape, _ = record(here, TALK)
    made = Branch(tape, 2, Changes(message="changed"))
    with store() as real:
        view: Any = made.world.forks.store(real)
        names = {head.name: head for head in view.heads(HeadQuery(KIND)).items}
        assert names.keys() == {"talk", "other"}
        assert names["talk"].parent is None
        assert "parent_id" not in names["talk"].data
        codec = SessionCodec(Origin("talk", World()))
        found = [(hit.name, hit.seq) for hit in view.search("before", codec=codec)]
        assert found == [("talk", 2)]
        assert [hit.name for hit in view.search("changed", codec=codec)] == ["talk"]
        assert view.search("two", codec=codec) == []
        assert view.versions(KIND, ["talk", "none"]) == {"talk": 3}
        assert view.news(KIND, {"talk": 2}, 0) == {"talk": 3}


def test_nothing_that_was_recorded_can_be_deleted(here: Path) -> None:
    tape, _ = record(here, TALK)
    made = Branch(tape, 2)
    kept = {name: rows(name) for name in ("talk", "other")}
    with store() as real:
        view: Any = made.world.forks.store(real)
        assert view.delete(KIND, "talk")
        assert view.head(KIND, "talk") is None
        assert not view.delete(KIND, "talk")
        view.erase([(KIND, "other")])
        view.gc(older_than=0)
        assert view.head(KIND, "other") is None
    assert {name: rows(name) for name in ("talk", "other")} == kept


def test_leases_are_the_forks(here: Path) -> None:
    tape, _ = record(here, TALK)
    made = Branch(tape, 2)
    with store() as real, real.lease("talk"):
        view: Any = made.world.forks.store(real)
        assert view.holder("talk") is None
        with view.lease("talk"), view.lease("runs:talk"):
            assert real.holder(made.world.forks.sessions["talk"]) is not None


def test_a_store_may_be_open_twice(here: Path) -> None:
    (here / "harn.toml").write_text(f'[event_log]\nstore = "{URL}"\n')
    tape, printed = record(here, TALK + 'event_log.emit("news", "said", {n: 1})\nask("last")\n')
    assert Branch(tape, 3).output == printed


def test_sessions_in_a_database_are_forked_and_replayed(here: Path, postgres: str) -> None:
    tape, printed = record(here, TALK.replace(URL, postgres))
    outside = Outside()
    Vm(world=Replaying(tape, outside)).run_recorded()
    assert outside.output() == printed
    made = Branch(tape, 2, Changes(message="changed"))
    assert made.output == printed.replace("<two>", "<changed>")
    with closing(open_store(postgres)) as found:
        head = found.head(KIND, made.world.forks.sessions["talk"])
    assert head is not None
    assert (head.parent, head.fork_seq) == ("talk", 2)
