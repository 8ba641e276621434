"""The agent for `tape run` and `tape replay`, with reeltime's decorator of tools and its spans of what is
parallel.

`python on_reeltime.py fork LABEL` finds the event of a call and runs `tape fork` there.
"""

import json
import os
import sys
from pathlib import Path

import reeltime
from time_machine_agent import Kit, main

if sys.argv[1:2] == ["fork"]:
    (run,) = Path(".tape/runs").glob("*.jsonl")
    label = f"[{' '.join(sys.argv[2:])}]"
    events = reeltime.read_trace(run).events
    call = next(event.i for event in events if event.kind == "llm" and label in json.dumps(event.req))
    tape = str(Path(sys.executable).with_name("tape"))
    os.execv(tape, [tape, "fork", run.stem, "--at", str(call)])
main(Kit(tool=reeltime.tool, apart=reeltime.span))
