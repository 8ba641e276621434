"""A loop's hold on a session that a store keeps: the session's lease. Spec: 10 §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnpy.session.kept.stored import StoredSession
    from harnpy.storage.renewal import KeptLease


class Hold:
    """The lease of a session, as long as loops of this process drive it."""

    def __init__(self, session: StoredSession, kept: KeptLease) -> None:
        self._session = session
        self._kept = kept
        session.lease = kept.lease

    def release(self) -> None:
        self._session.lease = None
        self._kept.release()
