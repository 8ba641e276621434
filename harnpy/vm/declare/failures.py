"""What a program sees of a `Fault` that a builtin raises: the one place where faults become Harn errors.

| raised                | becomes                                            |
|-----------------------|----------------------------------------------------|
| `MisuseError`         | a runtime error                                    |
| `CategorizedError`    | an error with its category                         |
| any other `Fault`     | a thrown string                                    |
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
    from harnpy.vm.vm import Vm


def reporting_faults(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, the builtin ``name``, with its faults as Harn errors."""

    def call(vm: Vm, *args: Any) -> Any:
        try:
            return function(vm, *args)
        except Fault as fault:
            raise harn_error(fault, name) from fault
        except Interruption as interruption:
            stop = interruption.__cause__ or interruption
        # Not `from` the interruption: its cause would become its own cause.
        raise stop

    return call


def harn_error(fault: Fault, name: str) -> VmError:
    """What a program catches when the builtin ``name`` raises ``fault``."""
    message = fault.message_from(name)
    if isinstance(fault, MisuseError):
        return RuntimeFault(message)
    if isinstance(fault, CategorizedError):
        return CategorizedFault(fault.category, message)
    return Thrown(message)
