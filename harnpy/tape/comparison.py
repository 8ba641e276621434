"""Two tapes compared: where they part, call by call of a model, and what came of it. Spec: 13 §6.

Times, ids, chance and the run's directory don't count, and neither does the order in which parallel tasks
came to their effects: two runs that did the same are identical.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from harnpy.durable.journal import (
    HTTP,
    ID,
    MODEL,
    NOW,
    PIECE,
    PROCESS,
    RANDOM,
    READ,
    SESSION,
    SLEEP,
    TIME,
)
from harnpy.durable.values import told
from harnpy.tape.description import described, difference, differences_of_requests, in_words
from harnpy.tape.effects import Call, Effect, calls_of, came_to, effects_of, seconds_of
from harnpy.tape.shown import Shown, place_of, shown
from harnpy.tape.tapes import Tape, read_tape
from harnpy.workflow.records.differences import unified_diff

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from harnpy.tape.shown import Prepare
    from harnpy.workflow.engines.contract import Json


class Side(Struct, frozen=True):
    """One of the two runs. ``status`` is `cut off` for a tape without an end; ``cost`` is in USD, None where
    no call's price is known; ``seconds`` are those that the program saw pass. ``branch`` is the tape and the
    call that it is a branch of, and what that changed. ``unreplayed`` is why a replay doesn't come to the end
    of the tape: what was printed and written is then known up to there."""

    path: str
    program: str
    status: str
    value: Any
    error: str | None
    effects: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    seconds: float
    branch: dict[str, Any] | None = None
    unreplayed: str | None = None


class Parting(Struct, frozen=True):
    """The first effect that differs: its number in each run, None where it isn't; ``place`` is where the
    program asks for it, empty where that isn't known; ``words`` say how it differs."""

    a: int | None
    b: int | None
    place: str
    words: str


class Difference(Struct, frozen=True):
    """A part of what a model is asked, as it is in each run, in words."""

    what: str
    a: str
    b: str


class Calls(Struct, frozen=True):
    """A call of a model in both runs, or in one: the n-th of its task. ``asked`` is what differs of the
    request."""

    a: Call | None
    b: Call | None
    asked: list[Difference]
    is_same: bool


class File(Struct, frozen=True):
    """A file that was written: ``change`` is ``added``, ``removed``, ``changed`` or ``same``; ``diff`` shows
    how contents differ."""

    path: str
    change: str
    diff: str


class Session(Struct, frozen=True):
    """What was appended to a session: how many events in each run, and how they differ, a line an event."""

    name: str
    a: int
    b: int
    diff: str


class Comparison(Struct, frozen=True):
    """How the run ``b`` differs from the run ``a``. ``output`` is a diff of what was printed, empty where
    that is the same."""

    a: Side
    b: Side
    is_identical: bool
    parted: Parting | None
    calls: list[Calls]
    output: str
    files: list[File]
    sessions: list[Session]


def compared(
    a: Tape | str | os.PathLike[str], b: Tape | str | os.PathLike[str], *, prepare: Prepare | None = None
) -> Comparison:
    """Compare the run on the tape ``b`` with that on ``a``.

    Both are replayed, for what they print and write; ``prepare(vm, file)`` is called before with each Vm and
    the program's file. Raises `TapeError` when a tape can't be read.
    """
    before, after = (each if isinstance(each, Tape) else read_tape(each) for each in (a, b))
    left, right = _Run(before, prepare), _Run(after, prepare)
    names = _names(left, right)
    parted = _parting(left, right, names, prepare)
    calls = [*_calls(left, right, names)]
    output = _diff("output", left.shown.output, names.of_text(right.shown.output))
    files = [*_files(left.shown.files, right.shown.files, names)]
    sessions = [*_sessions(left, right, names)]
    one, other = left.side(), right.side()
    is_identical = (
        parted is None
        and not output
        and all(file.change == "same" for file in files)
        and not any(session.diff for session in sessions)
        and all(pair.is_same for pair in calls)
        and (one.status, one.error) == (other.status, names.of(other.error))
        and one.value == names.of(other.value)
    )
    return Comparison(one, other, is_identical, parted, calls, output, files, sessions)


class _Run:
    """A tape, and what its replay shows."""

    def __init__(self, tape: Tape, prepare: Prepare | None) -> None:
        self.tape = tape
        self.effects = effects_of(tape)
        self.calls = calls_of(tape)
        self.shown: Shown = shown(tape, prepare)

    def side(self) -> Side:
        tape, end = self.tape, self.tape.end
        origin = tape.header.branch
        costs = [call.cost for call in self.calls if call.cost is not None]
        return Side(
            path=tape.path,
            program=tape.job.name,
            status=CUT_OFF if end is None else end.status,
            value=None if end is None else end.value,
            error=None if end is None else end.error,
            effects=len(self.effects),
            calls=len(self.calls),
            input_tokens=sum(call.input_tokens for call in self.calls),
            output_tokens=sum(call.output_tokens for call in self.calls),
            cost=sum(costs) if costs else None,
            seconds=seconds_of(tape),
            branch=None
            if origin is None
            else {key: getattr(origin, key) for key in ("tape", "call", "changed")},
            unreplayed=None if end is None else self.shown.error,
        )


#: The status of a run whose tape has no end.
CUT_OFF = "cut off"


# Ids of the second run stand for those of the first that were made where they were, and so do the directories
# of the runs.


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class _Names:
    def __init__(self, ids: Mapping[str, str], place: str, was: str) -> None:
        self._ids = ids
        self._place = place if len(place) > 1 else ""
        self._was = was

    def of_text(self, text: str) -> str:
        """Return the text with the names of the first run."""
        if self._place and self._place != self._was:
            text = text.replace(self._place, self._was)
        return _ID.sub(lambda found: self._ids.get(found[0], found[0]), text) if self._ids else text

    def of(self, value: Json) -> Json:
        """Return JSON with the names of the first run."""
        if isinstance(value, str):
            return self.of_text(value)
        if isinstance(value, list):
            return [self.of(item) for item in value]
        if isinstance(value, dict):
            return {self.of_text(key): self.of(item) for key, item in value.items()}
        return value


def _names(left: _Run, right: _Run) -> _Names:
    made = {each.key: came_to(left.tape.steps[each.index]) for each in left.effects if each.kind == ID}
    pairs = ((made.get(each.key), came_to(right.tape.steps[each.index])) for each in right.effects)
    ids = {new: old for old, new in pairs if isinstance(old, str) and isinstance(new, str)}
    was, place = (str(run.tape.job.body.get("cwd", "")) for run in (left, right))
    return _Names(ids, place, was)


# Where they part.


#: What comes as time has it: pieces of what comes anyway, and deadlines.
_UNORDERED = frozenset({PIECE, TIME})
#: What comes to something else in every run.
_CHANCE = frozenset({NOW, RANDOM, ID, SLEEP})
#: What is read of files that is of their times.
_OF_TIMES = frozenset({"status", "modified", "entries"})


def _parting(left: _Run, right: _Run, names: _Names, prepare: Prepare | None) -> Parting | None:
    """Return the first effect that differs: the first of each task, and of these the one that comes first."""
    found: list[tuple[int, Effect | None, Effect | None]] = []
    before, after = _by_task(left.effects), _by_task(right.effects)
    for task in {**before, **after}:
        one, other = before.get(task, []), after.get(task, [])
        for n in range(max(len(one), len(other))):
            old, new = (each[n] if n < len(each) else None for each in (one, other))
            if old is None or new is None or not _is_same(left, old, right, new, names):
                first = min(each.number for each in (old, new) if each is not None)
                found.append((first, old, new))
                break
    if not found:
        return None
    _, old, new = min(found, key=lambda each: each[0])
    place = ""
    for run, effect in ((right, new), (left, old)):
        if effect is not None and not place:
            place = place_of(run.tape, effect, prepare)
    words = _words(left, old, right, new, names)
    return Parting(old.number if old else None, new.number if new else None, place, words)


def _by_task(effects: Sequence[Effect]) -> dict[str, list[Effect]]:
    found: dict[str, list[Effect]] = {}
    for effect in effects:
        if effect.kind not in _UNORDERED:
            found.setdefault(effect.task, []).append(effect)
    return found


def _is_same(left: _Run, old: Effect, right: _Run, new: Effect, names: _Names) -> bool:
    if old.kind != new.kind or not _is_asked_alike(old, new, names):
        return False
    return bool(_outcome(left, old) == names.of(_outcome(right, new)))


def _is_asked_alike(old: Effect, new: Effect, names: _Names) -> bool:
    if old.kind == SESSION:
        return bool(_appended(old.asked) == names.of(_appended(new.asked)))
    return bool(old.asked == names.of(new.asked))


def _outcome(run: _Run, effect: Effect) -> Json:
    """Return what counts of what an effect came to, as JSON in few bytes."""
    kind, asked = effect.kind, effect.asked
    if effect.error is not None:
        return {"error": effect.error}
    if kind == MODEL:
        call = run.calls[(effect.call or 1) - 1]
        return [call.error, told(call.reply), told([list(tool) for tool in call.tools])]
    is_of_times = not isinstance(asked, list) or (bool(asked) and asked[0] in _OF_TIMES)
    if kind in _CHANCE or (kind == READ and is_of_times):
        return None
    came = came_to(run.tape.steps[effect.index])
    if kind == PROCESS and hasattr(came, "stdout"):  # its number is another one each time
        return [_told(came.code), _told(came.stdout), _told(came.stderr)]
    if kind == HTTP and isinstance(came, tuple) and len(came) == 3:  # headers have the time
        return [_told(came[0]), _told(came[2])]
    return _told(came)


def _told(value: Any) -> Json:
    """Return a value as JSON in few bytes; bytes that are text are told as such."""
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return told(value.decode())
    return told(value)


def _words(left: _Run, old: Effect | None, right: _Run, new: Effect | None, names: _Names) -> str:
    asked, recorded = (None if each is None else (each.key, each.asked) for each in (new, old))
    if old is None or new is None or old.kind != new.kind or not _is_asked_alike(old, new, names):
        if old is not None and new is not None and old.kind == new.kind == SESSION:
            return _otherwise_written(old.asked, names.of(new.asked))
        return difference(asked, recorded)
    if old.kind == MODEL:
        one, other = (run.calls[(each.call or 1) - 1].said for run, each in ((left, old), (right, new)))
        one, other = in_words(told(one)), in_words(told(other))
        words = f"the model {new.asked.get('model')} answers otherwise"
    else:
        one, other = (in_words(_outcome(run, each)) for run, each in ((left, old), (right, new)))
        words = f"the program {described(asked)}, and what comes of it differs"
    return f"{words}: recorded was {one}, now it is {other}"


def _otherwise_written(old: Json, new: Json) -> str:
    """Return how two appends to a session differ, in words."""
    if not (_is_append(old) and _is_append(new) and old[:4] == new[:4]):
        return f"recorded was that the program writes {in_words(old[:4])}, now it writes {in_words(new[:4])}"
    lines = [[_event(*event) for event in asked[4]] for asked in (old, new)]
    pairs = zip_longest(*lines, fillvalue="nothing more")
    then, now = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return f"recorded was that the program writes {then} to the session {old[2]}, now it writes {now}"


# Call by call.


def _calls(left: _Run, right: _Run, names: _Names) -> Iterator[Calls]:
    after = {(call.task, call.ordinal): call for call in right.calls}
    for old in left.calls:
        new = after.pop((old.task, old.ordinal), None)
        if new is None:
            yield Calls(old, None, [], False)
            continue
        asked = names.of(new.asked)
        found = [Difference(name, then, now) for name, now, then in differences_of_requests(asked, old.asked)]
        said = names.of([new.reply, new.error, [list(tool) for tool in new.tools]])
        is_same = not found and said == [old.reply, old.error, [list(tool) for tool in old.tools]]
        yield Calls(old, new, found, is_same)
    for new in after.values():
        yield Calls(None, new, [], False)


# What came of it.


def _files(
    before: Mapping[str, bytes | None], after: Mapping[str, bytes | None], names: _Names
) -> Iterator[File]:
    new = {names.of_text(path): data for path, data in after.items()}
    for path in {**before, **new}:
        if path not in before or path not in new:
            is_added = path not in before
            data = new[path] if is_added else before[path]
            texts = ("", _text(data)) if is_added else (_text(data), "")
            yield File(path, "added" if is_added else "removed", _diff(path, *texts))
            continue
        diff = _diff(path, _text(before[path]), names.of_text(_text(new[path])))
        yield File(path, "changed" if diff else "same", diff)


def _text(data: bytes | None) -> str:
    """Return a file's contents as text: of other bytes, what tells them."""
    if data is None:
        return ""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"{in_words(told(data))}\n"


def _sessions(left: _Run, right: _Run, names: _Names) -> Iterator[Session]:
    before, after = _events(left.effects), _renamed(_events(right.effects), names)
    for name in {**before, **after}:
        old, new = before.get(name, []), after.get(name, [])
        lines = [names.of_text("".join(f"{line}\n" for line in each)) for each in (old, new)]
        yield Session(name, len(old), len(new), _diff(name, *lines))


def _renamed(found: Mapping[str, list[str]], names: _Names) -> dict[str, list[str]]:
    """Return sessions with the names of the first run."""
    return {names.of_text(name): lines for name, lines in found.items()}


def _events(effects: Sequence[Effect]) -> dict[str, list[str]]:
    """Return the events that were appended, a line each, by the names of sessions and topics."""
    found: dict[str, list[str]] = {}
    for effect in effects:
        asked = effect.asked
        if effect.kind == SESSION and effect.error is None and _is_append(asked):
            lines = [_event(*event) for event in asked[4]]
            found.setdefault(str(asked[2]), []).extend(lines)
    return found


def _appended(asked: Json) -> Json:
    """Return what counts of what was asked of a session: events have times in them."""
    if not _is_append(asked):
        return asked
    return [*asked[:4], [_event(*event) for event in asked[4]]]


def _is_append(asked: Json) -> bool:
    return isinstance(asked, list) and len(asked) == 5 and asked[0] == "append"


#: Events whose data is what somebody said, and no time.
_SAID = frozenset({"message_added", "user_message", "assistant_message"})


def _event(type: str, data: Json) -> str:
    """Return an event in a line: of a message, its text too."""
    if type not in _SAID:
        return type
    if isinstance(data, str):
        try:
            message = json.loads(data)
        except ValueError:
            message = data
        return f"{type} {in_words(message)}"
    return f"{type} {in_words(data)} {data.get('sha256', '') if isinstance(data, dict) else ''}".rstrip()


# Diffs, of which stretches that are the same are left out.


#: Equal lines that are shown around what differs.
_AROUND = 3


def _diff(name: str, before: str, after: str) -> str:
    """Return a unified diff, empty if the texts are equal."""
    if before == after:
        return ""
    head, lines = (found := unified_diff(name, before, after).splitlines(keepends=True))[:2], found[2:]
    near = [False] * len(lines)
    for at, line in enumerate(lines):
        if line[0] != " ":
            for n in range(max(at - _AROUND, 0), min(at + _AROUND + 1, len(lines))):
                near[n] = True
    shown: list[str] = []
    skipped = 0
    for line, is_near in zip([*lines, ""], [*near, True], strict=True):
        if not is_near:
            skipped += 1
            continue
        if skipped:
            shown.append(f"@@ {skipped} equal line{'' if skipped == 1 else 's'} @@\n")
            skipped = 0
        shown.append(line)
    if not any(near):
        shown = ["@@ they differ at the end of the last line only @@\n"]
    return "".join([*head, *shown])
