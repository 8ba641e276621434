"""The history of a recorded run: its moments, and what the program had said and done by each. Spec: 13 §8.

A replay is deterministic, so a place in a run is a number: a *moment* is how many statements have begun, of
whatever task. The first replay that comes by a moment tells the history of it (`add`, `asked`, `print`);
where a step backwards ends is looked up in there, and another replay goes that far.
"""

from __future__ import annotations

import os.path
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from harnpy.durable.journal import ENV, MODEL, OUTPUT, WRITE
from harnpy.durable.values import Unreadable
from harnpy.tape.description import kind_of, task_of
from harnpy.tape.directory import Changed, changed_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from harnpy.tape.tapes import Tape
    from harnpy.vm.unit import Unit
    from harnpy.workflow.engines.contract import Json, Step


class Effect(NamedTuple):
    """An effect on the tape. ``number`` counts effects from 1; ``call`` counts calls of models, and is 0 for
    other effects; ``files`` are the paths of what processes had changed by then, ``process`` is the name of
    one that is talked to. ``has_failed``: an error came of it."""

    number: int
    key: str
    asked: Json
    call: int
    has_failed: bool
    files: Collection[str] = ()
    process: str = ""


class Asking(NamedTuple):
    """Where an effect was asked for: the last moment of its task by then; that of the statement which asks,
    which may have called others meanwhile; the agent's tool of whose call it is part, if it is."""

    moment: int
    statement: int
    tool: str | None


class History:
    """What is known of a tape's run, up to the last moment that a replay has come by: ``len(history)``."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        #: Whether a replay has come to the end.
        self.is_whole = False
        #: All effects of the tape, in its order.
        self.effects: list[Effect] = []
        #: Where effects were asked for, by their keys.
        self.asked: dict[str, Asking] = {}
        self._given = array("L", [0])  # effects among the first so many records
        calls = 0
        for step in tape.steps:
            kind = kind_of(step.key)
            if kind == ENV:
                continue
            if kind != OUTPUT:
                calls += kind == MODEL
                output = step.output if isinstance(step.output, dict) else {}
                number, call = len(self.effects) + 1, calls if kind == MODEL else 0
                made, asked = _changed(step), output.get("asked")
                self.effects.append(
                    Effect(number, step.key, asked, call, "error" in output, made.files, made.process)
                )
            self._given.append(len(self.effects))
        # What each moment is, a column each.
        self._tasks, self._frames, self._places, self._steps = (array("L") for _ in range(4))
        self._task_numbers: dict[str, int] = {}
        self._place_numbers: dict[tuple[Unit, int], int] = {}
        self._place_list: list[tuple[Unit, int]] = []
        #: The last known moment of each task.
        self._last: dict[str, int] = {}
        self._printed_at = array("L")
        self._printed: list[str] = []

    # --- told by the first replay that comes by ---------------------------------------------------

    def add(self, task: str, frame: int, unit: Unit, start: int, records: int) -> None:
        """The next moment: the statement at ``start`` of ``unit`` begins, in that task and that run of a
        function, after so many records were given out. A run of a function is known by its first moment."""
        place = (unit, start)
        number = self._place_numbers.get(place)
        if number is None:
            number = self._place_numbers[place] = len(self._place_list)
            self._place_list.append(place)
        self._tasks.append(self._task_numbers.setdefault(task, len(self._task_numbers)))
        self._frames.append(frame)
        self._places.append(number)
        self._steps.append(records)
        self._last[task] = len(self._tasks)

    def ask(self, key: str, statement: int, tool: str | None) -> None:
        """At the last known moment of its task, an effect was asked for, by that moment's statement."""
        moment = max(self._last.get(task_of(key), len(self)), 1)
        self.asked.setdefault(key, Asking(moment, max(statement, 1), tool))

    def print(self, text: str) -> None:
        """At the last known moment, the program has printed so much."""
        self._printed_at.append(len(self))
        self._printed.append(text)

    # --- what was there ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._tasks)

    def place(self, moment: int) -> tuple[Unit, int]:
        """Return the text that the moment's statement is in, and where it begins there."""
        return self._place_list[self._places[moment - 1]]

    def task(self, moment: int) -> str:
        """Return the id of the moment's task."""
        return [*self._task_numbers][self._tasks[moment - 1]]

    def effects_by(self, moment: int) -> Sequence[Effect]:
        """Return the effects that the program had seen the end of when that moment came."""
        if moment > len(self):
            return self.effects if self.is_whole else self.effects[: self._given[self._steps[-1]]]
        return self.effects[: self._given[self._steps[moment - 1]]]

    def calls_by(self, records: int) -> int:
        """Return how many calls of models had ended when so many records were given out."""
        return max((effect.call for effect in self.effects[: self._given[records]]), default=0)

    def output_by(self, moment: int) -> str:
        """Return what the program had printed when that moment came."""
        return "".join(self._printed[: bisect_right(self._printed_at, moment - 1)])

    def effect(self, number: int) -> Effect | None:
        """Return the effect with that number."""
        return self.effects[number - 1] if 0 < number <= len(self.effects) else None

    def call(self, number: int) -> Effect | None:
        """Return the model call with that number."""
        return next((effect for effect in self.effects if effect.call == number > 0), None)

    def writing(self, path: str, moment: int) -> Effect | None:
        """Return the last effect by that moment that wrote, moved or removed the file at ``path``."""
        cwd = self.tape.job.body["cwd"]
        wanted = os.path.normpath(os.path.join(cwd, path))
        for effect in reversed(self.effects_by(moment)):
            if any(os.path.normpath(os.path.join(cwd, one)) == wanted for one in effect.files):
                return effect
            if kind_of(effect.key) != WRITE or effect.has_failed or not isinstance(effect.asked, list):
                continue
            of_two = effect.asked[0] in ("rename", "copy", "delete_file")
            paths = effect.asked[1:3] if of_two else effect.asked[1:2]
            if any(
                isinstance(one, str) and os.path.normpath(os.path.join(cwd, one)) == wanted for one in paths
            ):
                return effect
        return None

    # --- backwards --------------------------------------------------------------------------------

    def before(self, moment: int, is_wanted: Callable[[int], bool]) -> int | None:
        """Return the last moment before ``moment`` that is wanted."""
        return next((one for one in range(min(moment - 1, len(self)), 0, -1) if is_wanted(one)), None)

    def step_back(self, moment: int, task: str, frames: Collection[int] | None) -> int:
        """Return where a step back of a task ends: at its last moment before ``moment`` in one of the frames;
        None: in any. Before its first one, at the last moment of any task; before the first of all, there."""
        number, tasks, in_frame = self._task_numbers.get(task), self._tasks, self._frames

        def ends(one: int) -> bool:
            return tasks[one - 1] == number and (frames is None or in_frame[one - 1] in frames)

        found = self.before(moment, ends)
        if found is None:
            first = next((n for n, one in enumerate(tasks, 1) if one == number), moment)
            found = min(first, moment) - 1
        return max(found, 1)

    def last_of(self, frame: int, start: int | None, moment: int) -> int | None:
        """Return the last moment up to ``moment`` at which that run of a function began the statement at
        ``start``; None: any statement."""
        places, frames = self._places, self._frames

        def is_it(one: int) -> bool:
            return frames[one - 1] == frame and start in (None, self._place_list[places[one - 1]][1])

        return self.before(moment + 1, is_it)


def _changed(step: Step) -> Changed:
    try:
        return changed_in(step.output)
    except Unreadable:  # the replay says so where it meets the record
        return Changed({})
