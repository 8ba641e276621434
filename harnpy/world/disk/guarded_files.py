"""Files behind a guard: the plain ones while nothing restricts anybody, else checked ones."""

from __future__ import annotations

from harnpy.world.disk.checked_files import checked_files
from harnpy.world.files import RealFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.world.effects import Guard
    from harnpy.world.files import Files


class GuardedFiles:
    """``files`` under the rules of each moment."""

    def __init__(self, files: Files, guard: Guard) -> None:
        self._plain = files.looking(guard.look) if type(files) is RealFiles else files
        self._guard = guard
        self._checked = checked_files(files, self._check, guard.look)

    def _check(self, effect: str, path: str, named: str) -> None:
        self._guard.require(effect, path)
        self._guard.require_place(effect, path, named)

    if not TYPE_CHECKING:  # it has what `Files` has

        def __getattr__(self, name: str) -> object:
            return getattr(self._checked if self._guard.in_force() else self._plain, name)


def guarded_files(files: Files, guard: Guard) -> Files:
    guarded: Files = GuardedFiles(files, guard)  # type: ignore[assignment]
    return guarded
