"""Stores that a process takes along when it is forked off: both go on, and lose nothing. Spec: 10 §C6."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from threading import Event, Thread

import pytest

from harnpy.storage import Store, open_store
from harnpy.storage.errors import LeaseHeld, LeaseLost, StoreUnreachable
from harnpy.storage.leases import Lease
from tests.counts import COUNT
from tests.storage.conftest import STORES
from tests.storage.notes import NOTES, Note
from tests.support import PATIENCE

Opened = Callable[..., Store]

#: Every store that other processes see, too.
pytestmark = pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)


class Fork:
    """A process forked off from this one, which does ``work(go_on)`` and ends."""

    def __init__(self, work: Callable[[Callable[[], object]], object]) -> None:
        go, self._going = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns where there are threads
            self.pid = os.fork()
        if self.pid:
            os.close(go)
            return
        status = 1
        try:
            work(lambda: os.read(go, 1))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def go_on(self) -> None:
        os.write(self._going, b".")

    def ends_well(self) -> None:
        os.close(self._going)
        _, status = os.waitpid(self.pid, 0)
        assert status == 0


#: What each process appends.
MANY = 20


def append(store: Store, name: str, fence: Lease | None = None) -> None:
    """Append, one by one, and read back what was acknowledged."""
    stream = store.stream("session", name, NOTES)
    stream.refresh()
    begin = stream.version
    for number in range(begin + 1, begin + MANY + 1):
        stream.append([Note(number, f"{name} {number}")], number - 1, fence=fence)
    assert len(list(stream.read())) == begin + MANY


@pytest.mark.parametrize(
    ("way", "durability", "closes"),
    [
        ("carried", "relaxed", "parent first"),
        ("carried", "async", "child first"),
        ("opened anew", "relaxed", "parent first"),
    ],
)
def test_what_both_processes_acknowledge_is_kept(url: str, way: str, durability: str, closes: str) -> None:
    mark = "&" if "?" in url else "?"
    url = f"{url.replace('?durability=relaxed', '?')}{mark}durability={durability}".replace("?&", "?")
    store = open_store(url)
    append(store, "before")
    raw = url.startswith("sqlite:")  # so that there is an index
    store.search("before", "session", codec=NOTES, raw=raw)

    def work(go_on: Callable[[], object]) -> None:
        mine = store if way == "carried" else open_store(url)
        append(mine, "child")
        go_on()
        append(mine, "child")
        mine.flush()
        assert mine.search(f"child {2 * MANY}", "session", codec=NOTES, raw=raw)
        if closes == "child first":
            mine.close()

    child = Fork(work)
    append(store, "parent")
    if closes == "parent first":
        store.close()
    child.go_on()
    child.ends_well()
    store.close()
    with closing(open_store(url)) as found:
        for name, count in {"before": MANY, "parent": MANY, "child": 2 * MANY}.items():
            assert len(list(found.stream("session", name, NOTES).read())) == count
        assert found.fsck().findings == []


def test_a_lease_stays_with_the_process_that_took_it(opened: Opened) -> None:
    store = opened()
    lease = store.lease("session:s", wait=0)

    def work(go_on: Callable[[], object]) -> None:
        for use in (lease.renew, lambda: append(store, "s", lease)):
            with pytest.raises(LeaseLost):
                use()
        lease.release()
        with pytest.raises(LeaseHeld):
            store.lease("session:s")
        store.close()

    Fork(work).ends_well()
    lease.renew()
    append(store, "s", lease)
    lease.release()
    store.lease("session:s").release()


def test_a_lease_of_a_forked_process_goes_with_it(opened: Opened) -> None:
    store = opened()
    Fork(lambda go_on: store.lease("session:s", ttl=1000)).ends_well()
    store.lease("session:s", wait=PATIENCE).release()


def test_each_process_sees_what_the_other_one_appends(opened: Opened) -> None:
    store = opened()
    store.changes("session", "s", 0, 0.01)  # a listener, where there is one

    def work(go_on: Callable[[], object]) -> None:
        assert store.changes("session", "parent", MANY - 1, PATIENCE) == MANY
        append(store, "child")

    child = Fork(work)
    append(store, "parent")
    assert store.changes("session", "child", MANY - 1, PATIENCE) == MANY
    child.ends_well()


def test_a_process_forks_while_its_threads_write_and_read(opened: Opened) -> None:
    """No fork finds one of them inside the store, or what it finds is refused."""
    store, over = opened(), Event()
    threads = [Thread(target=use, args=(store, f"thread {number}", over)) for number in range(3)]
    for thread in threads:
        thread.start()

    def work(go_on: Callable[[], object]) -> None:
        with suppress(StoreUnreachable):
            append(store, f"child {os.getpid()}")

    try:
        for _ in range(COUNT.forks):
            Fork(work).ends_well()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert store.fsck().findings == []


def use(store: Store, name: str, over: Event) -> None:
    stream = store.stream("session", name, NOTES)
    while not over.is_set():
        stream.append([Note(stream.version + 1, name)], stream.version)
        assert stream.last() is not None
