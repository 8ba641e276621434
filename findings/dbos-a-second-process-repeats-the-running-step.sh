#!/usr/bin/env bash
# dbos 3.4.0: a second process of an application takes the runs of the first for dead, and repeats the step it is in.
#
# At its launch DBOS takes up every unfinished run of its executor id, which is `local` unless the configuration or the
# environment says otherwise. It doesn't look whether the process that has them is still there.
#
# Most would guess: two processes of one application on one database share its work, as its queues do; a run that is
# being worked on is left alone until its process is gone.
#
# Why it matters: a second worker, a shell that imports the application, a test, a deployment that starts the new process
# before it ends the old one: each has every running step of all agents done once more at once: the model is paid twice, the
# mail goes out twice. Only one result is recorded, so nothing shows it afterwards.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile dbos==3.4.0
cat > app.py <<'END'
import logging
import os
import sys
import time

from dbos import DBOS, SetWorkflowID

logging.getLogger("dbos").addHandler(logging.NullHandler())

@DBOS.step()
def ask_the_model():
    with open("asked", "a") as file:
        file.write("asked\n")
    while not os.path.exists("answer"):
        time.sleep(0.1)
    return "answer"

@DBOS.workflow()
def agent():
    return ask_the_model()

DBOS(config={"name": "agents", "system_database_url": "sqlite:///runs.db"})
DBOS.launch()
if sys.argv[1] == "first":
    with SetWorkflowID("run"):
        print(DBOS.start_workflow(agent).get_result(), len(DBOS.list_workflow_steps("run")), flush=True)
else:
    time.sleep(4)
    open("answer", "w").close()
os._exit(0)
END
venv/bin/python app.py first > result &
first=$!
while [ ! -e asked ]; do sleep 0.1; done
venv/bin/python app.py second
wait $first
asked=$(wc -l < asked)
read -r answer steps < result
echo "the model was asked $asked times for one step; the run has $steps step, its result is '$answer'"
test "$asked" = 2 || { echo "changed: a running step is not repeated"; exit 1; }
test "$steps" = 1 || { echo "changed: the repetition is recorded"; exit 1; }
