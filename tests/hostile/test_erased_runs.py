"""Durable runs that hold what erased sessions said go with them, or keep all as it is. Spec: 10 §C21.1."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from harnpy.session import EventDraft, erasure
from harnpy.session.erasure import ENDED, RUNS, Erasure, erase
from harnpy.session.errors import SessionError
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.storage import open_store
from harnpy.storage.contract import HeadQuery, Row, Store, all_heads
from harnpy.storage.copying import Rows
from harnpy.workflow.engines import contract, run_log
from harnpy.world import World
from tests.support import Command
from tests.worlds import world_with

SAID = 'the "heron" sleeps\nin the reeds – tell nobody'
STORES = {"sqlite": "sqlite:.harn/sessions.db", "jsonl": "jsonl:.harn/s"}
PROGRAM = """
let STORE = {store: true}
let id = agent_session_open(nil, STORE)
agent_loop("tell nobody that the heron sleeps", nil, {session_id: id, provider: "mock"})
agent_session_close(id)
let again = agent_session_open(id, STORE)
println(id)
"""
QUIET = """println("the weather is fine")"""


def based(text: str | bytes) -> str:
    return b64encode(text.encode() if isinstance(text, str) else text).decode()


REPLY = json.dumps({"choices": [{"message": {"content": f"I hear that {SAID}"}}]})
PIECES = "".join(
    f"data: {json.dumps({'choices': [{'delta': {'content': SAID[at : at + 3]}}]})}\n\n"
    for at in range(0, len(SAID), 3)
)
#: What steps come to that have the message, or the session's name.
TOLD: dict[str, Any] = {
    "a name": {"ok": ["talk"]},
    "a name as a key": {"ok": {"talk": 1}},
    "a name in JSON": {"ok": json.dumps({"session_id": "talk"})},
    "a name in JSON in JSON in JSON": {"ok": json.dumps(json.dumps(json.dumps({"session_id": "talk"})))},
    "a text": {"ok": f"So {SAID}!"},
    "a row of a session": {"ok": [1, [[2, "message_added", 3, json.dumps({"content": SAID})]]]},
    "ASCII in JSON": {"ok": json.dumps(json.dumps({"content": SAID}, ensure_ascii=True))},
    "a reply": {"ok": {"$tuple": [200, [], {"$bytes": based(REPLY)}]}},
    "a compressed reply": {"ok": {"$tuple": [200, [], {"$bytes": based(gzip.compress(REPLY.encode()))}]}},
    "a reply in pieces": {"ok": {"$tuple": [200, [], {"$bytes": based(PIECES)}]}},
    "a text that JSON can't hold": {"ok": {"$text": based(f"\0{SAID}")}},
}
#: What they come to that hasn't.
UNTOLD: dict[str, Any] = {
    "nothing": None,
    "a part of a name": {"ok": ["talks", "stalk"]},
    "a part of the text": {"ok": SAID[:20]},
    "no Base64": {"ok": {"$bytes": "ä"}},
    "no JSON": {"ok": "{[" * 5000},
    "deep JSON": {"ok": "[" * 5000 + "]" * 5000},
    "a number": {"ok": {"$bytes": 5}},
}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], object]:
    return lambda name, text: (tmp_path / name).write_text(text)


@pytest.fixture(params=[*STORES, "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    urls = {"sqlite": f"sqlite:{tmp_path}/s.db", "jsonl": f"jsonl:{tmp_path}/s", "memory": "memory:"}
    with closing(open_store(urls[request.param])) as store:
        for id, text in {"talk": SAID, "other": "the weather is fine today"}.items():
            session = StoredSession.begin(id, store, World())
            session.append(EventDraft("message_added", {"role": "user", "content": text}))
        yield store


def add_run(store: Store, id: str, output: Any, status: str = "completed") -> None:
    drafts: list[run_log.Draft] = [
        (run_log.CREATED, {"job": {"kind": "k", "name": "n", "body": {}}, "queue": None}),
        (run_log.STEP, {"n": 1, "key": "a", "output": {"ok": 1}}),
        (run_log.STEP, {"n": 2, "key": "b", "output": output}),
    ]
    head = {"status": status, "kind": "k", "name": "n"}
    store.stream(RUNS, id, Rows()).append(run_log.rows(drafts, 0, 1), 0, head=head)


def fork_run(store: Store, id: str, new: str, until: int, status: str = "completed") -> None:
    first = Row(1, run_log.CREATED, 2, json.dumps({"job": {}, "forked": {"run": id, "seq": until}}))
    head = {"status": status, "kind": "k", "name": "n"}
    store.branch(store.stream(RUNS, id, Rows()), new, first, until=until, head=head)


def runs_in(store: Store) -> list[str]:
    return [head.name for head in all_heads(store, HeadQuery(RUNS, order="id"))]


def erased(store: Store, tmp_path: Path) -> Erasure:
    return erase(store, ["talk"], world_with(cwd=lambda: str(tmp_path)), lambda id: nullcontext())


def test_the_statuses_are_those_of_engines() -> None:
    assert (RUNS, ENDED) == (run_log.KIND, contract.ENDED)


def test_runs_that_hold_what_was_said_go(store: Store, tmp_path: Path) -> None:
    for id, output in (TOLD | UNTOLD).items():
        add_run(store, id, output)
    add_run(store, "an attribute", None)
    head = {"status": "failed", "kind": "k", "name": "n", "attributes": {"of": "talk"}}
    store.stream(RUNS, "an attribute", Rows()).append([], 3, head=head)
    result = erased(store, tmp_path)
    assert result.sessions == ["talk"]
    assert result.runs == sorted([*TOLD, "an attribute"])
    assert runs_in(store) == sorted(UNTOLD)
    assert [head.name for head in all_heads(store, HeadQuery(KIND))] == ["other"]


@pytest.mark.parametrize("status", sorted(set(contract.STATUSES) - contract.ENDED))
def test_a_run_that_goes_on_keeps_all(store: Store, tmp_path: Path, status: str) -> None:
    add_run(store, "over", TOLD["a text"])
    add_run(store, "on", TOLD["a text"], status)
    with pytest.raises(SessionError) as raised:
        erased(store, tmp_path)
    assert str(raised.value) == (
        "a run that goes on holds what was said, too: on; end it first: `harnpy runs cancel on`"
    )
    add_run(store, "on, too", TOLD["a name"], status)
    with pytest.raises(SessionError, match="runs that go on hold what was said, too: on, on, too; end"):
        erased(store, tmp_path)
    assert store.head(KIND, "talk") is not None
    assert runs_in(store) == ["on", "on, too", "over"]


def test_a_run_that_somebody_works_on_keeps_all(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "_LETTING_GO", 0.05)
    add_run(store, "over", TOLD["a text"])
    with store.lease("run:over"), pytest.raises(SessionError, match="goes on holds"):
        erased(store, tmp_path)
    assert erased(store, tmp_path).runs == ["over"]


def test_forks_of_runs_count_as_far_as_they_share(store: Store, tmp_path: Path) -> None:
    add_run(store, "run", TOLD["a text"])
    fork_run(store, "run", "before", 2)
    fork_run(store, "run", "behind", 3, "queued")
    with pytest.raises(SessionError, match="too: behind; end"):
        erased(store, tmp_path)
    store.delete(RUNS, "behind")
    fork_run(store, "run", "settled", 3)
    store.stream(RUNS, "settled", Rows()).settle()
    store.delete(RUNS, "run")
    assert erased(store, tmp_path).runs == ["settled"]
    assert runs_in(store) == ["before"]


@pytest.mark.parametrize("name", STORES)
def test_no_file_holds_what_a_program_said(
    harnpy: Command, tmp_path: Path, name: str, write: Callable[[str, str], object]
) -> None:
    write("program.harn", PROGRAM)
    write("quiet.harn", QUIET)
    keep = {"HARN_SESSION_STORE": STORES[name]}
    done = harnpy("run", "--durable", "--run-id", "told", "program.harn", **keep)
    assert done.returncode == 0, done.stderr
    id = done.stdout.strip()
    assert harnpy("run", "--durable", "--run-id", "quiet", "quiet.harn", **keep).returncode == 0
    store = ("--store", STORES[name])
    done = harnpy("sessions", *store, "--json", "delete", "--hard", "--everywhere", id, **keep)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] == ["told"]
    listed = harnpy("runs", "list", *store, "--json", **keep).stdout
    assert ("quiet" in listed, "told" in listed) == (True, False)
    files = [path for path in (tmp_path / ".harn").rglob("*") if path.is_file()]
    assert [path for path in files if b"heron" in path.read_bytes()] == []
