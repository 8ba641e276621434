"""Calls of the embedder's functions: their results become values, what they raise errors. Spec: 09 §16.5.

A program can catch whatever such a function raises; uncaught, the exception is the `__cause__` of what the
embedder gets. What isn't an `Exception` passes: `KeyboardInterrupt`, `SystemExit`, a cancellation.
"""

from __future__ import annotations

from harnpy.faults import Fault
from harnpy.vm.errors import FAILURES, Elsewhere, HostError, Thrown, VmError, VmMisuse, harn_error
from harnpy.vm.values.given import given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


#: Errors of programs, and of the use of a Vm.
PASSING = (*FAILURES, VmMisuse)


def answer(vm: Vm, name: str, function: Callable[..., Any], *args: Value) -> Value:
    """Return what the embedder's ``function`` returns, be it a coroutine; programs know it by ``name``."""
    try:
        try:
            found = function(*args)
            if not hasattr(found, "__await__"):
                found = given(found, f"the result of `{name}`")
        except Thrown as thrown:
            _check(thrown, name)
            raise
    except PASSING:
        raise
    except Exception as error:
        raise error_of(error, name) from error
    if hasattr(found, "__await__"):
        try:
            return vm.tasks.await_coroutine(_awaited(found, name))
        finally:
            close_unbegun(found)
    if vm.signal.cancelled:  # while the function had the thread to itself
        vm.poll()
    return found


async def _awaited(found: Awaitable[Any], name: str) -> Value:
    try:
        try:
            return given(await found, f"the result of `{name}`")
        except Thrown as thrown:
            _check(thrown, name)
            raise
    except PASSING:
        raise
    except Exception as error:
        raise error_of(error, name) from error


def close_unbegun(found: Awaitable[Any]) -> None:
    """Close a coroutine that was cancelled before it began: Python warns of one that nobody awaits."""
    from inspect import CORO_CREATED, getcoroutinestate, iscoroutine

    if iscoroutine(found) and getcoroutinestate(found) == CORO_CREATED:
        found.close()


def _check(thrown: Thrown, name: str) -> None:
    thrown.value = given(thrown.value, f"what `{name}` throws")


def error_of(error: Exception, name: str) -> VmError:
    """Return what a program catches of an exception of the embedder's function ``name``."""
    if isinstance(error, Fault):
        return harn_error(error, name)
    kind, message = type(error).__name__, str(error)
    if isinstance(error, Elsewhere):
        kind, message = error.kind, error.message
    return HostError({"category": "host_error", "type": kind, "message": message, "function": name})
