"""Who of a program listens to sessions: watches as channels, observers, listeners. Spec: 10 §C9, §C10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.builtins.bridge.background_tasks import BackgroundTasks
from harnpy.builtins.bridge.contexts import context_of
from harnpy.builtins.bridge.durable.values import event_value
from harnpy.session.errors import SessionError
from harnpy.storage.errors import StorageError
from harnpy.vm.run.tasks.channels import Channel

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.events import Event
    from harnpy.session.live.watch import Watch
    from harnpy.session.log import Session
    from harnpy.vm.vm import Vm

#: How often a watch looks what other processes have appended. Seconds.
_LOOK: Final = 0.05


class _Watched(NamedTuple):
    id: str
    watch: Watch
    channel: Channel
    ring: Callable[[], None]


class Listening:
    """The watches and tokens of one program."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._beside = BackgroundTasks(vm.tasks, "session_watch")
        self._watches: list[_Watched] = []
        self._observed: list[tuple[str, str]] = []
        #: What ends what a token stands for.
        self._ends: dict[str, Callable[[], object]] = {}

    def add(self, end: Callable[[], object]) -> str:
        """Return a token; `end` with it calls ``end()``."""
        token = f"listener-{len(self._ends) + 1}"
        self._ends[token] = end
        return token

    def end(self, token: str) -> bool:
        """End what a token stands for. Return False if that is over, or there never was such a token."""
        known = self._ends.get(token)
        if known is None or known is _over:
            return False
        self._ends[token] = _over
        known()
        return True

    def observe(self, session: Session, fn: Callable[[Event], object]) -> str:
        """Have ``fn`` called with each event that this program appends to a session. Return a token."""
        leave = session.observe(fn)
        entry = [session]  # holds the session: its observers belong to the object

        def end() -> None:
            leave()
            self._observed.remove(known)
            entry.clear()

        token = self.add(end)
        known = (session.id, token)
        self._observed.append(known)
        return token

    def watch(self, session: Session, watch: Watch, *, shared: bool) -> Channel:
        """Return a channel of what ``watch`` gives. ``shared``: other processes may append, too."""
        tasks = self._vm.tasks
        channel = Channel(tasks, f"session {session.id}", 1)
        bell = self._beside.bell()
        leave = session.observe(lambda event: bell.ring())
        self._watches.append(_Watched(session.id, watch, channel, bell.ring))

        def pump() -> None:
            try:
                while (event := watch.next(timeout=0)) is not None or not watch.closed:
                    if event is None:
                        bell.wait(seconds=_LOOK if shared else None)
                    elif not channel.send(event_value(event)):
                        break
            except (SessionError, StorageError) as error:
                self._vm.world.warn("session.watch", str(error))
            finally:
                leave()
                watch.close()
                channel.close()

        self._beside.start(pump, context_of(self._vm))
        return channel

    def over(self, id: str) -> None:
        """End the watches of a session that is no more."""
        for watched in self._of(id):
            watched.watch.close()
            watched.ring()

    def facts(self, id: str) -> dict[str, Any]:
        """Return how many of the program listen to a session, and what its watches have dropped."""
        listening = sum(not watched.channel.closed for watched in self._of(id))
        observed = sum(observed == id for observed, _ in self._observed)
        dropped = sum(watched.watch.dropped for watched in self._of(id))
        return {"watchers": listening + observed, "watch_dropped": dropped}

    def _of(self, id: str) -> list[_Watched]:
        return [watched for watched in self._watches if watched.id == id]


def _over() -> None:
    """What a token stands for that was ended."""
