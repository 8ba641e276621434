"""Checking the arguments of the session API: ids, counts, texts, choices. Spec: 10 §C3, §C11."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from harnpy.faults import paced
from harnpy.session.errors import EventRejected, InvalidArgument, InvalidSessionId

if TYPE_CHECKING:
    from collections.abc import Iterator

# Which ids sessions on a store may have. Spec: 10 §C3.


#: The most characters of an id.
LONGEST = 200
_STRICT = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]*")


def validate_session_id(id: str, *, strict: bool = False) -> None:
    """Raise `InvalidSessionId` for an id that is blank, too long or no Unicode, or has control characters.

    If ``strict``, also for one that isn't of ASCII letters and digits, behind the first also ``_`` and ``-``.
    """
    if not isinstance(id, str):
        raise InvalidSessionId(id)
    if len(id) > LONGEST:
        raise InvalidSessionId(id)
    control = any(ord(c) < 32 or 127 <= ord(c) < 160 for c in id)
    is_text = bool(id.strip()) and not control and _is_text(id)
    if not is_text or (strict and not _STRICT.fullmatch(id)):
        raise InvalidSessionId(id)


# What may be appended: JSON and nothing else, the same for every store. Spec: 10 §C3.4.


DEEPEST = 512

_MINIMUM, _MAXIMUM = -(2**63), 2**63 - 1
_INFINITY = float("inf")


def checked(value: Any, part: str = "data") -> Any:
    """Return ``value`` as it may be stored: itself, or a copy in which lone surrogates are U+FFFD.

    Raises `EventRejected` when it isn't JSON; ``part`` says of what it is the value.
    """
    if type(value) is dict:
        for key, item in value.items():  # most are flat
            kind = type(item)
            if type(key) is not str or not key.isascii():
                break
            if kind is str:
                if not (item.isascii() or _is_text(item)):
                    break
            elif item is not None and kind is not bool and not (kind is int and _MINIMUM <= item <= _MAXIMUM):
                break
        else:
            return value
    return value if _is_plainly_clean(value) or _is_clean(value, part) else _mended(value)


def _is_plainly_clean(value: Any) -> bool:
    """Return whether a small value is clean, at a glance. False: look closer."""
    found = [value]
    for item in found:
        kind = type(item)
        if kind is str:
            if not (item.isascii() or _is_text(item)):
                return False
            continue
        if (kind is dict or kind is list) and len(found) + len(item) > DEEPEST:
            return False  # long, or nested too deeply
        if kind is dict:
            for key in item:
                if type(key) is not str:
                    return False
            found += item
            found += item.values()
        elif kind is list:
            found += item
        elif kind is int:
            if not _MINIMUM <= item <= _MAXIMUM:
                return False
        elif not (item is None or kind is bool or _is_scalar(item, kind)):
            return False
    return True


def _is_clean(value: Any, part: str) -> bool:
    """Check every part of ``value``; return whether no text in it needs mending.

    Not recursive: a value may be as deep as the stack is not.
    """
    clean = True
    outer: list[Iterator[tuple[Any, Any]]] = []
    path: list[Any] = []  # the step to each container in `outer`
    current: Iterator[tuple[Any, Any]] = iter([(None, value)])
    while True:
        for step, item in current:
            kind = type(item)
            if kind is str:
                clean = clean and _is_text(item)
            elif kind is dict or kind is list:
                if len(path) == DEEPEST:
                    what = "a cycle" if _is_cyclic(value) else f"nesting deeper than {DEEPEST}"
                    raise EventRejected.not_json(part, what, _pointer([*path, step]))
                outer.append(current)
                path.append(step)
                if kind is dict:
                    clean &= _has_good_keys(item, part, path)
                    current = iter(item.items())
                else:
                    current = iter(enumerate(item))
                break
            elif not _is_scalar(item, kind):
                raise EventRejected.not_json(part, _name(item), _pointer([*path, step]))
        else:
            if not outer:
                return clean
            current = outer.pop()
            path.pop()


def _is_scalar(item: Any, kind: type) -> bool:
    if item is None or kind is bool:
        return True
    if kind is int:
        return bool(_MINIMUM <= item <= _MAXIMUM)
    return kind is float and -_INFINITY < item < _INFINITY


def _has_good_keys(item: dict[Any, Any], part: str, path: list[Any]) -> bool:
    """Return whether no key needs mending. Raises `EventRejected` for a key that isn't text."""
    for key in item:
        if type(key) is not str:
            raise EventRejected.not_json(part, f"key of type {type(key).__name__}", _pointer(path))
    return all(map(_is_text, item))


def _is_text(text: str) -> bool:
    """Return whether ``text`` has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _mended(value: Any) -> Any:
    """A copy of ``value`` with U+FFFD for each lone surrogate."""
    if type(value) is str:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if type(value) is dict:
        return {_mended(key): _mended(item) for key, item in paced([*value.items()])}
    if type(value) is list:
        return [_mended(item) for item in paced(value)]
    return value


def _pointer(path: list[Any]) -> str:
    """A JSON pointer; the first step leads to the whole value."""
    return "".join(f"/{_as_text(step).replace('~', '~0').replace('/', '~1')}" for step in path[1:])


def _as_text(step: str | int) -> str:
    return str(_mended(step))


def _name(item: Any) -> str:
    if type(item) is int:
        return "integer out of range"
    if type(item) is float:
        return "NaN" if item != item else "Infinity"
    return type(item).__name__


def _is_cyclic(value: Any) -> bool:
    """Return whether ``value`` contains itself. Asked only of what is nested too deeply."""
    path: set[int] = set()
    done: set[int] = set()
    waiting = [(value, False)]
    while waiting:
        item, is_left = waiting.pop()
        if is_left:
            path.discard(id(item))
            done.add(id(item))
        elif type(item) in (dict, list) and id(item) not in done:
            if id(item) in path:
                return True
            path.add(id(item))
            waiting.append((item, True))
            waiting += [(inner, False) for inner in (item.values() if type(item) is dict else item)]
    return False


# What callers give, read: each function returns it as it may be used, or raises `InvalidArgument`.
#
# What belongs in a log as a text of its own (a key, a label) is mended as all that is appended. Spec: 10
# §C3.4.


T = TypeVar("T")


def text(name: str, value: Any) -> str:
    """Return a text, with U+FFFD for each lone surrogate."""
    mended: str = checked(instance(name, value, str, "a text"))
    return mended


def optional_text(name: str, value: Any) -> str | None:
    return None if value is None else text(name, value)


def count(name: str, value: Any, least: int = 0) -> int:
    """Return an int that isn't smaller than ``least``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArgument(f"`{name}` must be an int >= {least}, got {value!r}")
    return value


def seconds(name: str, value: Any) -> float:
    """Return a number that isn't negative; a timedelta is one."""
    if hasattr(value, "total_seconds"):
        value = value.total_seconds()
    if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
        raise InvalidArgument(f"`{name}` must be a number of seconds >= 0, got {value!r}")
    return value


def optional_seconds(name: str, value: Any) -> float | None:
    return None if value is None else seconds(name, value)


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Return a mapping, an empty one for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"`{name}` must be a dict, got {type(value).__name__}")
    return value


def items(name: str, value: Any) -> Iterable[Any]:
    """Return what can be iterated, and is no text."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidArgument(f"`{name}` must be a list, got {type(value).__name__}")
    return value


def function(name: str, value: Any) -> None:
    if not callable(value):
        raise InvalidArgument(f"`{name}` must be a function, got {type(value).__name__}")


def instance(name: str, value: Any, kind: type[T], called: str = "") -> T:
    """Return a value of that class, which is ``called`` so in the error."""
    if not isinstance(value, kind):
        wanted = called or f"a {kind.__name__}"
        raise InvalidArgument(f"`{name}` must be {wanted}, got {type(value).__name__}")
    return value


def types(given: Any) -> frozenset[str]:
    """Return types of events. A single text would be read as its letters."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidArgument(f"`types` must be a list of event types, got {given!r}")
    return frozenset(map(str, given))


def session_id(value: Any) -> str:
    """Return an id to look for. Raises `InvalidSessionId` for what isn't text."""
    if not isinstance(value, str):
        raise InvalidSessionId(value)
    return value


def check_session(value: Any) -> None:
    """Make sure that a function gets a session: no id, and none of `harnpy.session.aio`."""
    if not hasattr(value, "stream"):
        raise InvalidArgument(f"`session` must be a Session, got {type(value).__name__}")
