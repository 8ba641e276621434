"""Arguments as far as a check knows them, and what a reader says of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from harnpy.check.agents import REST
from harnpy.faults import Fault
from harnpy.syntax import ast
from harnpy.vm.errors import Thrown, VmError
from harnpy.vm.values import Duration, Fn, display

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Any

    Dict = dict[str, Any]
    #: Reads options as the run does, or some of them. Raises a `Fault` or a VmError for what it refuses.
    Reader = Callable[[Dict], object]


#: Any expression will do.
_UNKNOWN = ast.Name(0, 0, "")


class Refusal(NamedTuple):
    """A reader's message about the value at ``path``."""

    path: tuple[str | int, ...]
    message: str


def without_rest(value: Any) -> Any:
    """Return ``value`` without what is spread into its dicts, which may be anything."""
    if type(value) is dict:
        return {key: without_rest(item) for key, item in value.items() if key != REST}
    if type(value) is list:
        return [without_rest(item) for item in value]
    return value


def is_known(value: Any) -> bool:
    """Return true if all of a value is written out."""
    if isinstance(value, ast.Node):
        return type(value) in (ast.Duration, ast.Closure, ast.FnExpr)
    if type(value) is dict:
        return REST not in value and all(map(is_known, value.values()))
    return type(value) is not list or all(map(is_known, value))


def known(given: Dict, keys: Collection[str]) -> Dict:
    """Return the options of ``keys`` whose values are written out, as the run would get them."""
    return {key: as_run(value) for key, value in given.items() if key in keys and is_known(value)}


def as_run(value: Any) -> Any:
    """Return a known value as the run has it: durations and closures are no nodes there."""
    if type(value) is dict:
        return {key: as_run(item) for key, item in value.items()}
    if type(value) is list:
        return [as_run(item) for item in value]
    if type(value) is ast.Duration:
        return Duration(value.ms)
    if isinstance(value, ast.Closure | ast.FnExpr):
        return Fn("", tuple(param.name for param in value.params), _never)
    return value


def refusals(function: str, reader: Reader, given: Dict) -> Iterator[Refusal]:
    """Yield what ``reader``, of the builtin ``function``, refuses for a reason that is in one entry alone.

    An entry that is fine alone, or is only refused as another is missing, may be given what it needs
    by what isn't known.
    """
    says = partial(_message, function, reader)
    message = says(given)
    if message is None or says({}) is not None:
        return
    while message is not None:
        path = _refused(says, given, message)
        if not path:
            return
        yield Refusal(path, message)
        given = _without(given, path[0])
        message = says(given)


def _refused(says: Callable[[Any], str | None], given: Dict, message: str) -> tuple[str | int, ...]:
    for key, value in given.items():
        if says({key: value}) == message:
            return (key, *_inner(_of_part(says, {}, key), message, value))
    return ()


def part_refused(function: str, reader: Callable[[Any], object], given: Any) -> Refusal | None:
    """Return what ``reader`` refuses of a value that is written out whole, and the part that it is about."""
    says = partial(_message, function, reader)
    message = says(given)
    return None if message is None else Refusal(_inner(says, message, given), message)


def _inner(says: Callable[[Any], str | None], message: str, value: Any) -> tuple[str | int, ...]:
    """Return the way to the part of ``value`` that a message is about, () when it is about all of it."""
    step = _culprit(says, message, value)
    if step is not None:
        return (step, *_inner(_of_part(says, value, step), message, value[step]))
    for step, item in _steps(value):
        found = _inner(_of_part(says, value, step), message, item)
        if found:
            return (step, *found)
    return ()


def _culprit(says: Callable[[Any], str | None], message: str, value: Any) -> Any:
    """Return the entry of ``value`` without which the reader doesn't say that; of several, the likeliest.

    Without an item of a list, messages that count the items are others for that alone.
    """
    if type(value) is list:
        return next((step for step, _ in _steps(value) if says(_without(value, step)) is None), None)
    best, weight = None, -1
    for step, item in _steps(value):
        left = says(_without(value, step))
        likely = 2 * (left is None) + 2 * (display(item) in message) + (step in message)
        if left != message and likely > weight:
            best, weight = step, likely
    return best


def _of_part(says: Callable[[Any], str | None], value: Any, step: Any) -> Callable[[Any], str | None]:
    """Return what the reader says of ``value`` with another part at ``step``."""
    return lambda other: says(_with(value, step, other))


def unknown_at(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return ``value``, of which nobody knows what is at ``path``."""
    if not path:
        return _UNKNOWN
    return _with(value, path[0], unknown_at(value[path[0]], path[1:]))


def _steps(value: Any) -> list[tuple[Any, Any]]:
    if type(value) is dict:
        return list(value.items())
    return list(enumerate(value)) if type(value) is list else []


def _without(value: Any, step: Any) -> Any:
    if type(value) is dict:
        return {key: item for key, item in value.items() if key != step}
    return [*value[:step], *value[step + 1 :]]


def _with(value: Any, step: Any, item: Any) -> Any:
    if type(value) is dict:
        return {**value, step: item}
    return [*value[:step], item, *value[step + 1 :]]


def _message(function: str, reader: Callable[[Any], object], given: Any) -> str | None:
    """Return the message of what a reader raises, None if it accepts what is given."""
    try:
        reader(given)
    except Fault as fault:
        return fault.message_from(function)
    except Thrown as error:
        value = error.value
        return str(value["message"]) if type(value) is dict and "message" in value else error.message
    except VmError as error:
        return error.message
    return None


def _never(*args: Any) -> Any:
    raise AssertionError("a closure that is only written out was called")
