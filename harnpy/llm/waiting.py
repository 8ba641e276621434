"""Waiting: for time to pass, for what comes from outside, and for a place under a rate limit."""

from __future__ import annotations

from collections import deque
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from harnpy.world.clock import Clock


class Waiting(Protocol):
    """The waits of a call; where there are tasks, others run meanwhile."""

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


class Watched:
    """What is awaited while the caller wants to do something now and then: ``act``, which may wait."""

    #: Seconds between two calls of ``act``.
    EVERY = 0.02

    def __init__(self, awaitable: Awaitable[Any], act: Callable[[], None]) -> None:
        self._awaitable = awaitable
        self._act = act
        self._task: asyncio.Future[Any] | None = None

    def result(self, wait: Callable[[Awaitable[Any]], Any]) -> Any:
        """Return the result, which ``wait`` waits for. If ``act`` raises, nobody wants it any more."""
        try:
            while not wait(self._has_ended()):
                self._act()
            return wait(self._given())
        finally:
            if self._task is not None:
                self._task.cancel()
            elif hasattr(self._awaitable, "close"):  # Python warns of a coroutine that nobody has begun
                self._awaitable.close()

    async def _has_ended(self) -> bool:
        import asyncio

        if self._task is None:
            self._task = asyncio.ensure_future(self._awaitable)
        await asyncio.wait((self._task,), timeout=self.EVERY)
        return self._task.done()

    async def _given(self) -> Any:
        assert self._task is not None
        return await self._task


# How often a provider may be asked: so many requests in any sixty seconds. Spec: 07 §1.13.
#
# A request that finds the window full waits until the oldest one leaves it; it never fails because of that.


T = TypeVar("T")

WINDOW = 60.0
MOST_BACKOFF_MS = 30_000

#: Categories of errors after which `RateLimits.run` tries again.
RETRIED = frozenset({"rate_limit", "overloaded", "transient_network", "timeout"})


class RateLimits:
    """The windows of one program. ``configured(provider)`` is what its configuration says."""

    def __init__(
        self,
        env: Callable[[str], str | None],
        monotonic: Callable[[], float],
        sleep: Callable[[float], Any],
        configured: Callable[[str], int | None] = lambda provider: None,
    ) -> None:
        self._env = env
        self._monotonic = monotonic
        self._sleep = sleep
        self._configured = configured
        self._rpm: dict[str, int] = {}
        self._leaving: dict[str, deque[float]] = {}  # when each request leaves the window

    def waited_for(self, sleep: Callable[[float], Any]) -> RateLimits:
        """Return the same windows for a task that waits by ``sleep``."""
        limits = copy(self)
        limits._sleep = sleep
        return limits

    def rpm(self, provider: str) -> int | None:
        """Requests per minute: as set, else the environment's, else the configuration's; None: any number."""
        rpm = self._rpm.get(provider)
        if rpm is None:
            rpm = _whole(self._env(f"HARN_RATE_LIMIT_{provider.upper()}")) or self._configured(provider)
        return rpm if rpm and rpm > 0 else None

    def set(self, provider: str, rpm: int) -> None:
        """Set a limit; zero or less removes it, whatever the environment says."""
        self._rpm[provider] = max(rpm, 0)

    def acquire(self, provider: str) -> None:
        """Take a permit for one request, waiting for it if need be."""
        while (rpm := self.rpm(provider)) is not None:
            window = self._leaving.setdefault(provider, deque())
            now = self._monotonic()
            while window and window[0] <= now:
                window.popleft()
            if len(window) < rpm:
                window.append(now + WINDOW)
                return
            self._sleep(window[0] - now)

    def run(
        self,
        provider: str,
        call: Callable[[], T],
        category_of: Callable[[Exception], str | None],
        retries: int = 5,
        backoff_ms: int = 1000,
    ) -> T:
        """Call ``call()`` with a permit, and again with another after an error that may pass.

        ``category_of(error)`` decides; after None there is no other try.
        """
        while True:
            self.acquire(provider)
            try:
                return call()
            except Exception as error:
                if retries <= 0 or category_of(error) not in RETRIED:
                    raise
            retries -= 1
            self._sleep(min(backoff_ms, MOST_BACKOFF_MS) / 1000)
            backoff_ms *= 2


def _whole(text: str | None) -> int | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        return None
