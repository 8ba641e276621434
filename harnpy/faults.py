"""The words of failure that every room shares, and the look at whether to stop.

    Fault                  a call failed; `str()` is the message
    ├─ OptionError         the options or arguments ask for something that can't be done
    ├─ MisuseError         a function was called wrongly
    ├─ NamedFault          its message begins with the name of the builtin that was called
    │  └─ NamedMisuse      a misuse likewise
    └─ CategorizedError    the call failed for a reason that has a name: `.category`
    Interruption           the task must stop; not a failure, so `except Exception` does not catch it
    TooLarge               a result has become too large to go on with

A package derives its own errors from these. What a builtin raises reaches the program as a Harn error, and
only the class decides which: `MisuseError` becomes a runtime error, `CategorizedError` an error with its
category, an `Interruption` what caused it, and every other `Fault` is thrown: as its message, unless the
class has another value. Spec: 02 §19.1.
"""

from __future__ import annotations

import sys
from _contextvars import ContextVar  # which `contextvars` only renames: this is on the path of every start
from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    Part = TypeVar("Part")
    Data = TypeVar("Data", bytes, str, Sequence[Any])


def shape_problem(error: Exception) -> str:
    """Return what an error of reading somebody's data says of the data, which isn't as it should be.

    Python's texts differ between its releases; those of ours are `ValueError`s or `Fault`s.
    """
    if isinstance(error, KeyError):
        return f"it has no `{error.args[0]}`" if error.args else "a part is missing"
    if isinstance(error, TypeError | AttributeError | LookupError):
        return "a part of it is of another type"
    return str(error)


def is_cancelled(error: BaseException) -> bool:
    """Return whether an error is asyncio's cancellation of a task.

    Most programs have none, and load no asyncio: that takes longer than everything else of a session's.
    """
    loaded = sys.modules.get("asyncio.exceptions")
    return loaded is not None and isinstance(error, loaded.CancelledError)


class Fault(Exception):
    """A call failed, and ``message`` says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message

    def message_from(self, builtin: str) -> str:
        """Return the message for when ``builtin`` reports the fault; a class may put the name into it."""
        return self.message

    def caught_from(self, builtin: str) -> object:
        """Return what a program catches when ``builtin`` throws the fault; a class may have more to say."""
        return self.message_from(builtin)


class OptionError(Fault):
    """Options or arguments that can't be used."""


class MisuseError(Fault):
    """A function was called wrongly."""


class NamedFault(Fault):
    """A failure that is reported in the name of the builtin that was called: ``ed25519_sign: …``."""

    def message_from(self, builtin: str) -> str:
        return f"{builtin}: {self.message}"


class NamedMisuse(NamedFault, MisuseError):
    """A misuse that is reported in the name of the builtin that was called: ``zip_extract: …``."""


class CategorizedError(Fault):
    """A failure with a category that programs can match on."""

    def __init__(self, category: str, message: str) -> None:
        super().__init__(message)
        self.category = category

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.category, self.message), self.__dict__


class TooLarge(MemoryError):
    """A result has become larger than it may be; ``size`` says how large ("N characters")."""

    def __init__(self, size: str, most: int) -> None:
        super().__init__(f"result too large: {size}, and at most {most} are allowed")


class Interruption(BaseException):
    """Raised by a callback whose task must stop; ``__cause__`` is what stops it.

    A `BaseException`: code that tolerates failing callbacks must not catch it.
    """


# Long work looks up now and then, whether it must stop: once for each part with parts, and after every so
# many items of one. Whoever runs a task says in its context what a look does. Spec: 05 §9.


#: Raises what is due in the running task, which has done work on so many items; None where nothing can be.
LOOK: ContextVar[Callable[[int], object] | None] = ContextVar("look", default=None)
#: Items between two looks.
BATCH = 256
#: What a part costs, be it empty, in items.
_PART = 32


def look(items: int = BATCH) -> None:
    """Raise what is due in the running task, after work on so many items."""
    now = LOOK.get()
    if now is not None:
        now(items)


def pieces(data: Data, size: int = BATCH) -> Iterator[Data]:
    """Yield ``data`` in pieces of that size, with a look before each."""
    for at in range(0, len(data), size):
        look()
        yield data[at : at + size]


def paced(items: Sequence[Part]) -> Iterable[Part]:
    """Return the items, with a look at the beginning and after every `BATCH` of them."""
    now = LOOK.get()
    if now is not None:
        count = len(items)
        if count > BATCH:
            return chain.from_iterable(pieces(items))
        now(count + _PART)
    return items


def watched(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield what ``parts`` yields, with a look at each."""
    for part in parts:
        look()
        yield part
