"""What a Harn program can fail with, the text that ``catch`` sees, and what becomes of a builtin's `Fault`.

    VmError                     base; ``text`` is what `catch` binds for everything but a throw
    ├─ Thrown(value)            `throw value` and every builtin that throws a plain value
    │  └─ HostError(value)      a Python function of the embedder's has raised an exception
    ├─ TypeFault(message)       "Type error: …"
    ├─ RuntimeFault(message)    "Runtime error: …"
    ├─ PlainFault(message)      no prefix until it leaves a context: division by zero, undefined
    │                           names, immutable assignment, call depth
    └─ CategorizedFault(category, message)   "Error [category]: …"
       ├─ LimitExceeded(limit, message)      a limit of the embedder; the program can't catch it
       └─ Cancelled()                        the embedder has cancelled the run; nor can it catch that

Raising costs nothing but the exception: positions and the Harn call stack are read off the Python
traceback when somebody asks (`harnpy.vm.run.backtrace`). Spec: 02 §19.
"""

from __future__ import annotations

from _imp import _fix_co_filename  # type: ignore[attr-defined]  # what imports of .pyc files use

from harnpy.faults import CategorizedError, Fault, Interruption, MisuseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
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
    #: The actual and the expected value, where `assert_eq` threw.
    compared: tuple[Any, Any] | None = None

    def __init__(self, value: Any) -> None:
        Exception.__init__(self, value)
        self.value = value

    @property
    def message(self) -> str:  # type: ignore[override]
        from harnpy.formats.display import display, type_name

        try:
            return display(self.value)
        except RecursionError:
            how = "deep"
        except MemoryError:
            how = "large"
        return f"a value of type {type_name(self.value)}, which is too {how} to be shown"

    @property
    def text(self) -> str:
        return "Thrown: " + self.message


class HostError(Thrown):
    """A Python function of the embedder's has raised an exception, the `__cause__`.

    The value is `{category: "host_error", type, message, function}`.
    """

    @property
    def message(self) -> str:  # type: ignore[override]
        return f"{self.value['function']}: {self.value['type']}: {self.value['message']}"

    @property
    def text(self) -> str:
        return self.message


class Interrupted(Thrown):
    """A deadline has passed, or the task was cancelled. Observers must not swallow it.

    ``deadline`` is that of the outermost `deadline` block whose time is over.
    """

    def __init__(self, value: Any, deadline: float | None = None) -> None:
        super().__init__(value)
        self.deadline = deadline

    def outside(self, deadline: float) -> Thrown:
        """Return what it becomes outside a `deadline` block: outside its own a plain throw (05 §9)."""
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


class Elsewhere(RuntimeError):
    """An exception of another process, of the class ``kind``, which may not exist in this one."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class VmMisuse(RuntimeError):
    """The embedder has called a Vm where or when that can't be; the message says what to do."""


class Cancelled(CategorizedFault):
    """The embedder has cancelled the run; no program catches it."""

    def __init__(self) -> None:
        super().__init__("cancelled", "VM cancelled by host")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), ()


VmError.Thrown = Thrown

#: What a program's `catch` catches: its own errors, and what is too deep or too large for the host.
FAILURES = (VmError, RecursionError, MemoryError)


class Grace:
    """What the `finally` and `defer` blocks of a cancelled run may still do, all together. Spec: 09 §16.2."""

    __slots__ = ("turns",)

    def __init__(self) -> None:
        #: Of loops and calls, as many as no machine is long about; waiting isn't among it.
        self.turns = 256

    def takes(self, turns: int) -> bool:
        """Return True if so many more turns may be made."""
        self.turns -= turns
        return self.turns >= 0


class Leaving(BaseException):
    """Unwinds a program or task that is over: its `finally` and `defer` blocks don't run any more, unless
    there is a ``grace``."""

    grace: Grace | None = None
    #: What leaves the Vm in its place.
    becomes: CategorizedFault | None = None


class CalledOff(Leaving):
    """Leaves a program whose run the embedder has cancelled."""

    def __init__(self, grace: Grace) -> None:
        super().__init__()
        self.grace = grace
        self.becomes = Cancelled()


class ExitRequest(Leaving):
    """The program called `exit(code)`."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


# What a program sees of a `Fault` that a builtin raises: the one place where faults become Harn errors.
#
# | raised                | becomes                                            |
# |-----------------------|----------------------------------------------------|
# | `MisuseError`         | a runtime error                                    |
# | `CategorizedError`    | an error with its category                         |
# | any other `Fault`     | a throw of its message, or of a value of its own   |
# | `Interruption`        | its cause: a passed deadline, a cancelled task     |


_COLLECTS_POSITIONALS = 0x04
"""`inspect.CO_VARARGS`."""

_TEXT = """\
def call({parameters}):
    try:
        {bounded}
        return function({parameters})
    except Fault as fault:
        raise harn_error(fault, name) from fault
    except Interruption as interruption:
        stop = interruption.__cause__ or interruption
    # Not `from` the interruption: its cause would become its own cause.
    raise stop
"""


def reporting_faults(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, the builtin ``name``, with its faults as Harn errors.

    Domain packages copy, store and write out what they are given, so a value whose parts are shared without
    end is refused here.

    It is written out for just these parameters: to collect and pass on ``*args`` takes five times as long.
    """
    code = function.__code__
    from harnpy.formats.nesting import PLAIN, refuse_endless

    parameters = [f"a{i}" for i in range(1, code.co_argcount)]
    bounded = [f"if type({each}) not in PLAIN: refuse_endless({each})" for each in parameters]
    if code.co_flags & _COLLECTS_POSITIONALS:
        parameters.append("*rest")
        bounded.append("refuse_endless(rest)")
    text = _TEXT.format(
        parameters=", ".join(["vm", *parameters]), bounded="\n        ".join(bounded) or "pass"
    )
    space = {**_NAMES, "function": function, "name": name, "PLAIN": PLAIN, "refuse_endless": refuse_endless}
    call: Any = binder(text, space, "call", name)
    call.__defaults__ = function.__defaults__
    return call  # type: ignore[no-any-return]


#: How the names of the files begin in which Python finds binders.
_BINDER_OF = "<binder of "


def binder(text: str, space: dict[str, Any], defined: str, builtin: str) -> Any:
    """Return the function ``defined`` by a text, which stands between programs and a builtin.

    The definition is executed: the first `compile` of a process takes 0.9 ms more, since it makes Python's
    classes of syntax trees.
    """
    exec(text, space)  # noqa: S102
    found = space[defined]
    _fix_co_filename(found.__code__, f"{_BINDER_OF}{builtin}>")
    return found


def harn_error(fault: Fault, name: str) -> VmError:
    """Return what a program catches when the builtin ``name`` raises ``fault``.

    A misuse's notes, such as the file that was read, are part of its message.
    """
    if isinstance(fault, MisuseError):
        return RuntimeFault(": ".join([fault.message_from(name), *getattr(fault, "__notes__", ())]))
    if isinstance(fault, CategorizedError):
        return CategorizedFault(fault.category, fault.message_from(name))
    return Thrown(fault.caught_from(name))


def in_domain(frame: FrameType | None) -> bool:
    """Return True if ``frame`` is in a builtin that reports faults, and in no program's function above."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_BINDER_OF) and "Interruption" in code.co_names:
            return True
        if code.co_qualname in _OF_PROGRAMS:
            return False
        frame = frame.f_back
    return False


#: What calls a program's functions from a builtin's, and what runs a task.
_OF_PROGRAMS = frozenset(["Vm.call", "Scheduler.run_tasks"])
_NAMES = {"Fault": Fault, "Interruption": Interruption, "harn_error": harn_error}
