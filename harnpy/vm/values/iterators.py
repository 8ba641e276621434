"""Lazy sequences: what can be iterated, combinators over a pull, and work that polls. Spec: 02 §17, 05 §9.

A *pull* is a Python callable without arguments that returns the next item or raises StopIteration; a
handle's is `Iter.__next__`. Every combinator is a step function over the pull of its upstream handle,
so handles share what they read. None is a Python generator: an error in a callback must not end the
sequence, and pulling through a long chain must not recurse through C.
"""

from __future__ import annotations

from harnpy.faults import BATCH, paced
from harnpy.vm.errors import TypeFault
from harnpy.vm.values import Iter, Pair, Range, Set, Struct, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
    from typing import Any, TypeGuard

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Signal, Vm

    Pull = Callable[[], Value]
    #: A Harn callable as `vm.callback` makes it: the call depth (0) comes before the arguments.
    Callback = Callable[..., Value]
    Poll = Callable[[], object]


def items_of(value: Value) -> Iterable[Value]:
    """Return what ``iter(value)`` runs over; a dict gives a `Pair` per key, in key order."""
    kind = type(value)
    if kind is list or kind is str:
        return value  # type: ignore[no-any-return]
    if kind is Range:
        return range(value.first, value.stop)
    if kind is dict:
        return [Pair(key, value[key]) for key in paced(sorted(value))]
    if kind is Set:
        return value.items  # type: ignore[no-any-return]
    if hasattr(kind, "__iter__") and kind is not bytes and kind is not Struct:
        return value  # type: ignore[no-any-return]
    raise TypeFault(f"iter: value of type {type_name(value)} is not iterable")


def stepping(step: Pull) -> Iter:
    """The handle whose items are what ``step`` returns until it raises StopIteration."""
    handle = Iter(())
    handle.pull = step
    return handle


def visit(pull: Pull, f: Callable[[Value], Any]) -> bool:
    """Call ``f`` with each item until it returns something truthy; return whether it did."""
    try:
        while True:
            if f(pull()):
                return True
    except StopIteration:
        return False


class _OwnStep(Iter):
    """A handle whose step is its `__next__`: one Python call less for each item than `stepping`."""

    __slots__ = ("f",)

    def __init__(self, pull: Pull, f: Callback) -> None:
        self.pull = pull
        self.f = f
        self.done = False

    def end(self) -> None:
        """There is no next item from here on."""
        self.done, self.pull = True, iter(()).__next__


class _Mapped(_OwnStep):
    __slots__ = ()

    def __next__(self) -> Value:
        try:
            return self.f(0, self.pull())
        except StopIteration:
            self.end()
            raise


class _Filtered(_OwnStep):
    __slots__ = ()

    def __next__(self) -> Value:
        pull, keep = self.pull, self.f
        try:
            while True:
                item = pull()
                if keep(0, item):
                    return item
        except StopIteration:
            self.end()
            raise


def mapped(pull: Pull, f: Callback) -> Iter:
    return _Mapped(pull, f)


def filtered(pull: Pull, keep: Callback) -> Iter:
    return _Filtered(pull, keep)


def flattened(pull: Pull, items_of: Callable[[Value], Iterator[Value]]) -> Iter:
    """The items of ``items_of(x)`` for each item x."""
    inner: Pull | None = None

    def step() -> Value:
        nonlocal inner
        while True:
            if inner is None:
                inner = items_of(pull()).__next__
            try:
                return inner()
            except StopIteration:
                inner = None

    return stepping(step)


def taken(pull: Pull, n: int) -> Iter:
    """The first ``n`` items; never pulls one more."""

    def step() -> Value:
        nonlocal n
        if n <= 0:
            raise StopIteration
        item = pull()
        n -= 1
        return item

    return stepping(step)


def skipped(pull: Pull, n: int) -> Iter:
    """All but the first ``n`` items, which are pulled when the first item is asked for."""

    def step() -> Value:
        nonlocal n
        while n > 0:
            pull()
            n -= 1
        return pull()

    return stepping(step)


def taken_while(pull: Pull, keep: Callback) -> Iter:
    """The items before the first that ``keep`` refuses; that one is consumed."""

    def step() -> Value:
        item = pull()
        if keep(0, item):
            return item
        raise StopIteration

    return stepping(step)


def skipped_while(pull: Pull, drop: Callback) -> Iter:
    dropping = True

    def step() -> Value:
        nonlocal dropping
        item = pull()
        while dropping and drop(0, item):
            item = pull()
        dropping = False
        return item

    return stepping(step)


def zipped(left: Pull, right: Pull) -> Iter:
    """Pairs until either side ends. The left side is pulled first, so its last item may be lost."""
    return stepping(lambda: Pair(left(), right()))


def chained(first: Pull, second: Pull) -> Iter:
    pull = first

    def step() -> Value:
        nonlocal pull
        try:
            return pull()
        except StopIteration:
            if pull is second:
                raise
            pull = second
            return pull()

    return stepping(step)


def enumerated(pull: Pull) -> Iter:
    """Pairs of position and item, from 0."""
    i = 0

    def step() -> Pair:
        nonlocal i
        pair = Pair(i, pull())
        i += 1
        return pair

    return stepping(step)


def chunked(pull: Pull, size: int) -> Iter:
    """Lists of ``size`` items; the last may be shorter."""
    chunk: list[Value] = []

    def step() -> list[Value]:
        nonlocal chunk
        try:
            while len(chunk) < size:
                chunk.append(pull())
        except StopIteration:
            if not chunk:
                raise
        full, chunk = chunk, []
        return full

    return stepping(step)


def windowed(pull: Pull, size: int) -> Iter:
    """Lists of ``size`` neighbours, each one item further on."""
    window: list[Value] = []

    def step() -> list[Value]:
        while len(window) < size:
            window.append(pull())
        full = window.copy()
        del window[0]
        return full

    return stepping(step)


# Long work inside one builtin: it looks at the signal every so many items. Spec: 05 §9.
#
# A deadline, a cancellation or a limit can come at any moment, so the look is at the flag each time, never
# once at the start. What has few items is left as it is.


_ONE_BATCH = range(BATCH)
#: Comparisons between two looks.
_COMPARISONS = 1024


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
    """Return True if there are more than a batch of ``items``, which are at hand."""
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
