"""What the processes of the tests do: `python -m tests.workflow.engines.processes WORK KIND URL [ARG …]`.

Each prints `ready`, then what it came to; a line on its stdin has it go on, or end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

from harnpy.workflow.engines.contract import Engine, Job
from tests.support import PATIENCE
from tests.workflow.engines.bodies import told
from tests.workflow.engines.kinds import open_engine


def say(*words: object) -> None:
    print(*words, flush=True)


def work(engine: Engine, *queues: str) -> None:
    """Be a worker of the queues until a line comes."""
    stop = Event()

    def wait_for_line() -> None:
        sys.stdin.readline()
        stop.set()

    Thread(target=wait_for_line, daemon=True).start()
    say("ready")
    say(told(lambda: engine.work(queues=queues or None, stop=stop)))


def work_hastily(engine: Engine, *queues: str) -> None:
    """Be one whose leases end soon: nobody waits long for it when it stands still."""
    work(engine, *queues)


def start(engine: Engine, id: str, job: str) -> None:
    """Start a run, when a line comes, and wait for it."""
    _when_told(lambda: engine.start(Job(**json.loads(job)), id=id).result(PATIENCE))


def resume(engine: Engine, id: str) -> None:
    """Resume a run, when a line comes, and wait for it."""
    _when_told(lambda: engine.resume(id).result(PATIENCE))


def _when_told(call: Callable[[], Any]) -> None:
    say("ready")
    sys.stdin.readline()
    try:
        say("result", json.dumps(call()))
    except Exception as error:
        say(type(error).__name__)


WORKS: dict[str, Callable[..., None]] = {each.__name__: each for each in (work, work_hastily, start, resume)}

if __name__ == "__main__":
    what, kind, url, *arguments = sys.argv[1:]
    opened = open_engine(kind, url, hasty=what == work_hastily.__name__)
    WORKS[what](opened, *arguments)
    opened.close()
