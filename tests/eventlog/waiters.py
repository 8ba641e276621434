"""Waiters in a process of their own: ``waiters STORE_URL NUMBER POINTS SEEN FIRST COUNT``.

Each is a thread that waits for one point under an id of its own, and notes the value in the file ``SEEN``.
"""

from __future__ import annotations

import sys
from threading import Lock, Thread

from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.storage import open_store

_WRITING = Lock()


def waiter(waitpoints: Waitpoints, seen: str, number: int, points: int) -> None:
    result = waitpoints.wait(f"p{number % points}", wait_id=f"w{number}", timeout=600)
    line = f"{number} {result.status} {result.waitpoints[0].value}\n"
    with _WRITING, open(seen, "a") as file:
        file.write(line)


def main(url: str, points: str, seen: str, first: str, count: str) -> None:
    waitpoints = Waitpoints(StoreEventLog(open_store(url)))
    numbers = range(int(first), int(first) + int(count))
    threads = [Thread(target=waiter, args=(waitpoints, seen, n, int(points))) for n in numbers]
    for thread in threads:
        thread.start()
    print("waiting", flush=True)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
