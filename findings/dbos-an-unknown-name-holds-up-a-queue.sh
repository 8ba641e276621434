#!/usr/bin/env bash
# dbos 3.4.0: a run of a workflow that no worker knows is claimed, never started, and keeps its place in the queue for ever.
#
# `DBOSClient.enqueue` takes any name. The worker that claims the run logs an error and leaves it PENDING: it counts against
# the queue's concurrency, is not tried again, and never fails. A queue with `global_concurrency=1` stands still.
#
# Most would guess: a name that nobody knows is refused, or the run ends as ERROR, or it waits for a worker that knows it;
# the runs behind it go on in any case.
#
# Why it matters: agents are renamed, and a client of another release enqueues under the old name, or with a typo. From then
# on the queue that bounds the calls of a model does one run less at a time, after a few such runs none, and all that
# anybody sees is runs that wait, as they do on a busy day.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile dbos==3.4.0
cat > app.py <<'END'
import logging
import os
import time

from dbos import DBOS, DBOSClient

logging.getLogger("dbos").addHandler(logging.NullHandler())

@DBOS.workflow(name="research")
def research():
    return "done"

DBOS(config={"name": "agents", "system_database_url": "sqlite:///runs.db", "application_version": "1"})
DBOS.launch()
DBOS.register_queue("models", global_concurrency=1, polling_interval_sec=0.1)
client = DBOSClient(system_database_url="sqlite:///runs.db")

def enqueue(name):
    return client.enqueue({"workflow_name": name, "queue_name": "models", "app_version": "1"})

first = enqueue("research")
print(first.get_result())
unknown = enqueue("reserach")
behind = enqueue("research")
time.sleep(6)
status, waits = unknown.get_status(), behind.get_status()
print("the unknown one:", status.status, status.error, "- the one behind it:", waits.status, flush=True)
ok = (status.status, status.error, waits.status) == ("PENDING", None, "ENQUEUED")
if not ok:
    print("changed: an unknown name no longer holds up its queue", flush=True)
os._exit(not ok)
END
venv/bin/python app.py
