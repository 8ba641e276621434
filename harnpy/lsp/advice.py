"""What the linter has found, as long as the items stand that it is about. Spec: 12 §3.1."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnpy.check.edits import Item
    from harnpy.check.findings import Finding


class Advice:
    """What a `Linter` found in a text: by item, with the offsets of the item's reading, and between them."""

    def __init__(self, source: str, items: Sequence[Item], findings: Sequence[Finding]) -> None:
        self._source = source
        self._between: list[Finding] = []
        self._inside: dict[Item, list[Finding]] = {}
        self._items = list(items)
        self._starts = [item.start for item in self._items]
        for finding in findings:
            item = self._item(finding.start)
            if item is None:
                self._between.append(finding)
            else:
                self._inside.setdefault(item, []).append(finding.shifted(-item.moved, self._reading))

    def _item(self, offset: int) -> Item | None:
        index = bisect_right(self._starts, offset) - 1
        item = self._items[index] if index >= 0 else None
        return item if item is not None and offset <= item.end else None

    def _reading(self, offset: int) -> int:
        item = self._item(offset)
        return offset if item is None else offset - item.moved

    def standing(self, source: str, items: Sequence[Item], place: Callable[[int], int]) -> Iterator[Finding]:
        """Yield what stands in a later text, by offsets in it: ``place`` brings those of a reading there."""
        for item in items if self._inside else ():
            for finding in self._inside.get(item, ()):
                yield finding.shifted(item.moved, place)
        if source == self._source:
            yield from self._between
