"""What a program sees of a `Fault` that a builtin raises: the one place where faults become Harn errors.

| raised                | becomes                                            |
|-----------------------|----------------------------------------------------|
| `MisuseError`         | a runtime error                                    |
| `CategorizedError`    | an error with its category                         |
| any other `Fault`     | a throw of its message, or of a value of its own   |
| `Interruption`        | its cause: a passed deadline, a cancelled task     |
"""

from __future__ import annotations

from harnpy.faults import CategorizedError, Fault, Interruption, MisuseError
from harnpy.vm.errors import CategorizedFault, RuntimeFault, Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.errors import VmError


_COLLECTS_POSITIONALS = 0x04
"""`inspect.CO_VARARGS`."""

_TEXT = """\
def call({parameters}):
    try:
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

    It is written out for just these parameters: to collect and pass on ``*args`` takes five times as long.
    """
    code = function.__code__
    parameters = ["vm", *[f"a{i}" for i in range(1, code.co_argcount)]]
    if code.co_flags & _COLLECTS_POSITIONALS:
        parameters.append("*rest")
    text = _TEXT.format(parameters=", ".join(parameters))
    space = {**_NAMES, "function": function, "name": name}
    exec(compile(text, f"<binder of {name}>", "exec"), space)  # noqa: S102
    call: Any = space["call"]
    call.__defaults__ = function.__defaults__
    return call  # type: ignore[no-any-return]


def harn_error(fault: Fault, name: str) -> VmError:
    """Return what a program catches when the builtin ``name`` raises ``fault``.

    A misuse's notes, such as the file that was read, are part of its message.
    """
    if isinstance(fault, MisuseError):
        return RuntimeFault(": ".join([fault.message_from(name), *getattr(fault, "__notes__", ())]))
    if isinstance(fault, CategorizedError):
        return CategorizedFault(fault.category, fault.message_from(name))
    return Thrown(fault.caught_from(name))


_NAMES = {"Fault": Fault, "Interruption": Interruption, "harn_error": harn_error}
