"""The table of a store's live sessions. Spec: 10 §C7.2."""

from __future__ import annotations

import gc
from contextlib import closing
from pathlib import Path
from weakref import ref

import pytest

from harnpy import Vm
from harnpy.session import SessionRegistry, SessionRuntime
from harnpy.session.conversation import SessionConversation
from harnpy.session.live import live_sessions
from harnpy.session.log import KIND
from harnpy.storage import open_store
from harnpy.world import World

STORES = ["memory:", "jsonl:{}/log", "sqlite:{}/s.db"]


@pytest.mark.parametrize("url", STORES)
def test_a_store_has_one_object_for_each_id(url: str, tmp_path: Path) -> None:
    with closing(open_store(url.format(tmp_path))) as store:
        first, second = SessionRuntime(store), SessionRuntime(store)
        session = first.create("agent", id="s")
        assert second.get("s") is session
        assert second.get("s").fork("t") is first.get("t")
        registry = SessionRegistry()
        registry.open("s", {"store": store})
        assert registry.session("s") is session
        registry.close("s")
        assert first.get("s") is session, "it was the registry's reference that ended"


def test_two_stores_of_one_url_have_two(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/s.db"
    with closing(open_store(url)) as here, closing(open_store(url)) as there:
        one, other = SessionRuntime(here), SessionRuntime(there)
        session = one.create("agent", id="s")
        theirs = other.get("s")
        assert theirs is not session
        session.add_history([{"role": "user", "content": "a"}])
        assert other.get("s").length == 1


def test_a_new_session_takes_the_place_of_one_that_was_deleted_elsewhere() -> None:
    store = open_store("memory:")
    runtime = SessionRuntime(store)
    runtime.create("agent", id="s").fork("t").add_history([{"role": "user", "content": "a"}])
    store.delete(KIND, "t")
    runtime.get("s").add_history([{"role": "user", "content": "b"}])
    fork = runtime.get("s").fork("t")
    assert runtime.get("t") is fork
    assert [message["content"] for message in fork.messages()] == ["b"]


def test_a_store_keeps_no_program_alive(tmp_path: Path) -> None:
    vm = Vm()
    store = vm.sessions.stores.of(f"sqlite:{tmp_path}/s.db")
    assert store is not None
    vm.run_source(f'agent_session_open("s", {{store: "{store.url}"}})')
    table, program = ref(live_sessions(store, World())), ref(vm)
    del vm
    gc.collect()
    assert (program(), table()) == (None, None)


@pytest.mark.parametrize("url", STORES[1:])
def test_what_a_program_had_is_free_when_it_ends(url: str, tmp_path: Path) -> None:
    url = url.format(tmp_path)
    registry = SessionRegistry()
    registry.open("s", {"store": url})
    loop = SessionConversation("s", registry)
    loop.begin(None, "text")
    loop.end("completed")
    registry.stores.close()
    with closing(open_store(url)) as other:
        other.lease("session:s", wait=0).release()
