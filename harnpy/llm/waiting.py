"""How a call waits: for time to pass, and for what comes from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from harnpy.world.clock import Clock


class Waiting(Protocol):
    """Where there are tasks, others run while the calling one waits."""

    def sleep(self, seconds: float) -> None: ...

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Return the result of a coroutine."""

    def go_on(self) -> None:
        """Called before each of many steps that may not wait. Raises Interruption when the task must stop."""


class Blocking:
    """Waits in the calling thread, for users without tasks. `close` ends its event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._runner: asyncio.Runner | None = None

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        if self._runner is None:
            from asyncio import Runner

            self._runner = Runner()

        async def waiting() -> Any:
            return await awaitable

        return self._runner.run(waiting())

    def go_on(self) -> None:
        """Nobody stops the calling thread."""

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = None
