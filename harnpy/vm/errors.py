"""What a Harn program can fail with, and the text that ``catch`` sees. Spec: 02 §19.

    VmError                     base; ``text`` is what `catch` binds for everything but a throw
    ├─ Thrown(value)            `throw value` and every builtin that throws a plain value
    ├─ TypeFault(message)       "Type error: …"
    ├─ RuntimeFault(message)    "Runtime error: …"
    ├─ PlainFault(message)      no prefix until it leaves a context: division by zero, undefined
    │                           names, immutable assignment, call depth
    └─ CategorizedFault(category, message)   "Error [category]: …"
       └─ LimitExceeded(limit, message)      a limit of the embedder; the program can't catch it

Raising costs nothing but the exception: positions and the Harn call stack are read off the Python
traceback when somebody asks (`harnpy.vm.run.backtrace`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from harnpy.vm.run.backtrace import Frame


OVERFLOW = "Stack overflow: too many nested calls"


class VmError(Exception):
    """A Harn program failed. ``VmError.Thrown`` is the case of a thrown value."""

    Thrown: ClassVar[type[Thrown]]
    prefix: ClassVar[str] = ""
    takes_line: ClassVar[bool] = True

    #: Harn call stack, innermost first; filled in when the error leaves `Vm.run`.
    frames: tuple[Frame, ...] = ()

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def text(self) -> str:
        """The error as a string: class prefix and message."""
        return self.prefix + self.message

    def __str__(self) -> str:
        return self.text


class Thrown(VmError):
    """A user-level throw of any Harn value."""

    takes_line = False

    def __init__(self, value: Any) -> None:
        Exception.__init__(self, value)
        self.value = value

    @property
    def message(self) -> str:  # type: ignore[override]
        from harnpy.vm.values.objects import display

        return display(self.value)

    @property
    def text(self) -> str:
        return "Thrown: " + self.message


class Interrupted(Thrown):
    """A deadline has passed, or the task was cancelled. Observers must not swallow it.

    ``deadline`` is that of the outermost `deadline` block whose time is over.
    """

    def __init__(self, value: Any, deadline: float | None = None) -> None:
        super().__init__(value)
        self.deadline = deadline

    def outside(self, deadline: float) -> Thrown:
        """What it becomes outside a `deadline` block: outside its own, a throw like any other (05 §9)."""
        return Thrown(self.value).with_traceback(self.__traceback__) if self.deadline == deadline else self


class TypeFault(VmError):
    prefix = "Type error: "


class RuntimeFault(VmError):
    prefix = "Runtime error: "


class PlainFault(VmError):
    """A special case whose text has no prefix where it is caught directly."""


class CategorizedFault(VmError):
    takes_line = False

    def __init__(self, category: str, message: str) -> None:
        super().__init__(message)
        self.category = category

    @property
    def text(self) -> str:
        return f"Error [{self.category}]: {self.message}"


class LimitExceeded(CategorizedFault):
    """The run went beyond the embedder's limit of that name; no program catches it."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__("limit_exceeded", message)
        self.limit = limit
        self.code = f"limit_{limit}"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.limit, self.message)


VmError.Thrown = Thrown

#: What a program's `catch` catches: its own errors, and what is too deep or too large for the host.
FAILURES = (VmError, RecursionError, MemoryError)


class Leaving(BaseException):
    """Unwinds a program or task that is over: none of its `finally` and `defer` blocks run any more."""


class ExitRequest(Leaving):
    """The program called `exit(code)`."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
