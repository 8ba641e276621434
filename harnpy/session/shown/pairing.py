"""Tool repair: every call of a conversation gets its result right behind it, or goes. Spec: 10 §A1.8, §C5.

A conversation in order stays as it is, message by message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.shown.message_parts import (
    calls_of,
    result_message,
    results_of,
    with_calls,
    with_results,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.session.shown.message_parts import Call, Message


class Record(NamedTuple):
    """What the log knows of a call: the events of its start and its end, and their data."""

    tool: str
    args: Any
    key: str | None
    completed: Any = None
    output: str | None = None
    error: str | None = None

    def text(self) -> str:
        """Return the result as the model is shown it."""
        text = self.output or ""
        if self.error and self.error not in text:
            text = f"{text}\nError: {self.error}"
        return text.strip()


class Answer(NamedTuple):
    """A result behind its call: number ``source`` of the messages, or one made from ``record``."""

    message: Message
    source: int | None
    call: Call
    record: Record | None


class Round(NamedTuple):
    """An assistant's message as it is after the repair, and its answers."""

    message: Message
    answers: list[Answer]


def rounds(messages: Sequence[Message], lookup: Callable[[int, int], dict[str, Record]]) -> list[Any]:
    """Return the messages in order as (number, message), with a `Round` for each message that calls tools.

    Results that answer no call are gone. ``lookup(at, end)`` returns what the log knows of the calls of
    message number ``at``; the next that isn't a result is number ``end``.
    """
    found: list[Any] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        answered = results_of(message)
        end = at + 1
        if answered is not None:
            rest = with_results(message, [None] * len(answered))
            if rest is not None:
                found.append((at, rest))
        elif calls := calls_of(message):
            while end < len(messages) and results_of(messages[end]) is not None:
                end += 1
            found.append((at, _round(messages, at, end, calls, lookup)))
        else:
            found.append((at, message))
        at = end
    return found


def _round(
    messages: Sequence[Message],
    at: int,
    end: int,
    calls: list[Call],
    lookup: Callable[[int, int], dict[str, Record]],
) -> Round:
    matches = _matches(calls, [results_of(messages[number]) or [] for number in range(at + 1, end)])
    answered = {call for match in matches for call in match if call is not None}
    missing = [n for n, call in enumerate(calls) if n not in answered and call.id is not None]
    records = lookup(at, end) if missing else {}
    answers: list[tuple[int, Answer]] = []
    for number, match in enumerate(matches, at + 1):
        ids = [None if call is None else calls[call].id or "" for call in match]
        kept = with_results(messages[number], ids)
        if kept is not None:
            first = min((call for call in match if call is not None), default=len(calls))
            call = calls[first] if first < len(calls) else calls[0]
            answers.append((first, Answer(kept, number, call, None)))
    for number in missing:
        record = records.get(calls[number].id or "")
        if record is not None and record.completed is not None:
            made = result_message(calls[number], record.text())
            answers.append((number, Answer(made, None, calls[number], record)))
            answered.add(number)
    answers.sort(key=lambda item: item[0])
    message = with_calls(messages[at], [number in answered for number in range(len(calls))])
    return Round(message, [answer for _, answer in answers])


def _matches(calls: list[Call], results: list[list[str | None]]) -> list[list[int | None]]:
    """Return which call each result answers: by id, first come first used; without id by position."""
    waiting = list(range(len(calls)))
    found: list[list[int | None]] = [[None] * len(ids) for ids in results]
    for row, ids in enumerate(results):
        for column, id in enumerate(ids):
            number = next((n for n in waiting if id is not None and calls[n].id == id), None)
            if number is not None:
                waiting.remove(number)
                found[row][column] = number
    for row, ids in enumerate(results):
        for column, id in enumerate(ids):
            if id is None and waiting:
                found[row][column] = waiting.pop(0)
    return found
