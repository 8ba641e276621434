"""Tool calls put together from the fragments of a stream, however a service numbers and names them.

A name is set once. A known id continues its call; another id, another name, or a name after complete
arguments begins a new one. Spec: 07 §1.17.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harnpy.formats.json import ordered_json
from harnpy.llm.request_messages import written_call

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Keys of a fragment that say which call it belongs to; what else it has belongs to the call.
_KNOWN = ("index", "id", "type", "function")


class StreamedCall:
    """A call, as much as has come of it. ``more`` are the keys that only its service understands."""

    def __init__(self, id: str, index: Any, name: str) -> None:
        self.id = id
        self.index = index
        self.name = name
        self.pieces: list[str] = []
        self.more: dict[str, Any] = {}
        #: Whether nothing but a repeated name says that it is another call than the one before.
        self.is_doubtful = False

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are an object to its end."""
        try:
            return isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False


class StreamedCalls:
    """The calls of one reply, by their numbers, else in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[StreamedCall] = []

    def add(self, fragments: Sequence[dict[str, Any]]) -> None:
        """Take in the fragments of one chunk. Without numbers, several are of as many calls."""
        for position, fragment in enumerate(fragments):
            index = fragment.get("index")
            if type(index) is not int:
                index = position if len(fragments) > 1 else None
            self._add(fragment, index)

    def add_whole(self, calls: Sequence[dict[str, Any]]) -> None:
        """Take in calls, each of them whole."""
        for call in calls:
            function = _function(call)
            _fill(self._begin(_text(call.get("id")), None, _text(function.get("name"))), call, function)

    def calls(self, is_cut: bool) -> list[dict[str, Any]]:
        """Return the calls as a `Reply` has them; in one that ``is_cut`` off they may lack arguments."""
        calls = [call for call in self._calls if call.arguments.strip() or not call.is_doubtful]
        if all(call.index is not None for call in calls):
            calls.sort(key=lambda call: call.index or 0)
        return [written_call(call.id, call.name, call.arguments, is_cut, call.more) for call in calls]

    def _add(self, fragment: dict[str, Any], index: int | None) -> None:
        id, function = _text(fragment.get("id")), _function(fragment)
        name = _text(function.get("name"))
        before = self._last(id, index)
        if before is None or (id and before.id and id != before.id):
            call = self._begin(id, index, name)
        elif name and before.name and (name != before.name or before.is_complete):
            call = self._begin(id, index, name)
            call.is_doubtful = name == before.name
        else:
            call = before
        call.id = call.id or id
        call.name = call.name or name
        _fill(call, fragment, function)

    def _begin(self, id: str, index: int | None, name: str) -> StreamedCall:
        self._calls.append(StreamedCall(id, index, name))
        return self._calls[-1]

    def _last(self, id: str, index: int | None) -> StreamedCall | None:
        """Return the last call of that id, else that number; without a number, the last of all."""
        calls = self._calls[::-1]
        known = next((call for call in calls if id and call.id == id), None)
        return known or next((call for call in calls if index is None or call.index == index), None)


def _fill(call: StreamedCall, fragment: dict[str, Any], function: dict[str, Any]) -> None:
    given = function.get("arguments")
    if given is not None:
        call.pieces.append(given if isinstance(given, str) else ordered_json(given))
    call.more |= {key: value for key, value in fragment.items() if key not in _KNOWN}


def _function(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    return function if isinstance(function, dict) else {}


def _text(value: Any) -> str:
    return "" if value is None else str(value)
