"""DBOS Transact: a workflow whose steps are the calls of model and tool; after a crash it is launched."""

import json
import logging
import os

from dbos import DBOS, SetWorkflowID
from desk import APPROVALS, FOLDER, answer, call, main, note, until
from desk import refund as pay

logging.getLogger("dbos").addHandler(logging.NullHandler())


@DBOS.step()
def first(prompt):
    call()
    return {"euros": 12}


@DBOS.step()
def refund(euros):
    return pay(euros)


@DBOS.step()
def last(prompt, result):
    return "".join(answer())


@DBOS.workflow()
def turn(prompt):
    call = first(prompt)
    if APPROVALS:
        note("waiting")
        DBOS.recv("approval")
    return last(prompt, refund(call["euros"]))


def launched():
    DBOS(config={"name": "desk", "system_database_url": f"sqlite:///{FOLDER / 'desk.db'}"})
    DBOS.launch()


def send(prompt):
    launched()
    with SetWorkflowID("turn"):
        return DBOS.start_workflow(turn, prompt).get_result()


def begin(prompt):
    """Begin a turn, and end when it waits."""
    launched()
    with SetWorkflowID("turn"):
        DBOS.start_workflow(turn, prompt)
    until(lambda: "waiting" in (FOLDER / "notes").read_text())
    os._exit(0)


def approve(prompt):
    launched()
    DBOS.send("turn", True, "approval")
    return DBOS.retrieve_workflow("turn").get_result()


def resume(prompt):
    launched()  # recovers what has not ended
    return DBOS.retrieve_workflow("turn").get_result()


def show():
    launched()
    found = DBOS.get_workflow_status("turn")
    said = [["user", each] for each in found.input["args"]]
    if found.status == "SUCCESS":
        said.append(["assistant", found.output])
    print(json.dumps(said), flush=True)
    os._exit(0)  # before it recovers the workflow


main(send=send, resume=resume, show=show, begin=begin, approve=approve)
