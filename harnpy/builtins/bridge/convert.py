"""Errors of the domain packages to errors of Harn, in one place.

    with domain_errors:
        return vm.sessions.length(id)

| raised                                | becomes                             |
|---------------------------------------|-------------------------------------|
| `SessionError`, `OptionError`         | a thrown string                     |
| `ResizeError`, `MisuseError`          | a runtime error                     |
| `CallError`                           | an error with the call's category   |
| `Interruption`                        | the interruption that it stands for |
"""

from __future__ import annotations

from harnpy.llm.errors import CallError, MisuseError, OptionError
from harnpy.session.errors import Interruption, ResizeError, SessionError
from harnpy.vm.errors import CategorizedFault, RuntimeFault, Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


class _DomainErrors:
    """Not a generator: this stands around every call on the hot path."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            return
        if isinstance(error, Interruption) and error.__cause__ is not None:
            raise error.__cause__
        if isinstance(error, ResizeError | MisuseError):
            raise RuntimeFault(error.message) from error
        if isinstance(error, SessionError | OptionError):
            raise Thrown(str(error)) from error
        if isinstance(error, CallError):
            raise CategorizedFault(error.category, error.message) from error


domain_errors = _DomainErrors()
