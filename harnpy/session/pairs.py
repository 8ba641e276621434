"""Pairs: which result answers which tool call, in every shape that messages have, and cuts that part none.

Calls are `tool_calls` or blocks of type ``tool_use`` or ``tool_call``; results are messages of role
``tool`` or ``tool_result``, or user messages with ``tool_result`` blocks. They pair by id, or by position
if a result has none. Spec: 10 §C5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import paced
from harnpy.formats.dicts import as_dicts
from harnpy.formats.tool_messages import RESULT_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.session.messages import Message

_RESULT_ID = ("tool_call_id", "tool_use_id", "tool_id")


class Pairs:
    """``spans[cut]`` is how many pairs a cut before message number ``cut`` would separate; ``orphans`` are
    the numbers of the results that answer no call."""

    def __init__(self, messages: Sequence[Message]) -> None:
        steps = [0] * (len(messages) + 2)
        self.orphans: set[int] = set()
        latest: int | None = None
        by_id: dict[str, int] = {}
        for number, message in enumerate(paced(messages)):
            if not _has_part(message):
                continue
            answered = _answered(message, by_id, latest)
            if answered is not None:
                for call in answered:
                    steps[call + 1] += 1
                    steps[number + 1] -= 1
                if not answered:
                    self.orphans.add(number)
            calls = _calls(message)
            if calls:
                latest = number
                by_id.update(dict.fromkeys(filter(None, calls), number))
        self.spans: list[int] = []
        open_pairs = 0
        for step in paced(steps[:-1]):
            open_pairs += step
            self.spans.append(open_pairs)

    def whole_cut(self, cut: int, start: int) -> int:
        """Return the cut nearest to ``cut`` that separates no pair: before the call, or behind the result if
        the call isn't behind ``start``. Orphans at the cut go with what is before it."""
        before = cut
        while self.spans[before]:
            before -= 1
        cut = before if before > start else self.open_cut(cut)
        while cut in self.orphans:
            cut = self.open_cut(cut + 1)
        return cut

    def open_cut(self, cut: int) -> int:
        """Return the first cut from ``cut`` on that separates no pair."""
        while self.spans[cut]:
            cut += 1
        return cut


def _has_part(message: Message) -> bool:
    """Return whether a message can hold calls or results at all. Most don't."""
    return (
        "tool_calls" in message
        or message.get("role") in RESULT_ROLES
        or isinstance(message.get("content"), list)
    )


def _answered(message: Message, by_id: dict[str, int], latest: int | None) -> list[int] | None:
    """Return the numbers of the calls that a message answers; None unless it is a result."""
    ids = list(_result_ids(message))
    if not ids:
        return None
    found = [latest if id is None else by_id.get(id) for id in ids]
    return [number for number in found if number is not None]


def _calls(message: Message) -> list[str | None]:
    """Return the ids of the calls that a message makes; None for a call without an id."""
    return [
        _text(call.get("id"))
        for call in (*as_dicts(message.get("tool_calls")), *_blocks(message, "tool_use", "tool_call"))
    ]


def _result_ids(message: Message) -> Iterator[str | None]:
    role = message.get("role")
    if role in RESULT_ROLES:
        yield _id(message)
    elif role == "user":
        for block in _blocks(message, "tool_result"):
            yield _id(block)


def _id(result: Message) -> str | None:
    return next((text for key in _RESULT_ID if (text := _text(result.get(key)))), None)


def _blocks(message: Message, *types: str) -> list[Message]:
    return [block for block in as_dicts(message.get("content")) if block.get("type") in types]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
