"""Turns that a server has begun, one at a time for a session, and those of a server that is gone.

A turn runs as a task of the server, whoever waits for it. What is known of it is in the session's log, under
its key, so every server knows it; one whose server has died is entered again by the next one that gets the
session's lease. A program's turn isn't: nobody knows what it has done. Who runs one holds the lease
`program:<session>`, and the session notes whose it is. Spec: 11 §1.6, 10 §C16.5.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from harnpy.client import types as t
from harnpy.faults import Fault
from harnpy.serve import shown
from harnpy.serve.shown import KEYS
from harnpy.session import events as kinds
from harnpy.session.aio import in_thread
from harnpy.session.errors import SessionBusy
from harnpy.session.events import position
from harnpy.session.log import KIND
from harnpy.session.registers import IN_PROGRESS
from harnpy.storage.contract import HeadQuery, all_heads
from harnpy.storage.errors import LeaseHeld, StorageError
from harnpy.storage.leases import KeptLease, Machine
from harnpy.world.clock import RealClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harnpy.serve.feeds import Feed, Feeds
    from harnpy.session.agents import TurnResult
    from harnpy.session.events import Event
    from harnpy.session.live import LiveSession
    from harnpy.session.runtime import SessionRuntime
    from harnpy.storage.contract import Head

    #: Runs a turn: session, prompt, key, and the options of the send.
    Prompting = Callable[[str, Any, str | None, dict[str, Any]], Awaitable[TurnResult]]
    #: Whether the turns of a session, or of the agent of that name, have keys.
    TakesKeys = Callable[[str, str | None], bool]
    Blocking = Callable[[Callable[[], Any]], Awaitable[Any]]

#: The register that holds the options of the last send which had any.
OPTIONS: Final = "metadata.serve.send"
#: Seconds between two looks for turns whose server is gone; microseconds by which looks overlap.
LOOK: Final = 1.0
MARGIN: Final = 10_000_000

#: Seconds that whoever runs a program may take to note it, or to let go of a session once it has ended.
_NOTING: Final = 0.5
#: Seconds that turns which are handed on may take to stop.
_STOPPING: Final = 1.0
_NOTES: Final = frozenset({kinds.REGISTER_SET})

_log = logging.getLogger(__name__)


class Sending:
    """A turn that runs here."""

    def __init__(self, id: str, key: str, feed: Feed) -> None:
        self.id = id
        self.key = key
        self.feed = feed
        self.task: asyncio.Task[TurnResult] | None = None
        #: Whether the log has its end. What is behind that is over soon.
        self.is_over = False
        self._turn: int | None = None
        self._begun = asyncio.Event()

    @property
    def is_running(self) -> bool:
        return self.task is not None and not self.task.done()

    def begin(self, turn: int | None = None) -> None:
        """Note that the turn is in the log, and the number of its first event."""
        self._turn = turn
        self._begun.set()

    def look_at(self, event: t.Event) -> None:
        """Take notice of an event of the session."""
        if event.type == kinds.TURN_STARTED and event.data.get("key") == KEYS + self.key:
            self.begin(event.seq)
        elif event.type == kinds.TURN_COMPLETED and event.turn is not None and event.turn == self._turn:
            self.is_over = True

    @property
    def has_begun(self) -> bool:
        return self._begun.is_set()

    async def begins(self) -> None:
        """Wait until the turn is in the log, or has failed."""
        assert self.task is not None
        begun = asyncio.ensure_future(self._begun.wait())
        try:
            await asyncio.wait([begun, self.task], return_when=asyncio.FIRST_COMPLETED)
        finally:
            begun.cancel()


class Sends:
    """The turns of a server. ``prompting`` runs one."""

    def __init__(
        self,
        runtime: SessionRuntime,
        feeds: Feeds,
        prompting: Prompting,
        takes_keys: TakesKeys,
        blocking: Blocking,
    ) -> None:
        self._runtime = runtime
        self._feeds = feeds
        self._prompting = prompting
        self._takes_keys = takes_keys
        self._blocking = blocking
        self._machine = Machine()
        self._running: dict[str, Sending] = {}
        #: Sessions with a turn that has no end, as far as was looked, and the newest head that was seen.
        self._open: set[str] = set()
        self._lock = Lock()
        self._seen = 0
        #: Up to where all sessions were looked at, a page a look.
        self._swept: str | None = None
        self._looking: asyncio.Task[None] | None = None

    # Beginning a turn.

    def running(self, id: str) -> Sending | None:
        """Return the turn of a session that runs here."""
        found = self._running.get(id)
        return found if found is not None and found.is_running else None

    @property
    def all(self) -> list[Sending]:
        return [sending for sending in self._running.values() if sending.is_running]

    async def begin(self, id: str, prompt: Any, key: str, options: dict[str, Any]) -> Sending | None:
        """Begin the turn of that key, and return it once it is in the log; None for one that has ended, or
        that another server works on.

        Raises `SessionBusy` while another turn runs, and what keeps this one from beginning.
        """
        running = self.running(id)
        if running is not None and running.is_over and running.key != key:
            await self.wait(running)
            running = self.running(id)
        if running is None:
            known = await self._blocking(lambda: self.known(id, key))
            if known is not None and known.status != "running":
                return None
            owner = await self._blocking(lambda: self._holder(id))
            if owner is not None and known is not None:
                return None
            if owner is not None:
                raise SessionBusy(f"session '{id}' is busy: a turn runs in {owner}", id)
            running = self.running(id) or await self._start(id, prompt, key, options)
        if running.key != key:
            raise SessionBusy(f"session '{id}' is busy: its turn '{running.key}' hasn't ended", id)
        await running.begins()
        task = running.task
        if not running.has_begun and task is not None and task.done() and not task.cancelled():
            error = task.exception()
            if error is not None and await self._blocking(lambda: self.known(id, key)) is None:
                raise error
            if isinstance(error, SessionBusy):
                return None  # another server was faster with the same key
        return running

    def known(self, id: str, key: str) -> t.Turn | None:
        """Return what the log says of the turn of a key. May wait for the store."""
        live = self._runtime.get(id)
        started = shown.find_turn(live, key)
        if started is not None:
            return shown.turn(live, started, key)
        noted = live.read(types=_NOTES, reverse=True)
        note = next((each.body["value"] for each in noted if _is_note(each, key)), None)
        if note is None or "by" not in note:
            return None
        if note.get("turn") is not None:
            return shown.turn(live, live.event(note["turn"]), key)
        if "error" in note:
            is_cancelled = note["error"] == "cancelled"
            return t.Turn(key=key, status="stopped" if is_cancelled else "failed", error=note["error"])
        if note.get("session") != id:
            return t.Turn(key=key, status="stopped")  # it is the turn of the session that this is a fork of
        if self._program(live) != note:
            return t.Turn(key=key, status="failed", error="the server that ran this program is gone")
        return t.Turn(key=key, status="running")

    def _program(self, live: LiveSession) -> dict[str, Any] | None:
        """Return the note of the program that runs in a session, in whatever process."""
        note = live.get(OPTIONS)
        if not isinstance(note, dict) or note.get("session") != live.id or "turn" in note or "error" in note:
            return None  # a fork has the note of the session that it comes from
        here = self.running(live.id)
        if here is not None and here.key == note["key"]:
            return note
        return note if self._runtime.store.holder(_program_lease(live.id)) == note["by"] else None

    def _holder(self, id: str) -> str | None:
        """Return the other process that works on a session with an open turn, or whatever process runs a
        program in it; None if there is none."""
        live = self._runtime.get(id)
        program = self._program(live)
        if program is not None:
            found: str = program["by"]
            return found
        return self._turn_holder(live)

    def _turn_holder(self, live: LiveSession) -> str | None:
        owner = self._runtime.store.holder(f"{KIND}:{live.id}") if shown.open_turns(live) else None
        return None if owner == self._machine.owner() else owner

    def at_work(self, live: LiveSession) -> str | None:
        """Return the key of the turn that runs in a session, in whatever process, or that a server is about
        to enter again; the turn's id where it has none. May wait for the store."""
        program = self._program(live)
        if program is not None:
            key: str = program["key"]
            return key
        for turn in shown.open_turns(live):
            # One without such a key is entered again by nobody. Sessions in memory have no leases.
            is_ours = str(turn.body.get("key", "")).startswith(KEYS)
            is_in_memory = self._runtime.store.url.startswith("memory:")
            if is_ours or is_in_memory or self._runtime.store.holder(f"{KIND}:{live.id}") is not None:
                return shown.key_of(turn) or turn.id
        return None

    def held(self, id: str) -> str | None:
        """Return the key of the turn that a server works on now, whichever it is. May wait for the store."""
        live = self._runtime.get(id)
        program = self._program(live)
        keys = (
            [program["key"]]
            if program is not None
            else [
                shown.key_of(turn)
                for turn in shown.open_turns(live)
                if str(turn.body.get("key", "")).startswith(KEYS)
            ]
        )
        is_held = program is not None or (keys and self._runtime.store.holder(f"{KIND}:{id}") is not None)
        return keys[0] if is_held else None

    async def _start(self, id: str, prompt: Any, key: str, options: dict[str, Any]) -> Sending:
        feed = await self._feeds.open(id)
        running = self.running(id)
        if running is not None:  # somebody was faster
            self._feeds.leave(id, feed)
            return running
        sending = Sending(id, key, feed)
        feed.observers.append(sending.look_at)
        sending.task = asyncio.create_task(self._run(sending, prompt, options), name=f"turn {key} of {id}")
        sending.task.add_done_callback(lambda task: self._ended(sending, task))
        self._running[id] = sending
        return sending

    async def _run(self, sending: Sending, prompt: Any, options: dict[str, Any]) -> TurnResult:
        live, note = sending.feed.live, {"key": sending.key, **options}
        if await self._blocking(partial(self._takes_keys, sending.id, options.get("agent"))):
            resumed = await self._blocking(partial(shown.find_turn, live, sending.key))
            if resumed is not None:
                sending.begin(resumed.seq)
            elif options:
                await self._blocking(partial(live.set, OPTIONS, note))
            return await self._prompting(sending.id, prompt, KEYS + sending.key, options)
        # A program's turns have no key: the session notes whose they are.
        note |= {"by": self._machine.owner(), "session": sending.id}
        held: list[KeptLease] = []
        try:
            await in_thread(partial(self._note_program, live, note, held))
            sending.begin()
            result = await self._prompting(sending.id, prompt, None, options)
            ended = {**note, "turn": position(result.turn_id, sending.id)}
            await self._blocking(partial(live.set, OPTIONS, ended))
            return result
        except BaseException as error:
            if held:
                reason = "cancelled" if isinstance(error, asyncio.CancelledError) else str(error)
                await in_thread(partial(live.set, OPTIONS, {**note, "error": reason or type(error).__name__}))
            raise
        finally:
            for lease in held:
                await in_thread(partial(_let_go, lease))

    def _note_program(self, live: LiveSession, note: dict[str, Any], held: list[KeptLease]) -> None:
        """Note that a program runs in a session, and have ``held`` the lease that says so as long as it does.
        Raises `SessionBusy` while something runs there, and for a key that is known by now."""
        id, key = live.id, note["key"]
        try:
            lease = self._runtime.store.lease(_program_lease(id), wait=_NOTING)
        except LeaseHeld as error:
            raise SessionBusy(f"session '{id}' is busy: a program runs in {error.owner}", id) from None
        kept = KeptLease(lease)
        try:
            if self._turn_holder(self._runtime.get(id)) is not None or self.known(id, key) is not None:
                raise SessionBusy(f"session '{id}' is busy: another server was faster", id)
            live.set(OPTIONS, note)
        except BaseException:
            _let_go(kept)
            raise
        held.append(kept)

    def _ended(self, sending: Sending, task: asyncio.Task[TurnResult]) -> None:
        sending.feed.observers.remove(sending.look_at)
        sending.feed.wake()  # whoever waits for the end
        self._feeds.leave(sending.id, sending.feed)
        if self._running.get(sending.id) is sending:
            del self._running[sending.id]
        if not task.cancelled() and task.exception() is not None:
            _log.info("turn %s of session %s failed: %s", sending.key, sending.id, task.exception())

    async def wait(self, sending: Sending) -> None:
        """Wait until the turn has ended, however it does."""
        if sending.task is not None:
            await asyncio.wait([sending.task])

    def cancel(self, id: str, key: str | None = None) -> bool:
        """Cancel the turn that runs here, if it is that of the key."""
        running = self.running(id)
        if running is None or running.task is None or running.is_over or key not in (None, running.key):
            return False
        return running.task.cancel()

    # Turns whose server is gone.

    def open_sessions(self) -> list[str]:
        """Return the sessions with a turn that has no end, in whatever process. May wait for the store."""
        store, now = self._runtime.store, round(RealClock.now() * 1_000_000)
        with self._lock:
            newest = self._seen
            for head in all_heads(store, HeadQuery(KIND, order="updated")):
                if head.updated < self._seen - MARGIN:
                    break
                newest = max(newest, head.updated)
                self._look_at(head)
            self._seen = min(newest, now)
            # Another machine's clock may be behind, or this one set back: a page of all sessions, too.
            page = store.heads(HeadQuery(KIND, order="id", after=self._swept))
            for head in page.items:
                self._look_at(head)
            self._swept = page.next
            return sorted(self._open)

    def _look_at(self, head: Head) -> None:
        (self._open.add if _is_open(head) else self._open.discard)(head.name)

    async def recover(self) -> int:
        """Enter the turns again that a server has begun and nobody works on. Return how many those are."""
        found = 0
        for id in await self._blocking(self.open_sessions):
            if self.running(id) is not None:
                continue
            try:
                orphan = await self._blocking(partial(self._orphan, id))
                if orphan is not None:
                    prompt, key, options = orphan
                    await self._start(id, prompt, key, options)
                    found += 1
            except Fault as error:  # the others' turns go on
                _log.warning("the turn of session '%s' can't be entered again now: %s", id, error)
        return found

    def _orphan(self, id: str) -> tuple[Any, str, dict[str, Any]] | None:
        """Return prompt, key and options of the session's turn, if nobody works on it."""
        store = self._runtime.store
        head = store.head(KIND, id)
        if head is None or not _is_open(head):
            with self._lock:
                self._open.discard(id)
            return None
        if store.holder(f"{KIND}:{id}") is not None:
            return None
        live = self._runtime.get(id)
        turns = [turn for turn in shown.open_turns(live) if str(turn.body.get("key", "")).startswith(KEYS)]
        if len(turns) != 1 or turns[0].seq <= live.view.linked_at:
            return None
        turn = turns[0]
        key = shown.key_of(turn) or ""
        options = live.get(OPTIONS) or {}
        options = (
            {name: value for name, value in options.items() if name != "key"}
            if options.get("key") == key
            else {}
        )
        return shown.prompt_of(live, turn) or None, key, options

    def keep_recovering(self, pause: float = LOOK) -> None:
        """Look for such turns now, and again and again until `close`."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._keep_looking(pause))

    async def _keep_looking(self, pause: float) -> None:
        while True:
            try:
                await self.recover()
            except Exception:
                _log.exception("looking for turns whose server is gone failed")
            await asyncio.sleep(pause)

    async def drain(self, grace: float) -> int:
        """Let the turns that run end, so many seconds at most; what is left is handed on to the next server.
        Return how many those are."""
        if self._looking is not None:
            self._looking.cancel()
        await self._wait_for_all(grace)
        left = [sending.id for sending in self.all]
        for id in left:
            await in_thread(partial(self._runtime.hand_on, id))
        await self._wait_for_all(_STOPPING)
        return len(left)

    async def _wait_for_all(self, seconds: float) -> None:
        tasks = [sending.task for sending in self.all if sending.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)


def _program_lease(id: str) -> str:
    return f"program:{id}"


def _let_go(lease: KeptLease) -> None:
    try:
        lease.release()
    except StorageError as error:  # it ends by itself
        _log.warning("the lease %s wasn't let go: %s", lease.lease.key, error)


def _is_note(event: Event, key: str) -> bool:
    value = event.body.get("value")
    return event.body.get("key") == OPTIONS and isinstance(value, dict) and value.get("key") == key


def _is_open(head: Head) -> bool:
    return head.data.get("execution") == IN_PROGRESS
