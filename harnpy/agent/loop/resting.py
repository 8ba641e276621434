"""A loop that goes idle instead of ending: it rests until something wakes it. Spec: 07 §12, §6.4.

       turn without calls ─▶ consolidate ─▶ save ─▶ wait ─┬─▶ host input, watch, timer: the next turn
                                                          ├─▶ nothing can wake it: `idle`
                                                          └─▶ nothing did, too often: `watchdog`

A snapshot holds the loop's state at rest. A later run continues from it, with the messages, texts, counters
and times of the watched files; it brings its own functions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol, get_type_hints

from msgspec import Meta, ValidationError, convert

from harnpy.faults import MisuseError
from harnpy.formats.dicts import Dict
from harnpy.formats.json import parse_json, pretty_json
from harnpy.session.transcript import MESSAGE_KINDS, lifecycle_event
from harnpy.world.clock import rfc3339
from harnpy.world.files import plain_reason, private_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from harnpy.agent.loop.completion import LoopState
    from harnpy.agent.loop.loop_settings import DaemonOptions
    from harnpy.agent.loop.model_input import ModelInput
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.workplace import Workplace
    from harnpy.world.files import Files

    Times = dict[str, int | None]

TYPE = "daemon_snapshot"

Count = Annotated[int, Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class DaemonSnapshot:
    """``visible_messages`` are what the model sees, ``recorded_messages`` all that ever entered the
    conversation. ``watch_state`` has the watched files' times as last seen.
    """

    saved_at: str
    daemon_state: str
    total_text: str
    last_iteration_text: str
    visible_messages: list[Dict]
    recorded_messages: list[Dict]
    transcript_events: list[Dict]
    all_tools_used: list[Any]
    rejected_tools: list[Any]
    deferred_user_messages: list[Any]
    total_iterations: Count
    idle_backoff_ms: Count
    transcript_summary: str | None
    last_run_exit_code: int | None
    watch_state: dict[str, int | None]

    def as_dict(self) -> Dict:
        return {"_type": TYPE, **{name: getattr(self, name) for name in _FIELDS}}


_FIELDS = tuple(field.name for field in fields(DaemonSnapshot))


class StateFiles:
    """JSON files that hold a daemon's state. Errors name ``caller``, a builtin."""

    def __init__(self, files: Files, workplace: Workplace, caller: str) -> None:
        self._files = files
        self._workplace = workplace
        self._caller = caller

    def save(self, path: str, value: Dict) -> None:
        """Write ``value``. A crash leaves the former contents."""
        try:
            private_files(self._files).replace_text(self._workplace.path(path), pretty_json(value) + "\n")
        except OSError as error:
            why = error.strerror or error
            raise MisuseError(f"{self._caller}: failed to write '{path}': {why}") from error

    def modified(self, path: str) -> int | None:
        return self._files.modified(self._workplace.path(path))

    def snapshot(self, path: str) -> DaemonSnapshot:
        read = self.load(path, TYPE, DaemonSnapshot)
        return DaemonSnapshot(**{name: read[name] for name in _FIELDS})

    def load(self, path: str, type: str, shape: type) -> Dict:
        """Return the value in a file of that ``type``; ``shape`` annotates its keys."""
        try:
            read = parse_json(self._files.read_text(self._workplace.path(path)))
        except (OSError, ValueError) as error:
            why = plain_reason(error)
            raise MisuseError(f"{self._caller}: failed to read '{path}': {why}") from error
        problem = snapshot_problem(read, type, shape)
        if problem is not None:
            raise MisuseError(f"{self._caller}: '{path}' is no {type.replace('_', ' ')}: {problem}")
        value: Dict = read
        return value


def snapshot_problem(read: Any, type: str, shape: Any) -> str | None:
    """Return what is wrong with a snapshot of that ``type``, if anything; ``shape`` annotates its keys."""
    if not isinstance(read, dict) or read.get("_type") != type:
        return f"`_type` must be {type}"
    hints = get_type_hints(shape, include_extras=True)
    missing = [key for key in hints if key not in read]
    if missing:
        return f"missing {', '.join(missing)}"
    wrong = next((key for key, hint in hints.items() if not _fits(read[key], hint)), None)
    return None if wrong is None else f"`{wrong}` has the wrong type"


def _fits(value: Any, hint: Any) -> bool:
    try:
        convert(value, hint)
    except ValidationError:
        return False
    return True


# The owner of a daemon: where its events come from, and who is notified of its state. Spec: 07 §12.


class Owner(Protocol):
    """Whatever keeps a daemon running."""

    #: Whether anything may ever come for the daemon.
    listening: bool

    def waiting(self) -> bool:
        """Return True if something is waiting for the daemon."""

    def take(self) -> str:
        """Return the first waiting item, as a user message. What was taken before is done."""

    def saved(self, snapshot: DaemonSnapshot) -> None:
        """Receive the state of the daemon, which rests or has ended."""

    def wait(self, seconds: float) -> None:
        """Wait at most so long, while other tasks run. May return early."""


class NoOwner:
    """The owner of a daemon that a program runs itself."""

    listening = False

    def __init__(self, sleep: Callable[[float], Any]) -> None:
        self._sleep = sleep

    def waiting(self) -> bool:
        return False

    def take(self) -> str:
        raise AssertionError("nothing is waiting")

    def saved(self, snapshot: DaemonSnapshot) -> None:
        """Ignore it."""

    def wait(self, seconds: float) -> None:
        self._sleep(seconds)


# Files whose changes wake a daemon. Spec: 07 §12.


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


IDLE, WATCHDOG = "idle", "watchdog"
_WOKEN, _HOST_INPUT = "daemon_wake", "host_input"
#: How long a daemon without a timer waits between two looks around, in ms. The last one repeats.
_BACKOFF = (100, 500, 1000, 2000)


class Rest(NamedTuple):
    """The end of a rest: the status that ends the loop, if any, and the mark that hooks receive."""

    status: str | None
    mark: str


class Daemon:
    """The resting side of a loop, whose ``state`` and ``model_input`` these are. Errors name ``caller``, a
    builtin; ``emit(type, **fields)`` notifies subscribers.
    """

    def __init__(
        self,
        options: DaemonOptions,
        runtime: Runtime,
        state: LoopState,
        model_input: ModelInput,
        caller: str,
        emit: Callable[..., None],
    ) -> None:
        self.options = options
        self.owner: Owner = NoOwner(runtime.tasks.sleep)
        self._sessions = runtime.sessions
        self._clock = runtime.world.clock.monotonic
        self._state = state
        self._model_input = model_input
        self._conversation = model_input.conversation
        self._emit = emit
        self._files = StateFiles(runtime.world.held().files, runtime.workplace, caller)
        self._watch = Watch(options.watch_paths, self._files.modified)
        self._backoff_ms = _BACKOFF[0]
        self._resumed = False
        self._past_events: list[Dict] = []

    # Where it begins.

    def begin(self, system: str | None, tool_format: str, opening: Iterable[Dict]) -> None:
        """Load what came before, including a snapshot's state, and add the loop's opening messages.

        The messages of a session take precedence over those of the snapshot.
        """
        model_input, path = self._model_input, self.options.resume_path
        snapshot = None if path is None else self._files.snapshot(path)
        model_input.begin(system, tool_format, ())
        messages = list(opening)
        if snapshot is not None:
            messages = [message for message in messages if not _is_blank(message)]
            if not model_input.conversation.messages:
                lifecycle = _lifecycle(snapshot.transcript_events)
                model_input.restore(snapshot.visible_messages, snapshot.transcript_summary, lifecycle)
                deferred = snapshot.deferred_user_messages
                messages = [*({"role": "user", "content": text} for text in deferred), *messages]
            self._restore(snapshot)
        model_input.recorded = self._recorded(snapshot)
        for message in messages:
            model_input.add(message)

    def _recorded(self, snapshot: DaemonSnapshot | None) -> list[Dict]:
        """Return all messages so far; those after the snapshot are in the session."""
        messages = self._conversation.messages
        if snapshot is None:
            return list(messages)
        return [*snapshot.recorded_messages, *messages[len(snapshot.visible_messages) :]]

    def _restore(self, snapshot: DaemonSnapshot) -> None:
        state, last = self._state, snapshot.last_iteration_text
        state.texts = [snapshot.total_text.removesuffix(last), last]
        state.iterations = snapshot.total_iterations
        state.calls += snapshot.all_tools_used
        state.rejected |= dict.fromkeys(snapshot.rejected_tools)
        state.verification.restore(snapshot.last_run_exit_code)
        self._watch.restore(snapshot.watch_state)
        self._backoff_ms = snapshot.idle_backoff_ms
        self._past_events = _lifecycle(snapshot.transcript_events)
        self._resumed = True

    def resume(self) -> str | None:
        """Rest first if the former run had nothing left to answer. Return the status, as `idle` does."""
        messages = self._conversation.messages
        if not self._resumed or not messages or messages[-1].get("role") != "assistant":
            return None
        return self.idle().status

    # Resting.

    def idle(self) -> Rest:
        """Rest until something wakes the loop, or nothing will."""
        self._conversation.store()  # so that others, and a run after an abort, see what was said
        if self.options.consolidates:
            self._model_input.consolidate()
        self.save(IDLE)
        begin, attempts = self._clock(), 0
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
        """Wait for the fixed interval, or a little longer each time; the owner can end the wait."""
        ms = self.options.wake_interval_ms
        if ms is None:
            ms = self._backoff_ms
            self._backoff_ms = next((longer for longer in _BACKOFF if longer > ms), _BACKOFF[-1])
        until = self._clock() + ms / 1000
        while (left := until - self._clock()) > 0 and not self.owner.waiting():
            self.owner.wait(left)

    def _look_around(self) -> Rest | None:
        """Wake for something that happened outside; None when nothing has."""
        changed = self._watch.changes()
        if changed:
            return self._wake("watch", f"Daemon wake: watched paths changed: {', '.join(changed)}.", changed)
        if self.options.wake_interval_ms is not None:
            return self._wake("timer", "Daemon timer wake fired.", [])
        return None

    def _is_called(self) -> bool:
        """Return True if there is something for the loop: from its owner, or injected into its session."""
        waiting = self.owner.waiting() or bool(self._conversation.waiting())
        return waiting or self._sessions.has_feedback(self._conversation.id)

    def _answer_call(self) -> Rest:
        """Wake with what there is. Injected messages and feedback join before the next model call."""
        self._backoff_ms = _BACKOFF[0]
        if self.owner.waiting():
            text = self.owner.take()
            self._model_input.add({"role": "user", "content": text})
            delivery = {"delivery": IDLE}
            self._conversation.note(
                lifecycle_event("host_input", text, role="user", visibility="public", metadata=delivery)
            )
        elif not self._conversation.waiting():
            self._note_wake("resume", [], resumed=True)
            return Rest(None, _WOKEN)
        return Rest(None, _HOST_INPUT)

    def _wake(self, reason: str, text: str, paths: list[str]) -> Rest:
        self._backoff_ms = _BACKOFF[0]
        self._model_input.feed_back(reason, text)
        self._note_wake(reason, paths, resumed=False)
        return Rest(None, _WOKEN)

    def _note_wake(self, reason: str, paths: list[str], resumed: bool) -> None:
        metadata = {"reason": reason, "watch_paths": paths, "resumed": resumed}
        self._conversation.note(lifecycle_event(_WOKEN, metadata=metadata))

    def _give_up(self, attempts: int, begin: float) -> Rest:
        ms = round((self._clock() - begin) * 1000)
        self._emit("daemon_watchdog_tripped", attempts=attempts, elapsed_ms=ms)
        return Rest(WATCHDOG, WATCHDOG)

    # Its state.

    def save(self, state: str) -> None:
        """Write the loop's state and notify the owner. Raises `MisuseError` when that fails."""
        snapshot = self.snapshot(state)
        if self.options.path is not None:
            self._files.save(self.options.path, snapshot.as_dict())
        self.owner.saved(snapshot)

    def snapshot(self, state: str) -> DaemonSnapshot:
        conversation, now = self._conversation, self._state
        return DaemonSnapshot(
            saved_at=rfc3339(conversation.world.clock.now()),
            daemon_state=state,
            visible_messages=list(conversation.messages),
            recorded_messages=list(self._model_input.recorded or ()),
            transcript_summary=conversation.summary,
            transcript_events=self._events(),
            total_text="".join(now.texts),
            last_iteration_text=now.texts[-1] if now.texts else "",
            all_tools_used=list(now.calls),
            rejected_tools=list(now.rejected),
            deferred_user_messages=self._model_input.deferred(),
            total_iterations=now.iterations,
            idle_backoff_ms=self._backoff_ms,
            last_run_exit_code=now.verification.code,
            watch_state=dict(self._watch.state),
        )

    def _events(self) -> list[Dict]:
        """Return the transcript's events, including those of earlier runs."""
        events = self._conversation.transcript("active")["events"]
        own = _lifecycle(events)
        said = [event for event in events if event["kind"] in MESSAGE_KINDS]
        return [*said, *self._past_events, *own]


def _lifecycle(events: list[Dict]) -> list[Dict]:
    return [event for event in events if event.get("kind") not in MESSAGE_KINDS]


def _is_blank(message: Dict) -> bool:
    content = message.get("content")
    return isinstance(content, str) and not content.strip()
