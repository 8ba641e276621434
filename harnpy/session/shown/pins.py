"""Messages that stay in the window whatever is trimmed or compacted. Spec: 10 §C5.

The register ``pins`` holds positions in the log. Pins are applied when a view is built, so one that is set
while a compaction is being made holds. A `history_replaced` ends them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.shown.message_parts import calls_of, results_of
from harnpy.session.shown.rewriting import key_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from harnpy.session.events import Event, Origin
    from harnpy.session.window import Window

REGISTER = "pins"


def are_pins(value: Any) -> bool:
    """Whether the register may have that value: positions, or None for no pins."""
    return value is None or (isinstance(value, list) and all(type(pin) is int for pin in value))


def position(history: list[Event], origin: Origin, event_id: str) -> int | None:
    """Return the number of that message, by its id in ``origin`` or by the one it was first written under."""
    for entry in history:
        if entry.is_logged and event_id in (origin.own(entry).id, entry.first.id):
            return entry.seq
    return None


def pinned_entries(window: Window, pins: Collection[int]) -> list[Event]:
    """Return the pinned messages that a cut has taken out of the window, in log order: a call with its
    results, and a result with its call."""
    here = set(map(key_of, window.entries.items()))
    found = []
    for together in _rounds(window.history()):
        if any(entry.is_logged and entry.seq in pins for entry in together):
            found += [entry for entry in together if key_of(entry) not in here]
    return sorted(found, key=lambda entry: entry.seq)


def _rounds(entries: list[Event]) -> list[list[Event]]:
    """Return the entries in groups: an assistant's calls with the results behind them, all others alone."""
    found: list[list[Event]] = []
    calling = False
    for entry in entries:
        if calling and results_of(entry.body) is not None:
            found[-1].append(entry)
        else:
            found.append([entry])
            calling = bool(calls_of(entry.body))
    return found
