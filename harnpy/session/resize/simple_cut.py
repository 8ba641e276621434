"""`simple_cut`: the newest messages that fit, whole. Spec: 10 §A2.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.resize.lengths import last_text, printed_length
from harnpy.session.resize.pairs import Pairs

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    Message = dict[str, Any]


def simple_cut(
    messages: Sequence[Message], limit: int, room: int | None = None, free: Collection[int] = ()
) -> list[Message]:
    """Return the newest messages whose printed lengths add up to ``room`` at most (None: the ``limit``).

    If not even the newest fits, return it with that many last characters of its text (with ``limit`` ones
    where there is no room at all), and with its call, if it is a result. Those whose numbers are ``free``
    take no room. Calls and results never part.
    """
    room = limit if room is None else room
    start = taken = len(messages)
    total = 0
    for number in range(taken - 1, -1, -1):
        if number not in free:
            total += printed_length(messages[number])
        if total > room:
            break
        start = number
    pairs = Pairs(messages)
    start = pairs.open_cut(start)
    while start in pairs.orphans:
        start = pairs.open_cut(start + 1)
    if start < len(messages) or not messages:
        return list(messages[start:])
    return _shortened(messages[_last_round(pairs, len(messages)) :], room or limit)


def _last_round(pairs: Pairs, count: int) -> int:
    """Return the number of the newest message, or of the call that it can't be parted from."""
    start = count - 1
    while pairs.spans[start]:
        start -= 1
    return start


def _shortened(messages: Sequence[Message], room: int) -> list[Message]:
    """Give the room to the texts, the newest first."""
    kept = []
    for message in reversed(messages):
        shorter, room = last_text(message, room)
        kept.append(shorter)
    return kept[::-1]
