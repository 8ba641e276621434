"""A limit of items: the size of every value is looked at. Spec: 09 §16.1.

Compiled code is fast because it works on lists and dicts without asking anybody. So a Vm with this limit
walks its programs (`harnpy.vm.walk.growing`), and only such a Vm loads this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.vm.values.objects import Set, Struct
from harnpy.vm.values.sizes import Sizes

if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.limits import Meter

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
        """What refuses results that are known to be too large before they are made."""
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
