"""All logs of a store, found by name or by what a branch points to. Spec: 10 §C6, "Branching is one record".

A stream's log is ``logs/<name>.jsonl``, for kinds other than ``session`` ``logs/<kind>/<name>.jsonl``. What
a deleted stream's branches still read is a *stem*, ``stems/<uid>.jsonl``.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from harnpy.storage.errors import CorruptLog
from harnpy.storage.jsonl.log import SUFFIX, Log
from harnpy.storage.jsonl.names import file_name, name_of

if TYPE_CHECKING:
    from harnpy.storage.jsonl.folders import Folder
    from harnpy.storage.jsonl.lines import Origin
    from harnpy.storage.jsonl.state import State

#: The kind whose logs need no folder of their own.
_PLAIN = "session"
#: More records than a log has.
_ALL = 2**62


class Segment(NamedTuple):
    """Records ``after + 1`` … ``until`` of a stream, and the log that they are in."""

    log: Log
    uid: str
    after: int
    until: int


class Logs:
    """The logs below ``root``. ``folded``: its file system takes ``A`` for ``a``."""

    def __init__(self, root: Folder, *, folded: bool) -> None:
        self._folded = folded
        self._logs = root.sub("logs")
        self._heads = root.sub("heads")
        self.stems = root.sub("stems")
        self._folders: dict[str, tuple[Folder, Folder]] = {_PLAIN: (self._logs, self._heads)}
        self._known: dict[tuple[str, str], Log] = {}
        self._stems: dict[str, Log] = {}
        self._guard = threading.Lock()

    def log(self, kind: str, name: str) -> Log:
        """The log of a stream, be it written or not."""
        return self._log(kind, file_name(name, folded=self._folded))

    def _log(self, kind: str, file: str) -> Log:
        with self._guard:
            found = self._known.get((kind, file))
            if found is None:
                found = self._known[kind, file] = Log(*self._folder(kind), file)
            return found

    def _folder(self, kind: str) -> tuple[Folder, Folder]:
        """The folders of a kind: of its logs, and of their caches."""
        found = self._folders.get(kind)
        if found is None:
            name = file_name(kind, folded=self._folded)
            found = self._folders[kind] = self._logs.sub(name), self._heads.sub(name)
        return found

    def kinds(self) -> list[str]:
        """The kinds that there are logs of."""
        names = (name_of(folder) for folder in self._logs.folders())
        return [_PLAIN, *(name for name in names if name is not None)]

    def all(self, kind: str) -> list[Log]:
        """The logs of a kind that there are, in the order of their files."""
        with self._guard:
            folder, _ = self._folder(kind)
        return [self._log(kind, file) for file in folder.files(SUFFIX)]

    def all_stems(self) -> list[Log]:
        return [self.stem(uid) for uid in self.stems.files(SUFFIX)]

    def stem(self, uid: str) -> Log:
        """The log of a deleted stream's shared records."""
        with self._guard:
            found = self._stems.get(uid)
            if found is None:
                found = self._stems[uid] = Log(self.stems, None, uid)
            return found

    def origin(self, kind: str, origin: Origin) -> tuple[Log, State]:
        """Find the log that a branch points to. Raises `CorruptLog` when it is gone."""
        log = self.log(kind, origin.name)
        state = log.state()
        if state.uid != origin.uid:  # the stream was deleted, or is another one of that name by now
            log = self.stem(origin.uid)
            state = log.state()
            if state.uid != origin.uid:
                raise CorruptLog(log.path, f"the records that were shared with '{origin.name}' are gone")
        return log, state

    def has(self, kind: str, origin: Origin) -> bool:
        """Whether the stream that a branch points to is there, not deleted; a damaged log may be it."""
        try:
            return self.log(kind, origin.name).state().uid == origin.uid
        except CorruptLog:
            return True

    def segments(self, kind: str, log: Log, state: State, after: int, until: int) -> list[Segment]:
        """Where the records ``after + 1`` … ``until`` of a stream are, oldest first."""
        found: list[Segment] = []
        first = state.points is not None and after < 1 <= until and state.dropped < 1
        own = log, state.uid
        after = max(after, state.dropped)
        while (origin := state.points) is not None:
            low = max(after, origin.at)
            if until > low:
                found.append(Segment(log, state.uid, low, until))
            until = min(until, origin.at)
            after = max(after, 1)  # the first record of a branch is its own
            if until <= after:
                break
            log, state = self.origin(kind, origin)
            after = max(after, state.dropped)
        else:
            if until > after:
                found.append(Segment(log, state.uid, after, until))
        if first:
            found.append(Segment(*own, 0, 1))
        return found[::-1]

    def shared(self, kind: str, uid: str) -> int:
        """The number of the last record of log ``uid`` that a branch reads; 0 when none does."""
        highest = 0
        for log in [*self.all(kind), *self.all_stems()]:
            try:
                origin = log.state().points
            except CorruptLog:
                return _ALL  # it may be one of its branches
            if origin is not None and origin.uid == uid:
                highest = max(highest, origin.at)
        return highest

    def save(self) -> None:
        """Keep the states of all logs that were looked at."""
        for log in list(self._known.values()):
            log.save()

    def close(self) -> None:
        for pair in self._folders.values():
            for folder in pair:
                folder.close()
        self.stems.close()
