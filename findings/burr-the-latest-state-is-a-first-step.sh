#!/usr/bin/env bash
# apache-burr 0.42.0: SQLitePersister's latest state of a partition is the first step of its last second.
#
# load(partition_key, None) is for who wants a user's latest state without knowing the application's id. The table has a
# number for each step, but here the rows are ordered by the time at which they were written, which SQLite's
# CURRENT_TIMESTAMP keeps in whole seconds; of the rows of one second the first one is returned.
#
# Most would guess: the state after the last step, which load(partition_key, app_id) returns.
#
# Why it matters: a chat that is taken up by its user's key goes back to where its last second began, and does again
# what it has done since: with quick steps, or models that are mocked in a test, from the very start.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile apache-burr==0.42.0
venv/bin/python -I -W ignore - <<'EOF'
import time

from burr.core import ApplicationBuilder, State, action
from burr.core.persistence import SQLitePersister


@action(reads=["said"], writes=["said"])
def answer(state: State) -> State:
    return state.update(said=state["said"] + 1)


persister = SQLitePersister(db_path="states.db", table_name="states")
persister.initialize()


def run(app_id, steps):
    builder = ApplicationBuilder().with_actions(answer).with_transitions(("answer", "answer"))
    builder = builder.with_entrypoint("answer").with_state(said=0).with_state_persister(persister)
    app = builder.with_identifiers(app_id=app_id, partition_key="ada").build()
    for _ in range(steps):
        app.step()


def begin_of_second():
    time.sleep(1 - time.time() % 1 + 0.01)


def show(what, found):
    print(f"{what}: {found['app_id']}, step {found['sequence_id']}, said {found['state']['said']}")
    return found["app_id"], found["state"]["said"]


begin_of_second()
run("monday", 5)
assert show("by its id         ", persister.load("ada", "monday")) == ("monday", 5)
begin_of_second()
run("tuesday", 4)
latest = show("of the partition  ", persister.load("ada", None))
assert latest == ("tuesday", 1), "changed: it is the last step"
EOF
