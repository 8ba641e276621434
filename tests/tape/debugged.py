"""Recorded runs in the debugger, for tests: what is there at a moment, and moves, one call each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from harnpy import Vm
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.cli.debugger import frames
from harnpy.cli.debugger.engine import Stop
from harnpy.cli.debugger.frames import short
from harnpy.cli.debugger.rewinding import TapeProgram
from harnpy.durable.journal import NotDurable
from harnpy.tape import Recording, Tape, read_tape
from tests.durable.runs import Outside
from tests.support import PATIENCE

State = dict[str, Any]


def recorded(directory: Path, source: str, outside: Outside | None = None) -> Tape:
    """Return the tape of a run of the program, compiled, as `harnpy run` has it."""
    outside = Outside() if outside is None else outside
    path = directory / "run.tape"
    vm: Any = Vm(world=Recording(path, outside))
    outside.prepare(vm)
    with suppress(Exception):  # a program may fail: that is on its tape
        vm.run_source(source, file=f"{directory}/main.harn")
    return read_tape(path)


class _Until:
    def __init__(self, engine: Any, moment: int) -> None:
        self._engine = engine
        self._moment = moment

    def ends_at(self, a: object, task: object) -> bool:
        return self._engine.now >= self._moment


class Debugged:
    """A tape in the debugger; each move returns the stop that it comes to."""

    def __init__(self, tape: Tape) -> None:
        self._events: SimpleQueue[Any] = SimpleQueue()
        program = TapeProgram(tape, self._events.put, self._events.put, prepare=Outside().prepare)
        self.program = program
        self.engine = program.engine
        self.engine.shows_output = False
        program.start()
        self.stop = self._come()

    def _come(self) -> Stop:
        self.stop = self._events.get(timeout=PATIENCE)
        return self.stop

    @property
    def now(self) -> int:
        return self.engine.now

    @property
    def is_at_end(self) -> bool:
        return self.stop.reason == "end"

    def step(self, make: Any = None) -> Stop:
        self.engine.resume(make, self.stop.task)
        return self._come()

    def back(self, make: Any = None) -> Stop:
        self.engine.back(make, self.stop.task)
        return self._come()

    def until(self, moment: int) -> Stop:
        """Go forward, in this replay."""
        return self.step(lambda task, calls: _Until(self.engine, moment))

    def stand(self, moment: int) -> Stop:
        self.engine.stand(moment)
        return self._come()

    def go_to(self, wanted: Any) -> Stop:
        self.engine.go_to(wanted)
        return self._come()

    def ask(self, question: Callable[[], Any]) -> Any:
        return self.engine.ask(question)

    def frames(self) -> list[tuple[str, int]]:
        """Return the calls of the task that has stopped, innermost first: the name, and what tells them."""
        return [(call.name, call.activation.mark) for call in self.engine.calls(self.stop.task)]

    def state(self) -> State:
        """Return all that can be seen at this moment."""
        engine = self.engine

        def seen() -> State:
            sessions = sessions_of(engine.vm)
            return {
                "now": engine.now,
                "task": self.stop.task.id(),
                "tasks": {
                    task.id(): [
                        (call.name, call.path, call.line, call.column, _values(call.activation))
                        for call in frames.calls(engine.vm.tasks, task)
                    ]
                    for task in frames.tasks(engine.vm.tasks)
                },
                "output": engine.history.output_by(engine.now),
                "effects": len(engine.history.effects_by(engine.now)),
                "calls": engine.calls_so_far(),
                "sessions": {id: _shown(sessions, id) for id in sessions.ids()},
            }

        return engine.ask(seen)

    def close(self) -> None:
        self.engine.end()
        self.program.wait(PATIENCE)


def _values(a: Any) -> dict[str, str]:
    names = frames.captured(a) | frames.local(a)
    return {name: short(binding.value, 1000) for name, binding in names.items()}


def _shown(sessions: Any, id: str) -> str:
    """Return a session; one in a store can't always be read aside of the run."""
    try:
        return short(sessions.snapshot_value(id), 2000)
    except NotDurable as error:
        return str(error)
