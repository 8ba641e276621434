"""Errors of the domain packages to errors of Harn, in one place.

    with domain_errors:
        return vm.sessions.length(id)

| raised                                | becomes                             |
|---------------------------------------|-------------------------------------|
| `MisuseError`                         | a runtime error                     |
| `CategorizedError`                    | an error with its category          |
| any other `Fault`                     | a thrown string                     |
| `Interruption`                        | the interruption that it stands for |
"""

from __future__ import annotations

from harnpy.faults import CategorizedError, Fault, Interruption, MisuseError
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
        if isinstance(error, MisuseError):
            raise RuntimeFault(error.message) from error
        if isinstance(error, CategorizedError):
            raise CategorizedFault(error.category, error.message) from error
        if isinstance(error, Fault):
            raise Thrown(error.message) from error


domain_errors = _DomainErrors()
