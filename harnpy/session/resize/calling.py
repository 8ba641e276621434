"""Calling a handler, which may be sync or async, for a session that no runtime has. Spec: 10 §C7.2."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def call_alone(fn: Callable[..., Any], *args: Any) -> Any:
    """Return what ``fn`` returns; what it waits for is waited for on a loop of its own thread."""
    found = fn(*args)
    if not inspect.isawaitable(found):
        return found
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    with ThreadPoolExecutor(1, thread_name_prefix="resize") as thread:
        return thread.submit(copy_context().run, asyncio.run, _waited(found)).result()


async def _waited(found: Awaitable[Any]) -> Any:
    return await found
