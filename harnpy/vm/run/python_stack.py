"""The Python stack that Harn functions run on: how deep it may get, and how to keep it fast.

Python frames are cheap in CPython 3.11 (no C stack), and 512 Harn frames with callbacks need many. Some calls
do take C stack: `RECURSION_LIMIT` frames are as deep as the usual 8 MiB surely hold.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

RECURSION_LIMIT = 60_000


def allow_deep_recursion() -> None:
    if sys.getrecursionlimit() < RECURSION_LIMIT:
        sys.setrecursionlimit(RECURSION_LIMIT)


def big_frame(size: int) -> Callable[..., Any]:
    """Return ``lambda body: body()``, whose frame claims ``size`` stack slots.

    CPython 3.11 keeps Python frames in chunks of 16 KiB and returns a chunk as soon as its first frame
    returns. A loop whose callee sits on that edge maps and unmaps memory at every call, 200 times slower.
    Below a huge frame everything shares one chunk.
    """

    def enter(body: Callable[[], Any]) -> Any:
        return body()

    new: Any = type(enter)
    big: Callable[..., Any] = new(enter.__code__.replace(co_stacksize=size), {})
    return big
