"""A list that only grows at its end, and branches at no cost.

A branch copies nothing: it remembers its source and how long that was, and stores what it adds itself. As
the source only grows, those first items never change. The list is copied when the branch is first read; a
branch that is never read never pays for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


class Spine(Generic[T]):
    """The first ``_start`` items are those of ``_source``, ``_inherited`` the last of them; the rest are in
    ``_own``."""

    __slots__ = ("_inherited", "_own", "_source", "_start")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._own: list[T] = list(items)
        self._source: Spine[T] | None = None
        self._start = 0
        self._inherited: T | None = None

    def __len__(self) -> int:
        return self._start + len(self._own)

    def append(self, item: T) -> None:
        self._own.append(item)

    def last(self) -> T | None:
        """The last item, None when there is none. Doesn't make the spine independent of its source."""
        return self._own[-1] if self._own else self._inherited

    def branch(self, until: int | None = None) -> Spine[T]:
        """Return a spine with the first ``until`` items (None: all) that grows on its own."""
        branch: Spine[T] = Spine()
        branch._source = self
        own = self._own
        length = self._start + len(own)
        if until is None or until >= length:
            branch._start = length
            branch._inherited = own[-1] if own else self._inherited
        else:
            branch._start = until
            branch._inherited = self.items()[until - 1] if until else None
        return branch

    def items(self) -> list[T]:
        """Return all items. The list is the spine's own: read it, don't change it, don't keep it."""
        if self._source is not None:
            self._flatten()
        return self._own

    def at_hand(self) -> list[T]:
        """Return the items that needn't be read first: all, but for a `LateSpine`."""
        return self.items()

    @property
    def is_late(self) -> bool:
        """Whether the first items haven't been read yet."""
        return False

    def settle(self) -> None:
        """Become independent of the source, at the cost of a list copy."""
        self.items()

    def _flatten(self) -> None:
        """Become independent of the source. Not recursive: forks of forks may go thousands deep."""
        pieces: list[list[T]] = []
        spine: Spine[T] | None = self
        stop = len(self)
        while spine is not None:
            if stop > spine._start:
                pieces.append(spine._own[: stop - spine._start])
                stop = spine._start
            spine = spine._source
        self._own = pieces.pop() if pieces else []
        while pieces:
            self._own += pieces.pop()
        self._source = None
        self._start = 0
        self._inherited = None


class LateSpine(Spine[T]):
    """One whose first items are read when somebody first wants to see them: ``read`` returns them."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Iterable[T]], items: Iterable[T] = ()) -> None:
        super().__init__(items)
        self._read: Callable[[], Iterable[T]] | None = read

    def __len__(self) -> int:
        return len(self.items())

    def last(self) -> T | None:
        return self._own[-1] if self._own else next(reversed(self.items()), None)

    def branch(self, until: int | None = None) -> Spine[T]:
        if until is None and self._read is not None:
            return LateSpine(self._read, self._own)
        self.items()
        return super().branch(until)

    def items(self) -> list[T]:
        if self._read is not None:
            self._own[:0] = self._read()
            self._read = None
        return super().items()

    def at_hand(self) -> list[T]:
        return self._own if self.is_late else self.items()

    @property
    def is_late(self) -> bool:
        return self._read is not None

    def settle(self) -> None:
        """Do nothing: it has no source."""
