"""Functions of a program that sessions call. Spec: 10 §C9; rules in force: 07 §8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.callables import python_function
from harnpy.builtins.bridge.contexts import under_rules_of_now
from harnpy.vm.errors import VmError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.builtins.bridge.durable.verbs import Call
    from harnpy.vm.values.objects import Value


def callback(call: Call, fn: Value) -> Callable[..., Any]:
    """Return a function of the program for later: it obeys the rules that are in force now, too."""
    return under_rules_of_now(call.vm, python_function(call.vm, fn))


def listener(call: Call, fn: Value) -> Callable[..., Any]:
    """Return a `callback` whose failures are warnings."""
    function, warn = callback(call, fn), call.vm.world.warn

    def listen(name: str, data: dict[str, Any]) -> None:
        try:
            function(name, data)
        except VmError as error:
            warn("session.listener", str(error))

    return listen
