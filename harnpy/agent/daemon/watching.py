"""Files whose changes wake a daemon. Spec: 07 §12."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Times = dict[str, int | None]


class Watch:
    """``modified(path)`` says when a file was written last, None when it isn't there. ``state`` is how the
    files were at the last look: what changes between two looks isn't missed, whatever goes on meanwhile.
    """

    def __init__(self, paths: Sequence[str], modified: Callable[[str], int | None]) -> None:
        self.paths = paths
        self._modified = modified
        self.state: Times = self._now()

    def restore(self, state: Mapping[str, int | None]) -> None:
        """Go on from an earlier look; paths that it doesn't know are as they are now."""
        self.state |= {path: state[path] for path in self.paths if path in state}

    def changes(self) -> list[str]:
        """The files that were written since the last look. One that comes or goes is none of them."""
        before, self.state = self.state, self._now()
        return [path for path in self.paths if _differ(before[path], self.state[path])]

    def _now(self) -> Times:
        return {path: self._modified(path) for path in self.paths}


def _differ(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and before != now
