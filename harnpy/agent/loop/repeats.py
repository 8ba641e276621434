"""Detecting a model that repeats the same call. Spec: 07 §6.7 steps 10 and 15."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from harnpy.agent.loop.options import LoopOptions
    from harnpy.reading.dicts import Dict

_WARNED, _BLOCKED = "[LOOP DETECTED]", "BLOCKED:"


class Intervention(NamedTuple):
    """``kind`` is ``warn``, ``block`` or ``skip``; ``text`` is what the model reads."""

    kind: str
    times: int
    text: str


class Repeats:
    """How often in a row each call, with its arguments, returned the same result."""

    def __init__(self, options: LoopOptions) -> None:
        self._warn = options.loop_detect_warn
        self._block = options.loop_detect_block
        self._skip = options.loop_detect_skip
        self._seen: dict[tuple[str, str], tuple[int, str]] = {}

    def before(self, name: str, arguments: Dict) -> Intervention | None:
        """Return why the call must not be made again, if so; that counts as a repetition."""
        if not self._warn or not self._seen:
            return None
        key = (name, compact_json(arguments))
        count, result = self._seen.get(key, (0, ""))
        if not count or count + 1 < self._skip:
            return None
        self._seen[key] = (count + 1, result)
        text = (
            f"{_BLOCKED} {name}() was NOT executed (repeated {count + 1} times identically). This call will "
            "not be executed again with these arguments. You MUST change your approach NOW."
        )
        return Intervention("skip", count + 1, text)

    def recall(self, name: str, arguments: Dict, shown: str) -> None:
        """Count a call that an earlier run of the turn has made; ``shown`` is what the model read of it."""
        key = (name, compact_json(arguments))
        count, previous = self._seen.get(key, (0, ""))
        is_repeated = shown == previous or shown.startswith((f"{previous}\n{_WARNED}", _BLOCKED))
        self._seen[key] = (count + 1, previous) if count and is_repeated else (1, shown)

    def after(self, name: str, arguments: Dict, result: str) -> Intervention | None:
        """Return what to show instead of a repeated result."""
        if not self._warn:
            return None
        key = (name, compact_json(arguments))
        count, previous = self._seen.get(key, (0, ""))
        count = count + 1 if count and previous == result else 1
        self._seen[key] = (count, result)
        if count >= self._block:
            text = (
                f"{_BLOCKED} {name}() has failed {count} times identically. "
                "You MUST use a different approach. "
                "Pick a different available tool or change your parameters."
            )
            return Intervention("block", count, text)
        if count >= self._warn:
            first = result.partition("\n")[0]
            text = (
                f"{result}\n{_WARNED} This exact {name}() call has produced the same result {count} "
                f'times. The result says: "{first}". Try a DIFFERENT tool or DIFFERENT parameters.'
            )
            return Intervention("warn", count, text)
        return None
