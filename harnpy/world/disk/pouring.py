"""Writing a file from pieces that come one after the other, as a whole or not at all."""

from __future__ import annotations

import os
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from harnpy.world.disk.temporaries import Temporary

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

_MARK = ".partial"


async def poured(
    pieces: AsyncGenerator[bytes, None],
    path: str,
    within: int | None,
    tidy: Callable[[str, str], object],
    rename: Callable[[str, str], object],
) -> int:
    """Write a file, `Files.pour`; ``within`` as `Temporary` has it. Return the number of bytes."""
    directory, size = os.path.dirname(path) or ".", 0
    temporary = Temporary(directory, _MARK, within)
    try:
        tidy(directory, _MARK)
        temporary.create()
        async with aclosing(pieces):
            async for piece in pieces:
                temporary.write(piece)
                size += len(piece)
        rename(temporary.path, path)
    except BaseException as error:
        with suppress(OSError):
            os.remove(temporary.path, dir_fd=within)
        if isinstance(error, OSError):
            error.filename = path
        raise
    finally:
        temporary.close()
    return size
