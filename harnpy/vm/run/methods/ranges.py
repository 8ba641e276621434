"""Methods of ranges that need no iteration; all others go to an iterator. Spec: 02 §16, 04 §8."""

from __future__ import annotations

from harnpy.vm.declare.builtin import method
from harnpy.vm.values.objects import Range, display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.vm import Vm


@method("range", "len() -> int")
@method("range", "count() -> int")
def count(vm: Vm, self: Range) -> int:
    """The number of items, none when the bounds are reversed.

    Example:
        (1 to 3).len()  // 3
    """
    return self.size


@method("range", "empty() -> bool")
def empty(vm: Vm, self: Range) -> bool:
    """Whether there is no item.

    Example:
        range(0).empty()  // true
    """
    return self.size == 0


@method("range", "contains(v) -> bool")
def contains(vm: Vm, self: Range, v: Any) -> bool:
    """Whether `v` is an int inside the range.

    Example:
        (1 to 3).contains(3)  // true
    """
    return v in self


@method("range", "first() -> int | nil")
def first(vm: Vm, self: Range) -> int | None:
    """The first item, nil when there is none.

    Example:
        (3 to 5).first()  // 3
    """
    return self.at(0)


@method("range", "last() -> int | nil")
def last(vm: Vm, self: Range) -> int | None:
    """The last item, nil when there is none.

    Example:
        (3 to 5).last()  // 5
    """
    return self.stop - 1 if self.size else None


@method("range", "to_string() -> string")
def to_string(vm: Vm, self: Range) -> str:
    """The range as it is written.

    Example:
        (1 to 3).to_string()  // "1 to 3"
    """
    return display(self)
