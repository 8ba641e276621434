"""A process whose children live with a session and are killed where the test wants it.

`python -m tests.session.rules.killing` reads a death a line, as JSON, and forks a child for each: that runs
the loop on the session "s" of the ``url``, in the ``style``, and dies at call number ``count`` of a point.
A line of JSON says what the child told of itself.
A forked child has the program loaded already, so a thousand of them take minutes, not hours.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any
from zlib import crc32

from harnpy import Vm
from harnpy.session.codec import encode_event
from harnpy.session.events import Event
from harnpy.session.stored import StoredSession
from tests.clock import simulated_time
from tests.session.rules.loops import FORMATS, STEPS, arguments, program, requests_told

Dict = dict[str, Any]

BEFORE, AMID, AFTER = "before", "amid", "after"
#: Where a child is killed, on each store: waits, appends, and the calls on the way of an append.
EVERYWHERE = {
    "harnpy.vm.run.scheduler:Scheduler.suspend": (BEFORE, AFTER),
    "harnpy.session.stored:StoredSession._write": (BEFORE, AFTER),
}
POINTS = {
    "sqlite": {
        "harnpy.storage.sqlite.records:insert": (BEFORE, AFTER),
        "harnpy.storage.sqlite.database:Commits.commit": (BEFORE, AFTER),
    },
    "jsonl": {
        "harnpy.storage.jsonl.layout:Medium.write": (BEFORE, AMID, AFTER),
        "harnpy.storage.jsonl.layout:Medium.sync_data": (BEFORE, AFTER),
    },
    "postgresql": {
        "harnpy.storage.postgres.store:_Append._write": (BEFORE, AFTER),
        "harnpy.storage.postgres.database:Database.state": (BEFORE, AFTER),
    },
}


def main() -> None:
    _warm_up()
    for line in sys.stdin:
        print(json.dumps(lived(json.loads(line))), flush=True)


def _warm_up() -> None:
    """Load what a child needs. Nothing is opened: files and threads don't outlive a fork."""
    for name in ("jsonl", "sqlite", "postgres"):
        import_module(f"harnpy.storage.{name}.store")
    with simulated_time():
        for style in FORMATS:
            with requests_told(len, style):
                Vm().run_source(program(style, 'go("go")'), args=arguments(style, ""))


def lived(death: Dict) -> Dict:
    """Fork a child; return what it told, and the signal that ended it."""
    ear, mouth = os.pipe()
    child = os.fork()
    if not child:
        os.close(ear)
        with os.fdopen(mouth, "w") as told:
            _live(death, lambda what, value: print(json.dumps([what, value]), file=told, flush=True))
        os._exit(0)
    os.close(mouth)
    with os.fdopen(ear) as heard:
        lines = heard.read().splitlines()
    _, status = os.waitpid(child, 0)
    return {"told": [json.loads(line) for line in lines], "signal": os.WTERMSIG(status)}


Tell = Callable[[str, Any], None]


def _live(death: Dict, tell: Tell) -> None:
    try:
        _loop(death, tell)
    except BaseException:
        tell("failed", traceback.format_exc())


def _loop(death: Dict, tell: Tell) -> None:
    """Run the loop. A child that isn't killed tells what the session looks like."""
    style = death["style"]
    for point in death["points"]:
        _arm(point, death, tell)
    _tell_appends(tell)
    with simulated_time(), requests_told(lambda messages: tell("asked", messages), style):
        vm = Vm()
        vm.sessions.lease_wait = 0.0  # nobody waits for a killed process's lease
        steps = STEPS if death["points"] else (("read_b",), ())
        vm.run_source(program(style, f'go("{death["prompt"]}")'), args=arguments(style, death["url"], steps))
        session = vm.sessions.session("s")
        assert session is not None
        tell("events", [encode_event(event) for event in session.events()])
        tell("messages", session.messages())
        vm.sessions.stores.close()


def fact(event: Dict) -> list[Any]:
    """What tells an event, as it is shown, from all others that could stand in its place."""
    return [event["seq"], event["type"], crc32(json.dumps(event["data"], sort_keys=True).encode())]


def _tell_appends(tell: Tell) -> None:
    """Tell of each append that is acknowledged."""
    write = StoredSession._write

    def told(session: StoredSession, drafts: Any, seen: int) -> list[Event]:
        events = write(session, drafts, seen)
        tell("stored", [fact(encode_event(event)) for event in events])
        return events

    StoredSession._write = told  # type: ignore[method-assign]


def _arm(point: str, death: Dict, tell: Tell) -> None:
    """Count the calls of ``point``, a ``module:name`` or ``module:Class.name``; at the one that the death
    names the process is killed. Without one, tell of each call."""
    module, _, path = point.partition(":")
    *outer, name = path.split(".")
    holder: Any = import_module(module)
    for part in outer:
        holder = getattr(holder, part)
    real: Callable[..., object] = getattr(holder, name)
    calls = 0

    def deadly(*given: Any, **more: Any) -> object:
        nonlocal calls
        calls += 1
        when = death["when"] if calls == death["count"] else ""
        if not death["count"]:
            tell("called", point)
        if when == BEFORE:
            _die()
        if when == AMID:
            *others, data = given
            real(*others, data[: len(data) // 2])
            _die()
        result = real(*given, **more)
        if when == AFTER:
            _die()
        return result

    setattr(holder, name, deadly)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
