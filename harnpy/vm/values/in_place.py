"""Copy-on-write that copies only when another holder could see the change. Spec: 02 §8.

Harn's lists and dicts are values: assigning to a part of one rebinds the variable to an updated copy.
When the variable is the only holder the copy would be garbage at once, so the object itself is
updated. CPython's reference count shows this: every alias (another variable, a container, a captured value,
a running loop, an argument) is a counted reference. How many references a sole holder shows depends on
the interpreter, so the two constants are measured here, through the code shapes that use them.
"""

from __future__ import annotations

from sys import getrefcount

from harnpy.vm.values.objects import Struct, display
from harnpy.vm.values.operators import get_prop, index, set_index, set_prop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Path = tuple[tuple[str, Any], ...]


def _held() -> int:
    fresh: list[int] = []
    return getrefcount(fresh)


def _received(value: list[int]) -> int:
    return getrefcount(value)


def _passed() -> int:
    fresh: list[int] = []
    return _received(fresh)


def _element() -> int:
    outer: list[list[int]] = [[]]
    fresh = outer[0]
    return getrefcount(fresh)


def _received_element(outer: list[list[int]], value: list[int]) -> int:
    part = outer[0]
    return getrefcount(value if part is value else None)


def _passed_element() -> int:
    outer: list[list[int]] = [[]]
    fresh = outer[0]
    return _received_element(outer, fresh)


#: What `getrefcount(x)` returns when the local variable ``x`` is the only holder …
SOLE = _held()
#: … when that variable was also passed on to the function that calls it …
_SOLE_PASSED = _passed()
#: … when a container holds the object and a variable was set to it …
_SOLE_ELEMENT = _element()
#: … and when that variable was passed on to the function that asks, which has looked at the element, too.
_SOLE_PASSED_ELEMENT = _passed_element()


def store_path(root: Any, path: Path, value: Any) -> Any:
    """``root`` with the place that ``path`` leads to set to ``value``; ``x = store_path(x, …)``."""
    sole = getrefcount(root) == _SOLE_PASSED
    return _store(root, path, 0, value, sole)


def sole_holder(root: Any, path: Path, value: Any) -> Any:
    """What holds ``value`` at the place that ``path`` leads to, if nothing else holds it; otherwise None.

    Nothing else: the variable passed as ``root`` and each container on the way are the only holders of what
    is below them, and besides the place only the variable passed as ``value`` holds it. So nobody can tell
    whether the value is changed or a changed copy takes its place.
    """
    if getrefcount(root) != _SOLE_PASSED:
        return None
    holder = root
    for kind, key in path[:-1]:
        holder = _stored(holder, kind, key)
        if getrefcount(holder) != _SOLE_ELEMENT:
            return None
    part = _stored(holder, *path[-1])
    return holder if part is value and getrefcount(value) == _SOLE_PASSED_ELEMENT else None


def _stored(holder: Any, kind: str, key: Any) -> Any:
    """What is stored in ``holder`` under ``key``; None for what is not, or computed."""
    if kind == "index" and type(holder) is dict and type(key) is not str:
        key = display(key)
    if not _plain(holder, kind, key):
        return None
    return holder[key] if type(holder) is list else holder.get(key)


def _store(holder: Any, path: Path, at: int, value: Any, sole: bool) -> Any:
    kind, key = path[at]
    if at < len(path) - 1:
        child = _read(holder, kind, key)
        child_sole = getrefcount(child) == _SOLE_ELEMENT
        # Only what is stored in the holder under this very key may change in it: `xs.first` is a copy.
        child_sole = child_sole and sole and _plain(holder, kind, key)
        updated = _store(child, path, at + 1, value, child_sole)
        if updated is child:
            return holder
        value = updated
    if sole and _plain(holder, kind, key):
        holder[key] = value
        return holder
    return set_prop(holder, key, value) if kind == "prop" else set_index(holder, key, value)


def _plain(holder: Any, kind: str, key: Any) -> bool:
    """Whether ``holder[key] = value`` in Python is what the assignment means."""
    if type(holder) is list:
        return kind == "index" and type(key) is int and 0 <= key < len(holder)
    if type(holder) is Struct:
        return kind == "prop"
    return type(holder) is dict and type(key) is str


def read_path(root: Any, path: Path) -> Any:
    """The value at the place that ``path`` leads to."""
    for kind, key in path:
        root = _read(root, kind, key)
    return root


def _read(holder: Any, kind: str, key: Any) -> Any:
    return get_prop(holder, key) if kind == "prop" else index(holder, key)
