"""The agent in kinescope: its transport for httpx, its decorator of tools, and what is random. With the
clock, which it can capture too, its replays go astray at the first call by HTTP: HTTP clients read it.

`python on_kinescope.py record | replay | report | branch LABEL`, where `report` is a replay that stops at
what differs.
"""

import json
import sys

import kinescope
from kinescope.store.local import LocalStore
from time_machine_agent import Kit, main

kit = Kit(
    client=lambda: kinescope.http_client(timeout=60),
    async_client=lambda: kinescope.async_http_client(timeout=60),
    tool=kinescope.tool,
    # Its documentation supports one thread: a call in another one fails when it is recorded.
    threads=False,
)


def recorded() -> str:
    runs: list[str] = [run.run_id for run in LocalStore().list_runs() if run.parent_run_id is None]
    return runs[0]


def branch(run: str, label: str) -> None:
    """Go on live at a call. A fork replaces an event's output and is live behind it: use the one before."""
    store = LocalStore()
    events = store.events(run)
    call = next(
        event.seq
        for event in events
        if event.kind == "llm" and f"[{label}]".encode() in store.get_blob(event.input_ref)
    )
    before = events[call - 1]
    if before.output_ref is None:
        output = before.meta["value"]
    else:
        blob = store.get_blob(before.output_ref)
        output = blob if before.kind == "llm" else json.loads(blob)
    with kinescope.fork(run, at=before.seq, override={"output": output}):
        main(kit)


how, *rest = sys.argv[1:]
if how == "record":
    with kinescope.record("agent", capture=["rng", "uuid"]):
        main(kit)
elif how == "branch":
    branch(recorded(), " ".join(rest))
else:
    with kinescope.replay(recorded(), policy="strict" if how == "report" else "warn") as session:
        main(kit)
    for each in session.divergences:
        print(f"kinescope: {each}", file=sys.stderr)
