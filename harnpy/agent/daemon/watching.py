"""Files whose changes wake a daemon. Spec: 07 §12."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Times = dict[str, int | None]


class Watch:
    """``modified(path)`` returns when a file was last written, None when there is none. ``state`` holds the
    times as last seen, so that no change between two looks is missed.
    """

    def __init__(self, paths: Sequence[str], modified: Callable[[str], int | None]) -> None:
        self.paths = paths
        self._modified = modified
        self.state: Times = self._now()

    def restore(self, state: Mapping[str, int | None]) -> None:
        """Continue from an earlier state; paths that it doesn't know keep their present times."""
        self.state |= {path: state[path] for path in self.paths if path in state}

    def changes(self) -> list[str]:
        """Return the files written since the last look; created and deleted ones don't count."""
        before, self.state = self.state, self._now()
        return [path for path in self.paths if _differ(before[path], self.state[path])]

    def _now(self) -> Times:
        return {path: self._modified(path) for path in self.paths}


def _differ(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and before != now
