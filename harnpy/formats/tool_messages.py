"""Tool calls and their results in messages of every shape: which there are, and which answers which.

Spec: 07 §1.17; 10 §A1.8, §C5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.dicts import as_dicts, as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Message = dict[str, Any]

#: Roles of messages that answer a tool call.
RESULT_ROLES = ("tool", "tool_result")

# The tool calls and results that a message holds, in every shape that messages have. Spec: 10 §C5.
#
# Calls are ``tool_calls`` or content blocks of type ``tool_use`` or ``tool_call``; a result is a message of
# role ``tool`` or ``tool_result``, or a ``tool_result`` block of a user message.


_RESULT_IDS = ("tool_call_id", "tool_use_id", "tool_id")
CALL_BLOCKS = ("tool_use", "tool_call")


class Call(NamedTuple):
    """``id`` is None for a call that nobody could answer by name."""

    id: str | None
    name: str | None
    block: bool


def calls_of(message: Message) -> list[Call]:
    """Return an assistant's calls, in order."""
    if message.get("role") != "assistant":
        return []
    if type(message.get("content")) is str and not message.get("tool_calls"):
        return []
    calls = []
    for call in as_dicts(message.get("tool_calls")):
        calls.append(Call(as_text(call.get("id")), _name(call), False))
    for block in as_dicts(message.get("content")):
        if block.get("type") in CALL_BLOCKS:
            calls.append(Call(as_text(block.get("id")), _name(block), True))
    return calls


def with_calls(message: Message, kept: Sequence[bool]) -> Message:
    """Return the message with those of its calls that are ``kept``."""
    if all(kept):
        return message
    made = dict(message)
    flags = iter(kept)
    listed = [call for call in _list(message.get("tool_calls")) if not isinstance(call, dict) or next(flags)]
    if listed:
        made["tool_calls"] = listed
    else:
        made.pop("tool_calls", None)
    return _with_blocks(made, lambda block: block.get("type") not in CALL_BLOCKS or next(flags))


def results_of(message: Message) -> list[str | None] | None:
    """Return the ids of the calls that a message answers, None for an answer without id; None unless it is
    a result."""
    role = message.get("role")
    if role in RESULT_ROLES:
        return [_result_id(message)]
    if role != "user" or type(message.get("content")) is str:
        return None
    found = [_result_id(block) for block in as_dicts(message.get("content")) if _is_result(block)]
    return found or None


def with_results(message: Message, answered: Sequence[str | None]) -> Message | None:
    """Return the message with the results that answer a call, under the id of that call, which is empty when
    the call has none; None when nothing is left of it."""
    if message.get("role") in RESULT_ROLES:
        id = answered[0]
        if not id or id == _result_id(message):
            return message if id is not None else None
        return {**message, "tool_call_id": id}
    if None in answered:
        flags = iter(answered)
        message = _with_blocks(message, lambda block: not _is_result(block) or next(flags) is not None)
    ids = iter([id for id in answered if id is not None])
    content = [_identified(block, ids) for block in message["content"]]
    if not content:
        return None
    return message if content == message["content"] else {**message, "content": content}


def _identified(block: Any, ids: Any) -> Any:
    """Return a result's block under its call's id."""
    if not isinstance(block, dict) or not _is_result(block):
        return block
    id = next(ids)
    return block if not id or _result_id(block) == id else {**block, "tool_use_id": id}


def _with_blocks(message: Message, kept: Callable[[Message], bool]) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [part for part in content if not isinstance(part, dict) or kept(part)]}


def _is_result(block: Message) -> bool:
    return block.get("type") == "tool_result"


def _result_id(result: Message) -> str | None:
    for key in _RESULT_IDS:
        id = as_text(result.get(key))
        if id is not None:
            return id
    return None


def _name(call: Message) -> str | None:
    function = call.get("function")
    return as_text(function.get("name") if isinstance(function, dict) else call.get("name"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class LateResults:
    """The results of a conversation by the ids of their calls, for calls that have none right behind them."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._numbers: dict[str, list[tuple[int, int | None]]] | None = None
        #: Which were taken: the numbers of their messages, and of the results in these.
        self.taken: set[tuple[int, int]] = set()

    def take(self, id: str, at: int, end: int) -> tuple[Message, int] | None:
        """Return the result, from message ``end`` on, of a call in message ``at``, and its message's number.

        None when there is none before another call of that id.
        """
        if self._numbers is None:
            self._numbers = self._found()
        places = self._numbers.get(id, [])
        for place, (number, column) in enumerate(places):
            if number > at and column is None:
                return None
            if number >= end and column is not None:
                del places[place]
                self.taken.add((number, column))
                return self._alone(number, column), number
        return None

    def _found(self) -> dict[str, list[tuple[int, int | None]]]:
        """Return by id where it is a result's, with the number of that in its message, or a call's."""
        places: dict[str, list[tuple[int, int | None]]] = {}
        for number, message in enumerate(self._messages):
            ids = results_of(message)
            if ids is not None:
                for column, id in enumerate(ids):
                    if id is not None:
                        places.setdefault(id, []).append((number, column))
                continue
            for call in calls_of(message):
                if call.id is not None:
                    places.setdefault(call.id, []).append((number, None))
        return places

    def _alone(self, number: int, column: int) -> Message:
        message = self._messages[number]
        if message.get("role") in RESULT_ROLES:
            return message
        results = [block for block in as_dicts(message["content"]) if _is_result(block)]
        return {**message, "content": [results[column]]}


def matched(calls: list[Call], results: list[list[str | None]]) -> list[list[int | None]]:
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


def late_results_up(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with each result that stands further behind moved up to its call, and no other
    change."""
    if len(messages) < 2:  # a prompt
        return list(messages)
    late = LateResults(messages)
    found: list[Message] = []
    at = 0
    while at < len(messages):
        end = at + 1
        calls = calls_of(messages[at])
        while calls and end < len(messages) and results_of(messages[end]) is not None:
            end += 1
        found += _without(messages[at], at, late)
        behind = matched(calls, [results_of(messages[number]) or [] for number in range(at + 1, end)])
        answered = {call for match in behind for call in match}
        moved = [
            (number, taken[0])
            for number, call in enumerate(calls)
            if number not in answered and call.id and (taken := late.take(call.id, at, end))
        ]
        for number, match in enumerate(behind, at + 1):
            first = min((call for call in match if call is not None), default=len(calls))
            moved += [(first, kept) for kept in _without(messages[number], number, late)]
        if len(moved) > len(behind):
            moved.sort(key=lambda answer: answer[0])
        found += [message for _, message in moved]
        at = end
    return found


def _without(message: Message, number: int, late: LateResults) -> list[Message]:
    """Return message number ``number`` without the results that were taken from it, if any of it is left."""
    columns = range(len(results_of(message) or ())) if late.taken else ()
    gone = [(number, column) in late.taken for column in columns]
    kept = with_results(message, [None if is_gone else "" for is_gone in gone]) if any(gone) else message
    return [] if kept is None else [kept]
