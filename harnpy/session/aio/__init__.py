"""The runtime and its sessions for asyncio: the same names, as coroutines. Spec: 10 §C2, §C7.2.

Calls of the store run in a thread each. Hooks and actions may be sync, and run in that thread, or async,
and run on the caller's loop. A cancelled action has stored nothing, or ends the turn that it began.
"""

from __future__ import annotations

from harnpy.session.aio.extension import AsyncSessionExtension
from harnpy.session.aio.runtime import AsyncSessionRuntime
from harnpy.session.aio.session import AsyncSession

__all__ = ["AsyncSession", "AsyncSessionExtension", "AsyncSessionRuntime"]
