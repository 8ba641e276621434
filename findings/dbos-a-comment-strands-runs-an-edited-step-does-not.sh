#!/usr/bin/env bash
# dbos 3.4.0: the version of an application changes with a comment, and not with what its steps do.
#
# Without `application_version` DBOS makes one: a hash of the source of the workflow functions, comments included, and of
# nothing that they call. A run goes on only where the version is the one that it began with.
#
# Most would guess: the version is of the code that runs: what a step does is part of it, a comment isn't.
#
# Why it matters: agents' work is in the steps (the prompt, the model, the tool), and the workflow only strings them
# together. After a deployment that changed a prompt, a run that was killed half-way goes on with the old results and the
# new step, and nobody notices; after one that corrected a comment in the workflow, every unfinished run stays PENDING,
# without an error, until somebody starts the old source again.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile dbos==3.4.0
application() { # the step's result, a comment
  cat > app.py <<END
import logging
import sys
import time

from dbos import DBOS, SetWorkflowID

logging.getLogger("dbos").addHandler(logging.NullHandler())

@DBOS.step()
def step():
    return "$1"

@DBOS.workflow()
def workflow():
    found = step() $2
    DBOS.sleep(1)
    return found

DBOS(config={"name": "agents", "system_database_url": "sqlite:///runs.db"})
DBOS.launch()
if sys.argv[1] == "begin":
    with SetWorkflowID(sys.argv[2]):
        DBOS.start_workflow(workflow)
    time.sleep(0.5)
else:
    time.sleep(4)
    print(DBOS.get_workflow_status(sys.argv[2]).status, flush=True)
sys.stdout.flush()
import os
os._exit(0)  # killed
END
}
application old ""
venv/bin/python app.py begin one
application new ""
step=$(venv/bin/python app.py look one)
application old ""
venv/bin/python app.py begin two
application old "# a comment"
comment=$(venv/bin/python app.py look two)
echo "a run that was killed, after the step was edited: $step; after a comment was added: $comment"
test "$step" = SUCCESS || { echo "changed: an edited step is another version"; exit 1; }
test "$comment" = PENDING || { echo "changed: a comment is no other version"; exit 1; }
