"""Long work inside one builtin: it looks at the signal every so many items. Spec: 05 §9.

A deadline, a cancellation or a limit can come at any moment, so the look is at the flag each time, never once
at the start. What has few items is left as it is.
"""

from __future__ import annotations

from itertools import chain

from harnpy.vm.values.iterators import items_of
from harnpy.vm.values.objects import Iter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
    from typing import Any, TypeGuard

    from harnpy.vm.vm import Signal, Vm

    Value = Any
    Poll = Callable[[], object]

#: Items between two looks.
BATCH = 256
_ONE_BATCH = range(BATCH)
#: Comparisons between two looks.
_COMPARISONS = 1024


def paced(items: Sequence[Value], signal: Signal, poll: Poll) -> Iterable[Value]:
    """The items, with a look after every `BATCH` of them."""
    return chain.from_iterable(_batches(items, signal, poll))


def _batches(items: Sequence[Value], signal: Signal, poll: Poll) -> Iterator[Sequence[Value]]:
    for at in range(0, len(items), BATCH):
        if signal.pending:
            poll()
        yield items[at : at + BATCH]


def paced_calls(function: Callable[[Value, Value], int], signal: Signal, poll: Poll) -> Callable[..., int]:
    """``function`` of two values, with a look at every so many calls: for sorting."""
    left = _COMPARISONS

    def counted(a: Value, b: Value) -> int:
        nonlocal left
        left -= 1
        if not left:
            left = _COMPARISONS
            if signal.pending:
                poll()
        return function(a, b)

    return counted


def iterator(value: Value, signal: Signal, poll: Poll) -> Iterator[Value]:
    """The items of an iterable value. Raises TypeFault for any other."""
    if signal.pending:
        poll()
    items = items_of(value)
    return PacedIter(items, signal, poll) if _are_many(items) else iter(items)


def handle(value: Value, signal: Signal, poll: Poll) -> Iter:
    """A lazy iterator over the items of an iterable value."""
    items = items_of(value)
    return PacedIter(items, signal, poll) if _are_many(items) else Iter(items)


def _are_many(items: Iterable[Value]) -> TypeGuard[Sequence[Value]]:
    """Whether there are more than a batch of ``items``, which are at hand."""
    if isinstance(items, range):
        # Python has no `len` for the largest.
        return items.stop - items.start > BATCH
    return isinstance(items, list | str) and len(items) > BATCH


class PacedIter(Iter):
    """A handle over many items. Interrupted between two batches, it goes on where it was."""

    __slots__ = ("_at", "_items", "_poll", "_signal")

    def __init__(self, items: Sequence[Value], signal: Signal, poll: Poll) -> None:
        super().__init__(())
        self._items = items
        self._at = 0
        self._signal = signal
        self._poll = poll

    @property
    def left(self) -> int:
        """The number of items that no batch has had yet; at most what an int can hold."""
        items = self._items
        if type(items) is range:
            return max(items.stop - items.start - self._at, 0)
        return len(items) - self._at

    def __next__(self) -> Value:
        try:
            return self.pull()
        except StopIteration:
            if self.done:
                raise
        self._next_batch()
        return self.pull()

    def _next_batch(self) -> None:
        if self._signal.pending:
            self._poll()
        batch = self._items[self._at : self._at + BATCH]
        if not batch:
            self.done, self._items = True, ()
        self._at += len(batch)
        self.pull = iter(batch).__next__


def gather(vm: Vm, handle: Iter, add: Callable[[Value], object], into: Sized) -> None:
    """``add`` every item, unless there are more than the collection ``into`` may have."""
    if type(handle) is PacedIter:
        vm.sizes.check_items(handle.left)
    pull, signal, sizes = handle.__next__, vm.signal, vm.sizes
    try:
        while True:
            for _ in _ONE_BATCH:
                add(pull())
            if signal.pending:
                vm.poll()
            if len(into) > sizes.items:
                sizes.check_items(len(into))
    except StopIteration:
        pass
