"""Methods of a face for asyncio: the same, in a thread; handlers that are async run on the caller's loop."""

from __future__ import annotations

from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from harnpy.session.aio import in_thread
from harnpy.session.calling import LoopCaller

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

_CALLER: ContextVar[LoopCaller | None] = ContextVar("harnpy.faces", default=None)


def later(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Return a method as a coroutine."""

    @wraps(method)
    async def waited(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        caller = LoopCaller.here()

        def work() -> R:
            _CALLER.set(caller)
            return method(self, *args, **kwargs)

        return await in_thread(work, caller.stop)

    return waited


def calling(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Return what calls a handler: on the loop that waits for it if one does, else as ``otherwise`` does."""

    def call(fn: Callable[..., Any], *args: Any) -> Any:
        return (_CALLER.get() or otherwise)(fn, *args)

    return call
