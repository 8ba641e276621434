"""A loop that goes idle instead of ending: it rests until something wakes it. Spec: 07 §12, §6.4.

     turn without calls ─▶ consolidate ─▶ save ─▶ wait ─┬─▶ host input, watch, timer: the next turn
                                                        ├─▶ nothing can wake it: `idle`
                                                        └─▶ nothing did, too often: `watchdog`

A snapshot holds the loop at rest. Another run goes on from there: with the messages, texts, counters and
the times of the watched files; functions it brings itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.agent.daemon.owner import Nobody
from harnpy.agent.daemon.snapshot import Snapshot, StateFiles
from harnpy.agent.daemon.watching import Watch
from harnpy.session.effects import rfc3339
from harnpy.session.transcript import MESSAGE_KINDS, lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.agent.daemon.options import DaemonOptions
    from harnpy.agent.daemon.owner import Owner
    from harnpy.agent.loop.loop import Loop
    from harnpy.reading.dicts import Dict


IDLE, WATCHDOG = "idle", "watchdog"
_WOKEN, _HOST_INPUT = "daemon_wake", "host_input"
#: How long a daemon without a timer rests before it looks around again, in ms; the last one stays.
_BACKOFF = (100, 500, 1000, 2000)


class Rest(NamedTuple):
    """How a rest ended: the status that ends the loop, if it does, and what hooks hear."""

    status: str | None
    mark: str


class Daemon:
    """The resting side of a ``loop``. ``caller`` is the builtin that error texts name, and
    ``emit(type, **fields)`` tells subscribers.
    """

    def __init__(self, options: DaemonOptions, loop: Loop, caller: str, emit: Callable[..., None]) -> None:
        self.options = options
        self.owner: Owner = Nobody(loop.models.sleep)
        self._loop = loop
        self._emit = emit
        self._files = StateFiles(loop.runtime.files, loop.conversation.effects, caller)
        self._watch = Watch(options.watch_paths, self._files.modified)
        self._backoff_ms = _BACKOFF[0]
        self._resumed = False
        self._past_events: list[Dict] = []

    # Where it begins.

    def begin(self, system: str | None, tool_format: str, opening: Iterable[Dict]) -> None:
        """Load what came before, a snapshot's state among it, and add the messages that the loop begins with.

        A session that holds messages knows better than the snapshot what was said.
        """
        dialogue, path = self._loop.dialogue, self.options.resume_path
        snapshot = None if path is None else self._files.snapshot(path)
        dialogue.begin(system, tool_format, ())
        messages = list(opening)
        if snapshot is not None:
            messages = [message for message in messages if not _is_blank(message)]
            if not dialogue.conversation.messages:
                lifecycle = _lifecycle(snapshot.transcript_events)
                dialogue.restore(snapshot.visible_messages, snapshot.transcript_summary, lifecycle)
                deferred = snapshot.deferred_user_messages
                messages = [*({"role": "user", "content": text} for text in deferred), *messages]
            self._restore(snapshot)
        dialogue.recorded = self._recorded(snapshot)
        for message in messages:
            dialogue.add(message)

    def _recorded(self, snapshot: Snapshot | None) -> list[Dict]:
        """All that was said so far; what came after the snapshot is in the session."""
        messages = self._loop.conversation.messages
        if snapshot is None:
            return list(messages)
        return [*snapshot.recorded_messages, *messages[len(snapshot.visible_messages) :]]

    def _restore(self, snapshot: Snapshot) -> None:
        loop = self._loop
        last = snapshot.last_iteration_text
        loop.texts = [snapshot.total_text.removesuffix(last), last]
        loop.iterations = snapshot.total_iterations
        loop.dispatcher.calls += snapshot.all_tools_used
        loop.dispatcher.rejected |= dict.fromkeys(snapshot.rejected_tools)
        loop.turns.verification.restore(snapshot.last_run_exit_code)
        self._watch.restore(snapshot.watch_state)
        self._backoff_ms = snapshot.idle_backoff_ms
        self._past_events = _lifecycle(snapshot.transcript_events)
        self._resumed = True

    def go_on(self) -> str | None:
        """Rest first, if the run that is gone on from had nothing left to answer; the status, as `idle`'s."""
        messages = self._loop.conversation.messages
        if not self._resumed or not messages or messages[-1].get("role") != "assistant":
            return None
        return self.idle().status

    # Resting.

    def idle(self) -> Rest:
        """Rest until something wakes the loop, or nothing will."""
        self._loop.conversation.store()  # others see what was said, and so does a run after an abort
        if self.options.consolidates:
            self._loop.dialogue.consolidate()
        self.save(IDLE)
        begin, attempts = self._loop.models.monotonic(), 0
        while not self._is_called():
            if attempts and attempts == self.options.watchdog_attempts:
                return self._give_up(attempts, begin)
            if not self._may_wake():
                return Rest(IDLE, IDLE)
            self._pause()
            woken = None if self._is_called() else self._look_around()
            if woken is not None:
                return woken
            attempts += 1
        return self._answer_call()

    def _may_wake(self) -> bool:
        options = self.options
        timed = options.wake_interval_ms is not None
        return timed or bool(options.watch_paths) or self.owner.listening

    def _pause(self) -> None:
        """Wait for the fixed interval, or a little longer each time; a call of the owner's ends it."""
        ms, clock = self.options.wake_interval_ms, self._loop.models.monotonic
        if ms is None:
            ms = self._backoff_ms
            self._backoff_ms = next((longer for longer in _BACKOFF if longer > ms), _BACKOFF[-1])
        until = clock() + ms / 1000
        while (left := until - clock()) > 0 and not self.owner.waiting():
            self.owner.wait(left)

    def _look_around(self) -> Rest | None:
        """Wake for what has happened outside; None when nothing has."""
        changed = self._watch.changes()
        if changed:
            return self._wake("watch", f"Daemon wake: watched paths changed: {', '.join(changed)}.", changed)
        if self.options.wake_interval_ms is not None:
            return self._wake("timer", "Daemon timer wake fired.", [])
        return None

    def _is_called(self) -> bool:
        """Whether somebody has something for the loop: its owner, or others who reach its session."""
        loop = self._loop
        id = loop.conversation.id
        said = self.owner.waiting() or bool(loop.conversation.waiting())
        return said or loop.runtime.sessions.has_feedback(id)

    def _answer_call(self) -> Rest:
        """Go on with what there is; injected messages and feedback join before the next model call."""
        loop = self._loop
        self._backoff_ms = _BACKOFF[0]
        if self.owner.waiting():
            text = self.owner.take()
            loop.dialogue.add({"role": "user", "content": text})
            delivery = {"delivery": IDLE}
            loop.conversation.note(
                lifecycle_event("host_input", text, role="user", visibility="public", metadata=delivery)
            )
        elif not loop.conversation.waiting():
            self._note_wake("resume", [], resumed=True)
            return Rest(None, _WOKEN)
        return Rest(None, _HOST_INPUT)

    def _wake(self, reason: str, text: str, paths: list[str]) -> Rest:
        self._backoff_ms = _BACKOFF[0]
        self._loop.dialogue.feed_back(reason, text)
        self._note_wake(reason, paths, resumed=False)
        return Rest(None, _WOKEN)

    def _note_wake(self, reason: str, paths: list[str], resumed: bool) -> None:
        metadata = {"reason": reason, "watch_paths": paths, "resumed": resumed}
        self._loop.conversation.note(lifecycle_event(_WOKEN, metadata=metadata))

    def _give_up(self, attempts: int, begin: float) -> Rest:
        ms = round((self._loop.models.monotonic() - begin) * 1000)
        self._emit("daemon_watchdog_tripped", attempts=attempts, elapsed_ms=ms)
        return Rest(WATCHDOG, WATCHDOG)

    # Its state.

    def save(self, state: str) -> None:
        """Write the loop's state, and let the owner know it. Raises `MisuseError` when that fails."""
        snapshot = self.snapshot(state)
        if self.options.path is not None:
            self._files.save(self.options.path, snapshot.as_dict())
        self.owner.saved(snapshot)

    def snapshot(self, state: str) -> Snapshot:
        loop = self._loop
        conversation = loop.conversation
        return Snapshot(
            saved_at=rfc3339(conversation.effects.now()),
            daemon_state=state,
            visible_messages=list(conversation.messages),
            recorded_messages=list(loop.dialogue.recorded or ()),
            transcript_summary=conversation.summary,
            transcript_events=self._events(),
            total_text="".join(loop.texts),
            last_iteration_text=loop.texts[-1] if loop.texts else "",
            all_tools_used=list(loop.dispatcher.calls),
            rejected_tools=list(loop.dispatcher.rejected),
            deferred_user_messages=loop.dialogue.deferred(),
            total_iterations=loop.iterations,
            idle_backoff_ms=self._backoff_ms,
            last_run_exit_code=loop.turns.verification.code,
            watch_state=dict(self._watch.state),
        )

    def _events(self) -> list[Dict]:
        """The transcript's events, with those of the runs before this one."""
        events = self._loop.conversation.transcript("active")["events"]
        own = _lifecycle(events)
        said = [event for event in events if event["kind"] in MESSAGE_KINDS]
        return [*said, *self._past_events, *own]


def _lifecycle(events: list[Dict]) -> list[Dict]:
    return [event for event in events if event.get("kind") not in MESSAGE_KINDS]


def _is_blank(message: Dict) -> bool:
    content = message.get("content")
    return isinstance(content, str) and not content.strip()
