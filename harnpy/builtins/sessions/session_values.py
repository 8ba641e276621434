"""Sessions as programs see them: events, infos, errors, and who watches them. Spec: 10 §C4, §C9-C11."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.builtins.bridge.agent_tasks import BackgroundTasks
from harnpy.builtins.bridge.contexts import context_of
from harnpy.faults import OptionError
from harnpy.formats.suggestions import hint
from harnpy.session.chunks import Chunk
from harnpy.session.codec import encode_event
from harnpy.session.errors import ArtifactCorrupt, ArtifactNotFound, EventRejected, SessionError
from harnpy.session.events import EventDraft
from harnpy.storage.errors import StorageError
from harnpy.vm.errors import Thrown
from harnpy.vm.run.channels import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harnpy.session.events import Event
    from harnpy.session.info import SessionInfo
    from harnpy.session.log import Session
    from harnpy.session.watch import LiveWatch, Watch
    from harnpy.vm.vm import Vm

    Dict = dict[str, Any]

# What a program catches when a verb fails: ``{category, code, message, session_id}``. Spec: 10 §C9, §C11.


#: The category of each code; ``invalid`` is that of all others.
_CATEGORIES: Final[Mapping[str, str]] = {
    "version_conflict": "conflict",
    "exists": "conflict",
    "tool_ambiguous": "conflict",
    "not_controller": "conflict",
    "not_found": "not_found",
    "event_not_found": "not_found",
    "busy": "busy",
    "timeout": "busy",
    "lane_full": "busy",
    "lease_held": "busy",
    "full": "busy",
    "corrupt": "corrupt",
    "unsupported": "unsupported",
    "schema": "unsupported",
    "lease_lost": "cancelled",
    "closed": "cancelled",
}
_ARTIFACTS: Final[Mapping[type, str]] = {ArtifactNotFound: "not_found", ArtifactCorrupt: "corrupt"}


@contextmanager
def errors_told(verb: str, argument: str, id: str | None) -> Iterator[None]:
    """Raise what the program catches, for an error of sessions or stores inside the block.

    ``argument`` is the one that the session is to keep, ``id`` that of the session which the call is about.
    """
    try:
        yield
    except (SessionError, StorageError) as error:
        category = _ARTIFACTS.get(type(error)) or _CATEGORIES.get(error.code, "invalid")
        message = error.message
        if isinstance(error, EventRejected) and error.pointer is not None:
            message = f"{verb}: `{argument}` must be JSON-serializable"
        raise thrown(category, error.code, message, getattr(error, "session_id", None) or id) from error
    except OptionError as error:
        raise invalid(error.message_from(verb), id) from error


def invalid(message: str, id: str | None = None) -> Thrown:
    """Return the error of an argument that can't be."""
    return thrown("invalid", "invalid", message, id)


def thrown(category: str, code: str, message: str, id: str | None) -> Thrown:
    shown: dict[str, Any] = {"category": category, "code": code, "message": message, "session_id": id}
    return Thrown(shown)


# Events and infos as programs see them, and events as programs write them. Spec: 10 §C4, §C9.


_EVENT = {"type": str, "data": None, "metadata": dict, "cost": float, "turn_id": str}
_HIDDEN = ("definition",)


def event_value(event: Event) -> Dict:
    """Return an event in its shown form."""
    return encode_event(event)


def info_value(info: SessionInfo, listeners: Dict) -> Dict:
    """Return what lists show of a session; ``listeners`` says who of this program listens to it."""
    shown = {key: value for key, value in info._asdict().items() if key not in _HIDDEN}
    return shown | listeners


def drafts_of(caller: str, id: str, given: Any, defaults: Dict) -> list[EventDraft]:
    """Return the drafts of an event or a list of them. ``defaults``: metadata and turn of those without.

    Raises what `invalid` returns.
    """
    events = given if type(given) is list else [given]
    return [_draft(caller, id, event, defaults) for event in events]


def _draft(caller: str, id: str, event: Any, defaults: Dict) -> EventDraft:
    if type(event) is not dict or type(event.get("type")) is not str or not event["type"].strip():
        raise invalid(f"{caller}: an event must be a dict with a string `type`", id)
    unknown = next((key for key in event if key not in _EVENT), None)
    if unknown is not None:
        raise invalid(f'{caller}: unknown key "{unknown}" of an event ({hint(unknown, _EVENT)})', id)
    metadata, cost = event.get("metadata"), event.get("cost") or 0.0
    if metadata is not None and type(metadata) is not dict:
        raise invalid(f"{caller}: `metadata` of an event must be a dict", id)
    if type(cost) not in (int, float):
        raise invalid(f"{caller}: `cost` of an event must be a number", id)
    merged = {**(defaults.get("metadata") or {}), **(metadata or {})}
    return EventDraft(
        event["type"],
        event.get("data"),
        merged or None,
        float(cost),
        turn=event.get("turn_id") or defaults.get("turn_id"),
    )


# Who of a program listens to sessions: watches as channels, observers, listeners. Spec: 10 §C9, §C10.


#: How often a watch looks for what comes from elsewhere. Seconds.
_LOOK: Final = 0.05


class _Watched(NamedTuple):
    id: str
    watch: Watch | LiveWatch
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

    def watch(self, session: Session, watch: Watch | LiveWatch, *, looks: bool) -> Channel:
        """Return a channel of what ``watch`` gives. ``looks``: not only when this process appends."""
        tasks = self._vm.tasks
        channel = Channel(tasks, f"session {session.id}", 1)
        bell = self._beside.bell()
        leave = session.observe(lambda event: bell.ring())
        self._watches.append(_Watched(session.id, watch, channel, bell.ring))

        def pump() -> None:
            try:
                while (found := watch.next(timeout=0)) is not None or not watch.closed:
                    if found is None:
                        bell.wait(seconds=_LOOK if looks else None)
                    elif not channel.send(_value(found)):
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


def _value(found: Event | Chunk) -> Dict:
    """Return what a watch gives, as a program sees it."""
    if isinstance(found, Chunk):
        return {"type": "chunk", **found._asdict()}
    return event_value(found)


def _over() -> None:
    """What a token stands for that was ended."""
