"""A process that is killed while it has children: `python -m tests.session.children.killing URL`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from harnpy.session import ChildSpec, SessionRuntime, Turn


def main(url: str) -> None:
    entered = threading.Semaphore(0)

    def forever(messages: Any, turn: Turn) -> None:
        entered.release()
        threading.Event().wait()

    def boss(messages: Any) -> None:
        runtime.spawn("p", ChildSpec(agent=forever, child_id="in-turn"))
        for _ in range(2):
            entered.acquire()
        os.kill(os.getpid(), signal.SIGKILL)

    runtime = SessionRuntime(url)
    runtime.create(id="p")
    runtime.run_child("p", ChildSpec(agent=lambda messages: "well", child_id="ended"))
    runtime.spawn("p", ChildSpec(agent=forever, child_id="by-itself", session_id="own"))
    runtime.send("p", "go", agent=boss)


if __name__ == "__main__":
    main(sys.argv[1])
