"""`SessionRuntime.stream`: a turn in a thread, and its answer piece by piece. Spec: 10 §C7.1."""

from __future__ import annotations

from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING, Any

from harnpy.session.agents.values import RunEvent
from harnpy.session.runtime.pipe import Pipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from harnpy.session.agents.values import TurnResult
    from harnpy.session.runtime.calling import ThreadCaller


def pieces_to(pipe: Pipe) -> Callable[[str], Future[None]]:
    """Return what puts the pieces of an answer into a pipe."""
    return lambda text: pipe.put(RunEvent("chunk", text))


def streamed(calls: ThreadCaller, send: Callable[..., TurnResult]) -> Iterator[RunEvent]:
    """Give what ``send`` streams, and its result. Closing the iterator cancels the turn."""
    pipe = Pipe()
    calls.check_outside()
    caller = calls.one()

    def work() -> None:
        try:
            result = send(stream=pieces_to(pipe), caller=caller)
        except BaseException as error:
            pipe.end(error)
        else:
            pipe.put(RunEvent("result", result=result))
            pipe.end()

    context: Any = copy_context()
    thread = Thread(target=context.run, args=(work,), name="session turn", daemon=True)
    thread.start()
    try:
        while (event := pipe.get().result()) is not None:
            yield event
    finally:
        caller.stop()
        pipe.close()
        thread.join()
