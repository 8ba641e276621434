"""`Spending`: what each principal's sessions have cost today, of one store. Spec: 11 §1.2.

A look reads the heads of the sessions that have changed since the last one, and nothing else: a head has what
its session has cost in all. Only of a session that is older than the day, or a fork, are events read, once.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from harnpy.serve.service import Refused
from harnpy.session.info import info_of
from harnpy.session.log import KIND
from harnpy.storage.contract import HeadQuery, all_heads

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.serve.service import Caller
    from harnpy.session.info import SessionInfo
    from harnpy.session.runtime import SessionRuntime
    from harnpy.storage.contract import Head, Store

_DAY = 86_400_000_000
#: Heads may be behind by so many microseconds.
_BEHIND = 2_000_000


class _Seen(NamedTuple):
    """A session as it was last looked at, and what it had cost in all."""

    owner: str | None
    total: float


class Spending:
    """``owner_of`` returns whose a session is, ``now`` epoch seconds. Any thread may look; that may wait."""

    def __init__(
        self,
        runtime: SessionRuntime,
        owner_of: Callable[[SessionInfo], str | None],
        now: Callable[[], float],
    ) -> None:
        self._runtime = runtime
        self._store: Store = runtime.store
        self._owner_of = owner_of
        self._now = now
        self._lock = Lock()
        self._day = self._newest = 0
        self._sessions: dict[str, _Seen] = {}
        self._sums: dict[str | None, float] = {}

    def check(self, caller: Caller) -> None:
        """Raise `Refused` if the caller has spent what it may spend today."""
        most = None if caller.limits is None else caller.limits.cost_per_day
        if most is not None and (spent := self.today(caller.principal)) >= most:
            what = f"'{caller.principal}' has spent ${spent:.4f} today of ${most:g}: more at midnight, UTC"
            raise Refused(402, "over_budget", what)

    def today(self, principal: str) -> float:
        """Return what the sessions of a principal have cost since midnight, in USD."""
        with self._lock:
            self._look()
            return self._sums.get(principal, 0.0)

    def _look(self) -> None:
        midnight = int(self._now() * 1e6) // _DAY * _DAY
        if midnight != self._day:
            self._day = self._newest = midnight
            self._sessions, self._sums = {}, {}
        since, newest = max(midnight, self._newest - _BEHIND), self._newest
        for head in all_heads(self._store, HeadQuery(KIND)):
            if head.updated < since:
                break
            self._take(head)
            newest = max(newest, head.updated)
        self._newest = newest

    def _take(self, head: Head) -> None:
        total = head.data.get("cost", 0.0)
        seen = self._sessions.get(head.name)
        if seen is not None:
            spent = total - seen.total
            self._sessions[head.name] = seen._replace(total=total)
        else:
            total, spent = self._said_today(head.name) if total else (0.0, 0.0)
            seen = self._sessions[head.name] = _Seen(self._owner_of(info_of(head)), total)
        if spent:
            self._sums[seen.owner] = self._sums.get(seen.owner, 0.0) + spent

    def _said_today(self, id: str) -> tuple[float, float]:
        """Return what a session has cost in all and today: a fork's shared past has cost its parent."""
        session = self._runtime.open(id)
        spent = 0.0
        for event in session.stream.read(session.origin.shared, session.version, reverse=True):
            if event.time < self._day:
                break
            spent += event.cost
        return session.total_cost, spent
