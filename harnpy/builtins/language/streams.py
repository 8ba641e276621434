"""The ``stream`` namespace: lazy work on anything iterable. Spec: 04 §9, 05 §16, 02 §17.5.

Sources are pulled in Python, one item at a time, and survive an error of a callback (see
`harnpy.vm.values.iterators`). A source that knows whether an item is ready has a method ``ready() -> bool``;
all others count as always ready.
"""

from __future__ import annotations

import math
from collections import deque
from functools import partial

from harnpy.faults import TooLarge
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault, TypeFault
from harnpy.vm.values import Iter, iterators, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.vm.values import Value
    from harnpy.vm.values.iterators import Callback, Pull
    from harnpy.vm.vm import Vm

    Source = Iterator[Value]

builtin = partial(declare, family="streams", counted=True)

_DEFAULT_CAP = 10_000
_POLL_SECONDS = 0.001
_LONGEST_WAIT_MS = 2**63


@builtin("stream.map(s: any, f: callable) -> iter")
def stream_map(vm: Vm, s: Value = ABSENT, f: Value = ABSENT) -> Iter:
    """Return `f(item)` of every item.

    Example: stream.map([1, 2], { n -> n * 10 }).to_list()  // [10, 20]
    """
    return iterators.mapped(_pull(vm, "map", s), _callable(vm, "map", f))


@builtin("stream.filter(s: any, f: callable) -> iter")
def stream_filter(vm: Vm, s: Value = ABSENT, f: Value = ABSENT) -> Iter:
    """Return the items for which `f(item)` is truthy.

    Example: stream.filter([1, 2, 3], { n -> n > 1 }).to_list()  // [2, 3]
    """
    return iterators.filtered(_pull(vm, "filter", s), _callable(vm, "filter", f))


@builtin("stream.tap(s: any, f: callable) -> iter")
def stream_tap(vm: Vm, s: Value = ABSENT, f: Value = ABSENT) -> Iter:
    """Return the items unchanged, and call `f(item)` on each as it is read.

    Example: stream.tap([1, 2], { n -> print(n) }).count()  // prints 12
    """
    pull, g = _pull(vm, "tap", s), _callable(vm, "tap", f)

    def step() -> Value:
        item = pull()
        g(0, item)
        return item

    return iterators.stepping(step)


@builtin("stream.scan(s: any, init: any, f: callable) -> iter")
def stream_scan(vm: Vm, s: Value = ABSENT, init: Value = ABSENT, f: Value = ABSENT) -> Iter:
    """Return every `acc = f(acc, item)`, beginning with `init`, which is not included.

    Example: stream.scan([1, 2, 3], 0, { sum, n -> sum + n }).to_list()  // [1, 3, 6]
    """
    pull, acc, g = _pull(vm, "scan", s), _given("scan", init, 2), _callable(vm, "scan", f, 3)

    def step() -> Value:
        nonlocal acc
        acc = g(0, acc, pull())
        return acc

    return iterators.stepping(step)


@builtin("stream.take(s: any, n: int) -> iter")
def stream_take(vm: Vm, s: Value = ABSENT, n: Value = ABSENT) -> Iter:
    """Return the first `n` items.

    Example: stream.take(range(1000000), 2).to_list()  // [0, 1]
    """
    return iterators.taken(_pull(vm, "take", s), _int("take", n, "non-negative", 0))


@builtin("stream.take_until(s: any, f: callable) -> iter")
def stream_take_until(vm: Vm, s: Value = ABSENT, f: Value = ABSENT) -> Iter:
    """Return the items before the first for which `f(item)` is truthy; that one is consumed.

    Example: stream.take_until([1, 2, 3], { n -> n == 3 }).to_list()  // [1, 2]
    """
    pull, ends = _pull(vm, "take_until", s), _callable(vm, "take_until", f)
    return iterators.taken_while(pull, lambda depth, item: not ends(depth, item))


@builtin("stream.zip(a: any, b: any) -> iter")
def stream_zip(vm: Vm, a: Value = ABSENT, b: Value = ABSENT, *surplus: Value) -> Iter:
    """Return pairs of items from both, until either ends.

    Example: stream.zip([1, 2], "ab").map({ p -> [p.first, p.second] }).to_list()  // [[1, "a"], [2, "b"]]
    """
    if b is ABSENT or surplus:
        given = 2 + len(surplus) - (a is ABSENT) - (b is ABSENT)
        raise TypeFault(f"stream.zip: expected 2 streams, got {given}")
    return iterators.zipped(_pull(vm, "zip", a), _pull(vm, "zip", b))


@builtin("stream.merge(...sources: any) -> iter")
def stream_merge(vm: Vm, *sources: Value) -> Iter:
    """Return the items of all sources as they are ready, taking turns among ready ones.

    Example: stream.merge([1, 2], ["a", "b"]).to_list()  // [1, "a", 2, "b"]
    """
    if not sources:
        raise TypeFault("stream.merge: expected at least one stream")
    return _in_turns(vm, [vm.iterate(source) for source in sources], _is_ready)


@builtin("stream.interleave(...sources: any) -> iter")
def stream_interleave(vm: Vm, *sources: Value) -> Iter:
    """Return an item of each source in turn; exhausted ones drop out.

    Example: stream.interleave([1, 2, 3], ["a"]).to_list()  // [1, "a", 2, 3]
    """
    if len(sources) < 2:
        raise TypeFault("stream.interleave: expected at least two streams")
    return _in_turns(vm, [vm.iterate(source) for source in sources], lambda _: True)


@builtin("stream.race(...sources: any) -> iter")
def stream_race(vm: Vm, *sources: Value) -> Iter:
    """Return the items of the first source that has one (the leftmost of several); drop the other sources.

    Example: stream.race([1, 2], ["a", "b"]).to_list()  // [1, 2]
    """
    if not sources:
        raise TypeFault("stream.race: expected at least one stream")
    racing = [vm.iterate(source) for source in sources]

    def step() -> Value:
        winner, item = _next_of(vm, racing, 0, _is_ready)
        racing[:] = [racing[winner]]
        return item

    return iterators.stepping(step)


#: How many iterators may share one stream: each has what it hasn't read.
_MOST_COPIES = 1 << 14


@builtin("stream.broadcast(s: any, n: int) -> list")
def stream_broadcast(vm: Vm, s: Value = ABSENT, n: Value = ABSENT) -> list[Iter]:
    """Return `n` iterators that each deliver every item; items are kept until the slowest has read them.

    Example:
        let copies = stream.broadcast([1, 2], 2)
        copies.map({ copy -> copy.to_list() })  // [[1, 2], [1, 2]]
    """
    pull = _pull(vm, "broadcast", s)
    count = _int("broadcast", n, "positive", 1)
    if count > _MOST_COPIES:
        raise TooLarge(f"{count} iterators", _MOST_COPIES)
    waiting: list[deque[Value]] = [deque() for _ in range(count)]

    def branch(own: deque[Value]) -> Iter:
        def step() -> Value:
            if not own:
                item = pull()
                for queue in waiting:
                    queue.append(item)
            return own.popleft()

        return iterators.stepping(step)

    return [branch(queue) for queue in waiting]


@builtin("stream.throttle(s: any, per_sec: any) -> iter")
def stream_throttle(vm: Vm, s: Value = ABSENT, per_sec: Value = ABSENT) -> Iter:
    """Return the items with pauses between them, at most `per_sec` in a second.

    Example: stream.throttle([1, 2], 100).to_list()  // [1, 2]
    """
    pull, pause = _pull(vm, "throttle", s), _pause_ms(_given("throttle", per_sec, 2)) / 1000
    is_first = True

    def step() -> Value:
        nonlocal is_first
        item = pull()
        if not is_first:
            vm.tasks.sleep(pause)
        is_first = False
        return item

    return iterators.stepping(step)


@builtin("stream.debounce(s: any, window_ms: int) -> iter")
def stream_debounce(vm: Vm, s: Value = ABSENT, window_ms: Value = ABSENT) -> Iter:
    """Return only the last of the items that arrive within `window_ms` of the first.

    Example: stream.debounce([1, 2, 3], 10).to_list()  // [3]
    """
    source = vm.iterate(_given("debounce", s, 1))
    window = _int("debounce", window_ms, "non-negative", 0) / 1000

    def step() -> Value:
        latest = source.__next__()
        vm.tasks.sleep(window)
        try:
            while _is_ready(source):
                latest = source.__next__()
        except StopIteration:
            return latest
        return latest

    return iterators.stepping(step)


@builtin("stream.collect(s: any, max: any = 10000) -> list")
def stream_collect(vm: Vm, s: Value = ABSENT, max: Value = None) -> list[Value]:
    """Return all items; throw if there are more than `max`, an int or a dict `{max: n}`.

    Example:
        gen fn count() { emit 1
        emit 2 }
        stream.collect(count())  // [1, 2]
    """
    pull, cap = _pull(vm, "collect", s), _cap(max)
    items: list[Value] = []

    def keep(item: Value) -> None:
        if len(items) == cap:
            raise RuntimeFault(f"stream.collect: max cap {cap} exceeded")
        items.append(item)

    iterators.visit(pull, keep)
    return items


@builtin("stream.fold(s: any, init: any, f: callable) -> any")
def stream_fold(vm: Vm, s: Value = ABSENT, init: Value = ABSENT, f: Value = ABSENT) -> Value:
    """Return the last `acc = f(acc, item)`, beginning with `init`.

    Example: stream.fold([1, 2, 3], 0, { sum, n -> sum + n })  // 6
    """
    pull, acc, g = _pull(vm, "fold", s), _given("fold", init, 2), _callable(vm, "fold", f, 3)
    try:
        while True:
            acc = g(0, acc, pull())
    except StopIteration:
        return acc


@builtin("stream.first(s: any) -> any")
def stream_first(vm: Vm, s: Value = ABSENT) -> Value:
    """Return the next item, or nil; the rest stays available.

    Example: stream.first([7, 8])  // 7
    """
    pull = _pull(vm, "first", s)
    try:
        return pull()
    except StopIteration:
        return None


def _in_turns(vm: Vm, sources: list[Source], is_ready: Callable[[Source], bool]) -> Iter:
    at = 0

    def step() -> Value:
        nonlocal at
        last, item = _next_of(vm, sources, at, is_ready)
        at = last + 1
        return item

    return iterators.stepping(step)


def _next_of(
    vm: Vm, sources: list[Source], start: int, is_ready: Callable[[Source], bool]
) -> tuple[int, Value]:
    """Return the position and item of the first ready source, starting at ``start`` and wrapping around.

    Waits while none is ready. Exhausted sources are taken out of the list; StopIteration when all are.
    """
    while sources:
        for i in [(start + step) % len(sources) for step in range(len(sources))]:
            if not is_ready(sources[i]):
                continue
            try:
                return i, sources[i].__next__()
            except StopIteration:
                del sources[i]
                start = i
                break
        else:
            vm.tasks.sleep(_POLL_SECONDS)
    raise StopIteration


def _is_ready(source: Source) -> bool:
    ready = getattr(source, "ready", None)
    return ready is None or ready()


def _given(name: str, value: Value, i: int) -> Value:
    if value is ABSENT:
        raise TypeFault(f"stream.{name}: missing argument {i}")
    return value


def _pull(vm: Vm, name: str, s: Value) -> Pull:
    pull: Pull = vm.iterate(_given(name, s, 1)).__next__
    return pull


def _callable(vm: Vm, name: str, f: Value, i: int = 2) -> Callback:
    callback: Callback | None = vm.callback(_given(name, f, i), i - 1)
    if callback is None:
        raise TypeFault(f"stream.{name}: argument {i} must be callable, got {type_name(f)}")
    return callback


def _int(name: str, n: Value, kind: str, least: int) -> int:
    if type(_given(name, n, 2)) is not int or n < least:
        raise TypeFault(f"stream.{name}: argument 2 must be a {kind} int, got {type_name(n)}")
    return int(n)


def _pause_ms(per_sec: Value) -> int:
    if type(per_sec) is float and not math.isfinite(per_sec):
        raise TypeFault("stream.throttle: argument 2 must be a positive finite number")
    if (type(per_sec) is not int and type(per_sec) is not float) or per_sec <= 0:
        raise TypeFault(f"stream.throttle: argument 2 must be a positive number, got {type_name(per_sec)}")
    return math.ceil(min(1000 / per_sec, _LONGEST_WAIT_MS))


def _cap(value: Value) -> int:
    wanted = value.get("max") if type(value) is dict else value
    if wanted is None:
        return _DEFAULT_CAP
    if type(wanted) is int and wanted >= 0:
        return wanted
    if type(wanted) is int or type(value) is dict:
        raise TypeFault(f"stream.collect: max must be a non-negative int, got {type_name(wanted)}")
    raise TypeFault(
        f"stream.collect: second argument must be max int or options dict, got {type_name(wanted)}"
    )
