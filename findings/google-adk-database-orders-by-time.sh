#!/usr/bin/env bash
# google-adk 2.13.0: DatabaseSessionService returns events in the order of their timestamps, not of their appending.
#
# Each Event carries a timestamp that its maker may set. InMemorySessionService gives events back as they were appended;
# DatabaseSessionService sorts them by timestamp, and those of one instant by their ids, which are random by default.
#
# Most would guess: append_event appends, whatever the clock said, and both services read the same.
#
# Why it matters: events of several machines, of a clock that was set back, or of an import that gives a whole batch one
# time come back as another conversation, such as a tool's result before its call. Tests on the in-memory
# service can't show it.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile google-adk==2.13.0 SQLAlchemy==2.1.9 aiosqlite==0.22.1 greenlet==3.5.6
venv/bin/python -I -W ignore - <<'EOF'
import asyncio

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.genai import types

WHO = {"app_name": "app", "user_id": "u", "session_id": "s"}
CALL = types.Part(function_call=types.FunctionCall(id="c1", name="look", args={}))
RESULT = types.Part(function_response=types.FunctionResponse(id="c1", name="look", response={"line": 3}))


async def read_back(service, times, ids):
    session = await service.create_session(**WHO)
    now = session.last_update_time
    for part, role, after, event_id in zip((CALL, RESULT), ("model", "user"), times, ids):
        content = types.Content(role=role, parts=[part])
        event = Event(id=event_id, author="agent", invocation_id="i", timestamp=now + after, content=content)
        await service.append_event(session, event)
    events = (await service.get_session(**WHO)).events
    await service.delete_session(**WHO)
    return ["call" if event.get_function_calls() else "result" for event in events]


async def main():
    memory, database = InMemorySessionService(), DatabaseSessionService("sqlite+aiosqlite:///sessions.db")
    for label, times, ids in (
        ("the result's clock is behind", (20, 10), ("a", "b")),
        ("both in one instant", (10, 10), ("b", "a")),
    ):
        for service, expected in ((memory, ["call", "result"]), (database, ["result", "call"])):
            got = await read_back(service, times, ids)
            print(f"{label}: {type(service).__name__}: {got}")
            assert got == expected, "changed"


asyncio.run(main())
EOF
