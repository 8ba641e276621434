"""A disk without room, behind `durability=async`: the live session says so once, then goes on."""

from __future__ import annotations

import pytest

from harnpy.session import SessionRuntime
from harnpy.storage.deferred import DeferredStore
from harnpy.storage.errors import AppendLost, StoreFull
from harnpy.storage.memory import MemoryStore, MemoryStream


def test_a_session_goes_on_when_there_is_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    is_full, append = [], MemoryStream.append

    def limited(stream: MemoryStream, *args: object, **more: object) -> None:
        if is_full:
            raise StoreFull("the disk")
        append(stream, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryStream, "append", limited)
    with SessionRuntime(DeferredStore(MemoryStore())) as runtime:
        session, other = runtime.create(id="s"), runtime.create(id="t")
        session.append_user("stored")
        session.set_memo("first")
        runtime.store.flush()
        before = (session.seq, session.revision, session.info)
        is_full.append(True)
        session.append_user("lost")
        session.stream.written()  # type: ignore[attr-defined]
        for number in range(17):
            with pytest.raises(AppendLost) as caught:
                session.append_user(f"tried {number}")
            assert isinstance(caught.value.__cause__, StoreFull)
            assert (session.seq, session.revision, session.info) == before
            assert session.messages() == [{"role": "user", "content": "stored"}]
            assert (session.events()[-1].type, session.memo) == ("register_set", "first")
            session.append_user(f"acknowledged and lost {number}")
            session.stream.written()  # type: ignore[attr-defined]
        is_full.clear()
        with pytest.raises(AppendLost):
            session.append_user("after the last that was lost")
        session.append_user("there is room again")
        session.set_memo("second")
        other.append_user("never failed")
        runtime.store.flush()
        for _ in range(2):
            assert [message["content"] for message in session.messages()] == ["stored", "there is room again"]
            assert (session.memo, other.length) == ("second", 1)
            runtime.evict("s")
            session = runtime.get("s")
