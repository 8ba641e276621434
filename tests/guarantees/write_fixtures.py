"""Writes the stores of `test_migration.py`: run it when a format changes, and keep what was there before.

`python -m tests.guarantees.write_fixtures DIRECTORY [POSTGRES_URL]`
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

from harnpy.session import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.logs import dump_log
from harnpy.storage import HeadQuery, Store, open_store
from harnpy.storage.postgres.database import TABLES
from tests.worlds import world_with

LONG = "said once and answered with the same words, so that it is stored once: " * 2


def fill(store: Store) -> None:
    """Three sessions: one with turns, tools, cuts, registers, pins, a rewind; a fork; and a fork of a deleted
    session."""
    ticks = count(1_760_000_000)
    world = world_with(now=lambda: float(next(ticks)))
    talk = StoredSession.begin("talk", store, world, {"agent_name": "clerk"})
    call = {"id": "c1", "name": "look", "arguments": {"at": "/x"}}
    for number in range(3):
        turn = talk.record("turn_started", {"agent_id": "clerk"})
        talk.append(said("user", f"question {number} ä"), said("assistant", LONG, turn=turn, reply=LONG))
        if number == 1:
            talk.append(
                said("assistant", None, turn=turn, tool_calls=[call]),
                EventDraft("tool_started", {"tool": "look", "id": "c1", "idempotency_key": "k"}, turn=turn),
            )
            talk.append(said("tool", "seen", turn=turn, tool_call_id="c1"))
        done = {"agent_id": "clerk", "turn_stop_reason": "completed"}
        talk.append(EventDraft("turn_completed", done, {"took": 1.5}, 0.25, turn=turn))
    talk.set_memo({"likes": ["tea", 1, None]})
    talk.set("metadata.team", "ops")
    talk.pin(talk.event(3).id)
    talk.rewind()
    talk.shrink("trim", talk.view.window.trimmed(2))
    talk.append(EventDraft("custom", {"$same": "mine"}, turn="a name", id="foreign"))
    talk.append(said("user", "go on"))
    talk.fork("talk/ä", at=9).append(said("user", "another road"))
    gone = talk.fork("gone", at=20)
    gone.fork("orphan").append(said("user", "alone"))
    store.delete("session", "gone")
    talk.set_status("suspended", "enough")


def said(role: str, content: str | None, *, turn: Any = None, **more: Any) -> EventDraft:
    return EventDraft("message_added", {"role": role, "content": content, **more}, turn=turn)


def exported(store: Store) -> str:
    """All sessions of a store: what lists show, and their logs."""
    parts = []
    for head in store.heads(HeadQuery(order="id")).items:
        session = StoredSession.load(head.name, store, world_with())
        assert session is not None
        info = session.info._replace(updated_at="")
        parts += [json.dumps(info._asdict(), ensure_ascii=False) + "\n", *dump_log(session)]
    return "".join(parts)


def rows_of(url: str) -> dict[str, list[list[Any]]]:
    """What the tables of a server's store hold, as text."""
    import psycopg

    found = {}
    with psycopg.connect(url) as connection:
        for table in ("streams", "records"):
            rows = connection.execute(f"SELECT t::text FROM harn.{table} t ORDER BY t::text").fetchall()
            found[table] = [list(row) for row in rows]
    return found


def main(directory: str, server: str | None = None) -> None:
    place = Path(directory)
    urls = {"jsonl": f"jsonl:{place}/store", "sqlite": f"sqlite:{place}/store.db"}
    if server is not None:
        urls["postgres"] = server
    for url in urls.values():
        with closing(open_store(url)) as store:
            fill(store)
            (place / "exported.jsonl").write_text(exported(store), "utf-8")
    if server is not None:
        (place / "schema.sql").write_text(TABLES, "utf-8")
        (place / "tables.json").write_text(json.dumps(rows_of(server), indent=1, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
