"""What an effect came to, as JSON and back: any value that comes through the door to the world, or an error.

What JSON has is written as it is. All else is a dict with one key that begins with ``$``: bytes, a text that
JSON can't hold, a tuple, a set, a dict with other keys, a number that is no JSON number, an object of a class
that says how it is made again (`object.__reduce_ex__`), as errors do. A record can name such a class, but no
other: what it names is neither imported nor called.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from hashlib import sha256
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from harnpy.workflow.engines.contract import Json

    class Masking(Protocol):
        """What is written for others: without secrets."""

        def text(self, text: str) -> str:
            """Return ``text`` without them."""

        def data(self, data: bytes) -> bytes:
            """Return ``data`` without them."""


#: Integers within are JSON numbers everywhere.
_MOST = 2**63 - 1
#: Where classes of values are, beside `os.stat_result`; of those only what holds data is made again.
_ROOM, _VALUES = "harnpy.", "harnpy.vm.values"
_PLAIN = frozenset({"harnpy.world.processes:Ended", "harnpy.world.files:Entry"})
#: Modules, beside ours, whose errors a program's builtins tell apart.
_ERRORS = frozenset({"builtins", "socket", "ssl", "httpx2", "httpcore2"})


class Unrecordable(Exception):
    """A value that can't be written down; the text says which."""


class Unreadable(Exception):
    """A record that `encode` and `encode_error` haven't written, or not those of this version."""


def encode(value: Any, *, utf8: bool = False) -> Json:
    """Return ``value`` as JSON that `decode` reads. Raises `Unrecordable`.

    ``utf8``: bytes that are text are written as text, which builds before tapes don't read.
    """
    match value:
        case None | bool():
            return value
        case str() if type(value) is str:
            return value if _is_text(value) else {"$text": _base64(value.encode("utf-8", "surrogatepass"))}
        case int() if type(value) is int:
            return value if -_MOST <= value <= _MOST else {"$int": str(value)}
        case float() if type(value) is float:
            return value if isfinite(value) else {"$float": repr(value)}
        case bytes():
            text = _text_of(value) if utf8 else None
            return {"$bytes": _base64(value)} if text is None else {"$utf8": text}
        case list() if type(value) is list:
            return [encode(item, utf8=utf8) for item in value]
        case dict() if type(value) is dict:
            return _encode_dict(value, utf8)
        case tuple() if type(value) is tuple:
            return {"$tuple": [encode(item, utf8=utf8) for item in value]}
        case set() | frozenset():
            return {"$set": [encode(item, utf8=utf8) for item in sorted(value, key=repr)]}
    return _encode_object(value, utf8)


def decode(written: Json) -> Any:
    """Return the value that `encode` wrote. Raises `Unreadable`."""
    if type(written) is list:
        return [decode(item) for item in written]
    if type(written) is not dict:
        return written
    if len(written) != 1 or not next(iter(written)).startswith("$"):
        return {key: decode(item) for key, item in written.items()}
    ((kind, inner),) = written.items()
    match kind:
        case "$text":
            return b64decode(inner).decode("utf-8", "surrogatepass")
        case "$int" | "$float":
            return int(inner) if kind == "$int" else float(inner)
        case "$bytes":
            return b64decode(inner)
        case "$utf8":
            return inner.encode()
        case "$tuple":
            return tuple(decode(item) for item in inner)
        case "$set":
            return {decode(item) for item in inner}
        case "$dict":
            return {decode(key): decode(item) for key, item in inner}
        case "$object":
            return _decode_object(*inner)
    raise Unreadable(f"it has {kind}, which this version of harnpy doesn't know")


#: The longest text that is told as it is, and how much of a longer one is told.
_MOST_TOLD, _TOLD = 200, 60


#: By what secrets are masked in what is told meanwhile: digests of masked texts agree in a replay.
MASKING: ContextVar[Masking | None] = ContextVar("masking", default=None)


def told(value: Any) -> Json:
    """Return ``value`` as JSON by which people and programs tell it from others, in few bytes.

    A long text is its beginning, its size and a digest; what isn't data is told by its class.
    """
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            masking = MASKING.get()
            text = str(value) if masking is None else masking.text(str(value))
            if len(text) <= _MOST_TOLD:
                return encode(text)
            return {**_sum_of(text.encode("utf-8", "surrogatepass")), "begins": encode(text[:_TOLD])}
        case bytes():
            masking = MASKING.get()
            return _sum_of(value if masking is None else masking.data(value))
        case list() | tuple():
            return [told(item) for item in value]
        case dict():
            return {str(key): told(item) for key, item in value.items()}
    return {"class": type(value).__name__}


def told_without_secrets(asked: Callable[[], Json], masking: Masking | None) -> Json:
    """Return what ``asked()`` returns, where all that it tells is masked."""
    token = MASKING.set(masking)
    try:
        return asked()
    finally:
        MASKING.reset(token)


def _sum_of(data: bytes) -> dict[str, Json]:
    return {"size": len(data), "sha256": sha256(data).hexdigest()[:16]}


def _is_text(value: str) -> bool:
    """Return whether every store of JSON takes a text: none takes lone surrogates, PostgreSQL no NUL."""
    if value.isascii():
        return "\0" not in value
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _text_of(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if "\0" not in text else None


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _encode_dict(value: dict[Any, Any], utf8: bool) -> Json:
    plain = all(type(key) is str and _is_text(key) for key in value)
    if plain and not (len(value) == 1 and next(iter(value)).startswith("$")):
        return {key: encode(item, utf8=utf8) for key, item in value.items()}
    return {"$dict": [[encode(key), encode(item, utf8=utf8)] for key, item in value.items()]}


def _encode_object(value: Any, utf8: bool) -> Json:
    cls = type(value)
    if not _is_data(cls):
        raise Unrecordable(f"a {cls.__name__}")
    try:
        made, arguments, *rest = value.__reduce_ex__(2)
    except (TypeError, ValueError):
        raise Unrecordable(f"a {cls.__name__}") from None
    state = rest[0] if rest else None
    if utf8 and is_dataclass(cls) and type(state) is tuple and state[0] is None:
        state = None, _unusual(cls, state[1])
    if made is not cls:  # `copyreg.__newobj__`, which is given the class
        arguments = arguments[1:]
    return {
        "$object": [_name(cls), made is cls, encode(list(arguments), utf8=utf8), encode(state, utf8=utf8)]
    }


def _unusual(cls: Any, slots: dict[str, Any]) -> dict[str, Any]:
    """Return those of a dataclass's values that aren't its defaults, which `_decode_object` puts in again."""
    usual = _usual(cls)
    return {
        key: item
        for key, item in slots.items()
        if type(item) is not type(usual.get(key, MISSING)) or item != usual[key]
    }


@cache
def _usual(cls: Any) -> dict[str, Any]:
    return {each.name: _default(each) for each in fields(cls)}


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _decode_object(name: str, is_called: bool, arguments: Json, state: Json) -> Any:
    cls = _class(name, _is_data)
    given, held = decode(arguments), decode(state)
    try:
        value = cls(*given) if is_called else cls.__new__(cls, *given)
        _restore(value, held)
    except (AttributeError, TypeError, ValueError) as error:
        raise Unreadable(f"what it has of a {name} is none") from error
    if is_dataclass(cls) and not is_called:
        for each in fields(cls):
            if not hasattr(value, each.name):
                object.__setattr__(value, each.name, _default(each))
    return value


def _restore(value: Any, state: Any) -> None:
    if type(state) is list:  # so a frozen dataclass with slots gives its fields
        state = None, dict(zip((each.name for each in fields(value)), state, strict=False))
    inner, slots = state if type(state) is tuple else (state, None)
    for each in (inner, slots):
        for key, item in (each or {}).items():
            object.__setattr__(value, key, item)


def _name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _is_data(cls: type) -> bool:
    """Return whether objects of the class are written down and made again."""
    if cls is os.stat_result:
        return True
    holds = issubclass(cls, tuple | Enum | Exception) or is_dataclass(cls) or cls.__module__ == _VALUES
    return (holds or _name(cls) in _PLAIN) and _is_ours(cls)


def _is_error(cls: type) -> bool:
    """Return whether errors of the class are made again."""
    is_known = _is_ours(cls) or cls.__module__ in _ERRORS
    return is_known and issubclass(cls, Exception) and "<locals>" not in cls.__qualname__


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith(_ROOM) and "<locals>" not in cls.__qualname__


def _class(name: str, is_allowed: Callable[[type], bool]) -> Any:
    """Return the class of that name. Raises `Unreadable` for anything else, and imports nothing for it."""
    module, _, path = name.partition(":")
    if module.startswith(_ROOM) or module in _ERRORS or name == _name(os.stat_result):
        found: Any = None
        with suppress(ImportError, AttributeError):
            found = import_module(module)
            for part in path.split("."):
                found = getattr(found, part)
        if isinstance(found, type) and _name(found) == name and is_allowed(found):
            return found
    raise Unreadable(f"it names {name}, which is no class that records hold")


# Errors: their class, what they were made with and what they hold, and what they come from.


def encode_error(error: BaseException) -> Json:
    """Return an error as JSON: what it is and says for people, and what `decode_error` makes it of again.

    Parts that can't be written down are left out; an error of a class that isn't made again is one of the
    nearest class above that is.
    """
    cls = next((each for each in type(error).__mro__ if _is_error(each)), Exception)
    written: dict[str, Json] = {"type": _name(cls), "message": _shown(error)}
    category = getattr(error, "category", None)
    if isinstance(category, str):
        written["category"] = category
    made = error.__reduce__()
    arguments = made[1] if isinstance(made, tuple) and type(made[1]) is tuple else error.args
    if cls is not type(error) and not isinstance(error, OSError | UnicodeError | ExceptionGroup):
        arguments = (_shown(error),)
    written["args"] = [_or_text(item) for item in arguments]
    state = {key: item for key, item in vars(error).items() if _can(item)}
    if state:
        written["state"] = encode(state)
    for key, source in (("cause", error.__cause__), ("context", error.__context__)):
        if isinstance(source, Exception) and (key == "cause" or source is not error.__cause__):
            written[key] = encode_error(source)
    return written


def decode_error(written: Json) -> Exception:
    """Return the error that `encode_error` wrote, to be raised. Raises `Unreadable`."""
    cls = _class(written["type"], _is_error)
    arguments = tuple(decode(item) for item in written["args"])
    # A class of Python's own is made by its arguments alone; others may want more than they pass on.
    error: Exception | None = (
        cls(*arguments) if cls.__init__ in _OWN_MAKERS or cls.__module__ == "builtins" else None
    )
    if error is None:
        error = cls.__new__(cls, *arguments)
        error.args = arguments
    for key, item in decode(written.get("state") or {}).items():
        object.__setattr__(error, key, item)
    if "context" in written:
        error.__context__ = decode_error(written["context"])
    if "cause" in written:
        error.__cause__ = decode_error(written["cause"])
    return error


_OWN_MAKERS = frozenset({Exception.__init__, BaseException.__init__, OSError.__init__})


def _shown(error: BaseException) -> str:
    text = str(error)
    return text if _is_text(text) else ascii(text)


def _can(value: Any) -> bool:
    try:
        encode(value)
    except Unrecordable:
        return False
    return True


def _or_text(value: Any) -> Json:
    return encode(value) if _can(value) else encode(str(value))
