"""Limits that an embedder sets for programs, and the meter that holds a run to them. Spec: 09 §16.

Loaded only by a Vm that has limits. What spends something reports it to the meter (`spend`), what has several
of something at once reports how many (`hold`), and `poll` looks at the time. An exceeded limit is no failure
that a program could catch: `LimitReached` leaves the program, and `Vm.run` makes a `LimitExceeded` of it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf, isfinite
from typing import TYPE_CHECKING

from harnpy.vm.errors import Leaving, LimitExceeded
from harnpy.vm.values import Set, Struct
from harnpy.vm.values.operators import Sizes

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Never

# A limit of items: the size of every value is looked at. Spec: 09 §16.1.
#
# Compiled code is fast because it works on lists and dicts without asking anybody. So a Vm with this limit
# walks its programs (`harnpy.vm.walk.activation`), and only such a Vm loads this.


_COLLECTIONS = frozenset((list, dict, Struct))


class Growth:
    """Holds the collections of a Vm's programs to the meter's limit of items."""

    def __init__(self, meter: Meter, most: int) -> None:
        self._meter = meter
        self._most = most

    def check(self, value: Any) -> None:
        """Leave the program if a collection has too many items."""
        kind = type(value)
        if kind in _COLLECTIONS:
            self.check_count(len(value))
        elif kind is Set:
            self.check_count(len(value.items))

    def check_count(self, count: int) -> None:
        if count > self._most:
            self._meter.exceed("items")

    def sizes(self) -> Sizes:
        """Return what refuses results that are known to be too large before they are made."""
        return _LimitedSizes(self, self._most)


class _LimitedSizes(Sizes):
    """To go beyond a limit is no error of the program."""

    __slots__ = ("_growth",)

    def __init__(self, growth: Growth, most: int) -> None:
        super().__init__()
        self.items = min(self.items, most)
        self._growth = growth

    def check_items(self, count: int) -> None:
        self._growth.check_count(count)
        super().check_items(count)


#: What a limit counts, as messages say it.
_UNITS = {
    "seconds": "seconds",
    "steps": "steps",
    "output": "characters of output",
    "items": "items in a collection",
    "sessions": "open sessions",
    "tasks": "tasks at once",
    "model_calls": "model calls",
    "response_bytes": "bytes in a response",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The limits of one run of a program; None means unlimited. Raises ValueError unless all are positive.

    ``seconds``: time on the world's clock. ``steps``: turns of loops and calls. ``output``: characters on
    standard output and error. ``items``: in one collection. ``sessions`` and ``tasks``: at once.
    ``model_calls``: retries included. ``response_bytes``: of one response over HTTP.
    """

    seconds: float | None = None
    steps: int | None = None
    output: int | None = None
    items: int | None = None
    sessions: int | None = None
    tasks: int | None = None
    model_calls: int | None = None
    response_bytes: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not _is_positive(value, whole=field.name != "seconds"):
                kind = "number of seconds" if field.name == "seconds" else "whole number"
                raise ValueError(f"Limits({field.name}={value!r}): a limit is a positive {kind}, or None")


def _is_positive(value: Any, whole: bool) -> bool:
    return type(value) in ((int,) if whole else (int, float)) and isfinite(value) and value > 0


class LimitReached(Leaving):
    """Leaves a program that has exceeded a limit."""

    def __init__(self, error: LimitExceeded) -> None:
        super().__init__(error)
        self.error = self.becomes = error


class Meter:
    """The resources that the current run of a Vm has used."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._most: dict[str, float] = {
            field.name: getattr(limits, field.name) or inf for field in fields(limits)
        }
        self._used: dict[str, int] = {}
        self.ends_at = inf
        #: Whether the Vm is to poll.
        self.polls = limits.seconds is not None or limits.steps is not None

    def growth(self) -> Growth | None:
        """Return what holds collections to their limit, None when there is none."""
        most = self._limits.items
        if most is None:
            return None

        return Growth(self, most)

    def begin(self) -> None:
        """A run begins, with nothing used."""
        self._used = dict.fromkeys(_UNITS, 0)
        self.ends_at = inf if self._limits.seconds is None else self._now() + self._limits.seconds

    def poll(self) -> None:
        """Count a step, and look at the time."""
        self.spend("steps")
        self.check_time()

    def check_time(self) -> None:
        if self.ends_at != inf and self._now() >= self.ends_at:
            self.exceed("seconds")

    def spend(self, what: str, amount: int = 1) -> None:
        """Count ``amount`` more of ``what`` in this run."""
        used = self._used[what] = self._used[what] + amount
        if used > self._most[what]:
            self.exceed(what)

    def give_back(self, what: str) -> None:
        """One that was spent is there again: a task has ended."""
        self._used[what] -= 1

    def hold(self, what: str, count: int) -> None:
        """There are ``count`` of ``what`` now."""
        if count > self._most[what]:
            self.exceed(what)

    def exceed(self, what: str) -> Never:
        """Leave the program."""
        raise self.excess(what)

    def excess(self, what: str) -> LimitReached:
        """Return what leaves the program."""
        limit = getattr(self._limits, what)
        text = f"the program exceeded its limit of {limit if type(limit) is int else format(limit, 'g')}"
        return LimitReached(LimitExceeded(what, f"{text} {_UNITS[what]}"))

    def most(self, what: str) -> int | None:
        """The limit itself."""
        limit: int | None = getattr(self._limits, what)
        return limit

    def counting(self, write: Callable[[str], object]) -> Callable[[str], object]:
        """``write`` for a program's output, which is counted."""

        def counted(text: str) -> None:
            self.spend("output", len(text))
            write(text)

        return counted
