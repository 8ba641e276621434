"""The part of a `SessionRuntime` that does for a session what nobody waits for, or asks twice.

Spec: 10 §A1.17, §C7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.parts.arguments import session_id
from harnpy.session.runtime.background import LIMIT
from harnpy.session.runtime.bootstrap import bootstrap_text, files_in
from harnpy.session.runtime.limits import within

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from harnpy.session.events import Event
    from harnpy.session.resize.report import ResizeReport
    from harnpy.session.runtime.background import Compactions
    from harnpy.session.runtime.calling import ThreadCaller
    from harnpy.session.runtime.live import LiveSession
    from harnpy.world import World


class Tending:
    """Bootstrap context, and compaction in the background."""

    _world: World
    _caller: ThreadCaller
    _compactions: Compactions

    def get(self, id: str) -> LiveSession:
        raise NotImplementedError

    def bootstrap(
        self, id: str, cwd: str | None = None, files: Iterable[str] | None = None, tools: Iterable[str] = ()
    ) -> Event:
        """Tell a session's model where it works: the directory (None: the process's), the files in it (None:
        those that are there) and its tools, as context of the prefix."""
        here = self._world.files
        directory = here.cwd() if cwd is None else cwd
        names = files_in(directory, here) if files is None else files
        return self.get(id).append_context(bootstrap_text(directory, names, tools), kind="bootstrap")

    def compact_in_background(self, id: str, strategy: str | None = None) -> Future[ResizeReport | None]:
        """Resize a session (`Session.resize`) in a thread of its own, and return what becomes of it.

        Each is compacted once at a time; what is asked for meanwhile is done once, when that is over, unless
        its future is cancelled before. A strategy has five minutes: `ExecutionTimeout`.
        """
        return self._compactions.ask(session_id(id), strategy)

    def _compact(self, id: str, strategy: str | None) -> ResizeReport | None:
        call, session = self._caller.one(), self.get(id)
        with within(LIMIT, call, id):
            return session.resize(strategy, call=call)
