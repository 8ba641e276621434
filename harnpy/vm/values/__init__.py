"""What a Harn value is, as a Python object. Spec: 02 §1.

Plain Python values stand for themselves: `int`, `float`, `str`, `bytes`, `bool`, `None` (nil),
`list`, and `dict` with `str` keys in any order (sorted whenever the order shows). The classes below
are the rest. Two invariants keep evaluated code fast:

* Python truthiness is Harn truthiness: only what Harn calls falsy when empty has `__bool__`/`__len__`.
* No class here answers `value["text"]`: `Struct`, a dict, is the one exception, and there it means
  reading a field.

Lists and dicts are shared freely and never changed once two places can see them.

`display` and `type_name` take any value; so do `equal`, `compare` and their like in `equality`, and the
functions of `operators` and `iterators`. A value class, here or elsewhere, plugs into them and into `for`
with these members:

    type_name: str            what `type_of` answers
    display() -> str          its text
    as_json() -> value        what stands for it in JSON; without it, null
    parts() -> list | tuple   what makes it the value it is; without it, it equals nothing
    unordered = True          the parts count in any order
    equals(other) -> bool     `==` with another of its class, instead of comparing parts
    compares(other) -> int    the order among its class: -1, 0, 1; without it, there is none
    __iter__()                what `for` and `iter(x)` run over; without it, neither does
"""

from __future__ import annotations

from harnpy.formats.display import display, display_fields, display_items, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Value = Any

__all__ = [
    "Atomic",
    "Builtin",
    "Duration",
    "EnumValue",
    "Fn",
    "Generator",
    "Iter",
    "Pair",
    "Range",
    "Rng",
    "Set",
    "Stream",
    "Struct",
    "TaskHandle",
    "display",
    "type_name",
]


class Struct(dict):  # type: ignore[type-arg]
    """A struct instance: its present fields, and the struct's name in ``type``."""

    __slots__ = ("type",)
    type_name = "struct"
    type: str

    def __init__(self, type: str, fields: Iterable[tuple[str, Value]] | dict[str, Value] = ()) -> None:
        dict.__init__(self, fields)
        self.type = type

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return type(other) is Struct and self.type == other.type and dict.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def display(self) -> str:
        return f"{self.type} {display_fields(self)}"

    def parts(self) -> tuple[Value, ...]:
        return self.type, dict(self)


class Set:
    """Unique values in insertion order; ``items`` is never changed after construction."""

    __slots__ = ("items",)
    type_name = "set"
    unordered = True

    def __init__(self, items: list[Value]) -> None:
        self.items = items

    def __bool__(self) -> bool:
        return bool(self.items)

    def display(self) -> str:
        return f"set({display_items(self.items)})"

    def as_json(self) -> list[Value]:
        return self.items

    def parts(self) -> list[Value]:
        return self.items


class Duration:
    """A length of time in whole milliseconds."""

    __slots__ = ("ms",)
    type_name = "duration"

    def __init__(self, ms: int) -> None:
        self.ms = ms

    def __bool__(self) -> bool:
        return self.ms != 0

    def display(self) -> str:
        for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
            if self.ms and self.ms % size == 0:
                return f"{self.ms // size}{unit}"
        return f"{self.ms}ms"

    def parts(self) -> tuple[int]:
        return (self.ms,)

    def compares(self, other: Duration) -> int:
        return (self.ms > other.ms) - (self.ms < other.ms)


class EnumValue:
    """A variant of an enum with its payloads; ``Result`` is the predeclared enum."""

    __slots__ = ("enum", "fields", "variant")
    type_name = "enum"

    def __init__(self, enum: str, variant: str, fields: tuple[Value, ...] = ()) -> None:
        self.enum = enum
        self.variant = variant
        self.fields = fields

    def display(self) -> str:
        payload = f"({display_items(self.fields)})" if self.fields else ""
        return f"{self.enum}.{self.variant}{payload}"

    def parts(self) -> tuple[Value, ...]:
        return self.enum, self.variant, *self.fields


_MAX_INT = 2**63 - 1


class Range:
    """The integers from ``first`` up to ``last`` (included unless ``exclusive``)."""

    __slots__ = ("exclusive", "first", "last")
    type_name = "range"

    def __init__(self, first: int, last: int, exclusive: bool = False) -> None:
        self.first = first
        self.last = last
        self.exclusive = exclusive

    @property
    def stop(self) -> int:
        """One past the last item."""
        return self.last if self.exclusive else self.last + 1

    @property
    def size(self) -> int:
        """The number of items; none when the bounds are reversed, at most what an int can hold."""
        return min(max(self.stop - self.first, 0), _MAX_INT)

    def at(self, i: int) -> int | None:
        """The item at ``i``, from the end when negative; None out of range."""
        place = i if i >= 0 else self.size + i
        return self.first + place if 0 <= place < self.size else None

    def __contains__(self, x: Value) -> bool:
        return type(x) is int and self.first <= x < self.stop

    def display(self) -> str:
        return f"{self.first} to {self.last}{' exclusive' if self.exclusive else ''}"

    def as_json(self) -> str:
        return self.display()

    def parts(self) -> tuple[int, int, bool]:
        return self.first, self.last, self.exclusive


class Pair:
    __slots__ = ("first", "second")
    type_name = "pair"

    def __init__(self, first: Value, second: Value) -> None:
        self.first = first
        self.second = second

    def display(self) -> str:
        return f"({display_items((self.first, self.second))})"

    def parts(self) -> tuple[Value, Value]:
        return self.first, self.second

    def compares(self, other: Pair) -> int:
        from harnpy.vm.values.equality import compare

        return compare(self.first, other.first) or compare(self.second, other.second)


class Iter:
    """A lazy, single-pass, fused iterator handle over a Python iterator. Spec: 02 §17.

    Pull with ``handle.__next__()`` rather than ``next(handle)``, which goes through C: then a chain of
    combinators costs no C stack, however long it is.
    """

    __slots__ = ("done", "pull")
    type_name = "iter"

    def __init__(self, source: Iterable[Value]) -> None:
        self.pull = iter(source).__next__
        self.done = False

    def __iter__(self) -> Iter:
        return self

    def __next__(self) -> Value:
        if self.done:
            raise StopIteration
        try:
            return self.pull()
        except StopIteration:
            self.done = True
            raise

    def display(self) -> str:
        return "<iter (exhausted)>" if self.done else "<iter>"

    def equals(self, other: Iter) -> bool:
        return self is other


class Generator(Iter):
    """The result of a `fn` with `yield`."""

    __slots__ = ("wait",)
    type_name = "generator"
    #: Gives way to other tasks: one of them is pulling at this moment, and waits in the body.
    wait: Callable[[], object]

    def __next__(self) -> Value:
        while True:
            if self.done:
                raise StopIteration
            try:
                return self.pull()
            except StopIteration:
                self.done = True
                raise
            except ValueError as error:
                if "already executing" not in str(error):
                    raise
                self.wait()

    def display(self) -> str:
        return f"<{self.type_name} (done)>" if self.done else f"<{self.type_name}>"

    def equals(self, _: Iter) -> bool:
        return False


class Stream(Generator):
    """The result of a `gen fn` or `parallel each … as stream`."""

    __slots__ = ()
    type_name = "stream"


class Fn:
    """A Harn function or closure.

    ``body(depth, *args)`` runs it and may return ``TAIL`` (a tail call to make next); ``call`` has the
    same parameters and never does. Both take exactly ``arity`` arguments or fewer (missing ones read
    nil or their default). With ``rest`` the last parameter takes a list and ``arity`` is -1, so that
    no caller takes the short way. ``by_name``: it is the body of a `tool` declaration, which agents call with
    their arguments by name, and not with one dict of them (07 §4.3). ``fast`` and ``fast_body`` are ``call``
    and ``body`` for arguments of the kinds that callers in its file know, who may write it out in place of a
    call if it is ``inlinable``; other functions don't have these three.
    """

    __slots__ = (
        "arity", "body", "by_name", "call", "fast", "fast_body", "inlinable", "name", "params", "rest"
    )  # fmt: skip
    fast: Callable[..., Value]
    fast_body: Callable[..., Value]
    inlinable: bool
    type_name = "closure"

    def __init__(
        self,
        name: str | None,
        params: tuple[str, ...],
        body: Callable[..., Value],
        rest: bool = False,
        call: Callable[..., Value] | None = None,
    ) -> None:
        self.name = name
        self.params = params
        self.rest = rest
        self.arity = -1 if rest else len(params)
        self.body = body
        self.call = call or body
        self.by_name = False

    def display(self) -> str:
        return f"<fn({', '.join(self.params)})>"


class Builtin:
    """A builtin used as a value. ``call(vm, *args)`` is already lenient in what it is given."""

    __slots__ = ("call", "max_args", "name")
    type_name = "builtin"

    def __init__(self, name: str, call: Callable[..., Value], max_args: int | None) -> None:
        self.name = name
        self.call = call
        self.max_args = max_args

    def display(self) -> str:
        return f"<builtin {self.name}>"

    def parts(self) -> tuple[str]:
        return (self.name,)


class TaskHandle:
    """The result of `spawn`: the scheduler's record of a task, made by `harnpy.vm.run.tasks.new_task`."""

    __slots__ = ("index",)
    type_name = "task_handle"

    index: int

    def handle_id(self) -> str:
        return f"vm_task_{self.index}"

    def display(self) -> str:
        return f"<task:{self.handle_id()}>"

    def parts(self) -> tuple[int]:
        return (self.index,)


class Atomic:
    __slots__ = ("value",)
    type_name = "atomic"

    def __init__(self, value: int) -> None:
        self.value = value

    def display(self) -> str:
        return f"<atomic:{self.value}>"

    def parts(self) -> tuple[int]:
        return (self.value,)


class Rng:
    """A seeded random generator handle."""

    __slots__ = ("random",)
    type_name = "rng"

    def __init__(self, random: Any) -> None:
        self.random = random

    def display(self) -> str:
        return "<rng>"
