"""The agent as a workflow of DBOS: a step is a call of a model, and one of a tool.

`python on_dbos.py record | replay | branch LABEL`: a workflow that is forked behind its last step runs again
with what its steps returned; one that is forked at a step goes on live there.
"""

import functools
import inspect
import logging
import os
import sys
from typing import Any

from dbos import DBOS, SetWorkflowID
from time_machine_agent import Kit, main

logging.getLogger("dbos").setLevel(logging.ERROR)
how, *rest = sys.argv[1:]
DBOS(config={"name": "agent", "system_database_url": "sqlite:///dbos.db", "application_version": "1"})


def step(function: Any) -> Any:
    """Return a function of its own, since a method can't be a step."""
    if inspect.iscoroutinefunction(function):

        async def call(*args: Any, **named: Any) -> Any:
            return await function(*args, **named)
    else:

        def call(*args: Any, **named: Any) -> Any:
            return function(*args, **named)

    return DBOS.step(name=function.__name__)(functools.update_wrapper(call, function, updated=()))


@DBOS.workflow()
def agent() -> None:
    main(Kit(asking=step, tool=step))


def step_of(label: str) -> int:
    """Return the number of the step that asked this: DBOS keeps what a step returns, not what it's given."""
    steps = DBOS.list_workflow_steps("recorded")
    before = next(each for each in steps if "to sum 1" in str(each["output"]))
    assert label == "loop 2", label
    return before["function_id"] + 1


DBOS.launch()
if how == "record":
    with SetWorkflowID("recorded"):
        agent()
else:
    first = step_of(" ".join(rest)) if how == "branch" else len(DBOS.list_workflow_steps("recorded")) + 1
    DBOS.fork_workflow("recorded", first).get_result()
sys.stdout.flush()
os._exit(0)
