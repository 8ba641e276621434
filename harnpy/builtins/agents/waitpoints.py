"""Waitpoints and monitors: signals from outside, polling, and waiting for them.

Spec: 04 §30, 06 §28, 10 §C16.1, §C18.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

from harnpy.builtins.agents.agent_runtime import runtime_of
from harnpy.builtins.bridge.live_event_log import SOON, log_of, require_log, rest, wait_for_news
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.options import check_options
from harnpy.eventlog import waitpoints
from harnpy.eventlog.monitors import MATCHED, Monitor, MonitorPlan
from harnpy.eventlog.waitpoints import OPEN, TIMED_OUT, WaitpointError, Waitpoints, checked_id
from harnpy.session.events import WAIT_RESOLVED, WAIT_STARTED
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values import Duration, Fn, type_name
from harnpy.world.clock import milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Any

    from harnpy.eventlog.waitpoints import Point, Waiting, WaitResult
    from harnpy.formats.dicts import Dict
    from harnpy.vm.run.tasks import Task
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# The tasks of a program that wait for waitpoints, and who wakes them. Spec: 10 §C18.


class Waiters:
    """Each is woken once for each of its waitpoints: when that is open no more.

    Everybody who waits writes to the topic, too, so one look at it is for all of them.
    """

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._log = log_of(vm)
        self._count = 0
        self._tasks: dict[str, dict[Task, None]] = {}
        self._points: dict[str, Point] = {}

    @contextmanager
    def listening(self, points: Sequence[Point]) -> Iterator[None]:
        """Have the current task woken while it is in the block."""
        task = self._vm.tasks.current
        if self._count == 0:
            self._log.listeners.append(self._heard)
        self._count += 1
        for point in points:
            self._points[point.topic] = point
            self._tasks.setdefault(point.topic, {})[task] = None
        try:
            yield
        finally:
            for point in points:
                self._leave(point.topic, task)
            self._count -= 1
            if self._count == 0:
                self._log.listeners.remove(self._heard)

    def _leave(self, topic: str, task: Task) -> None:
        tasks = self._tasks.get(topic, {})
        tasks.pop(task, None)
        if not tasks:
            self._tasks.pop(topic, None)
            self._points.pop(topic, None)

    def _heard(self, topic: str) -> None:
        point = self._points.get(topic)
        if point is None:
            return
        point.read()
        if point.record.status != OPEN:
            for task in self._tasks.pop(topic, {}):
                self._vm.tasks.resume(task)


# A task that waits for something outside says so in its session's log. Spec: 10 §C16.1, §C18.


class SessionWait:
    """A block in which the current session waits. ``kind`` is for what, ``details`` is noted as well.

    ``status`` is what it came to, for the one who waits to say; a wait that raises was interrupted.
    """

    def __init__(self, vm: Vm, kind: str, wait_id: str, **details: Any) -> None:
        self.status = "interrupted"
        self._vm = vm
        self._session = sessions_of(vm).current_id()
        self._wait_id = wait_id
        self._begin = {"reason": kind, "external_id": wait_id, **details}

    def __enter__(self) -> SessionWait:
        self._tell(WAIT_STARTED, self._begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tell(WAIT_RESOLVED, {"reason": self.status, "external_id": self._wait_id})

    def _tell(self, type: str, payload: dict[str, Any]) -> None:
        if self._session is not None:
            runtime_of(self._vm).record(self._session, [(type, payload)])


# Waitpoints: signals from outside, and waiting for them. Spec: 04 §30, 06 §28, 10 §C18.


waitpoint_builtin = partial(declare, family="hitl", counted=True)

#: Seconds between two looks of somebody who has waited for long.
LATEST = 2.0
#: What to do when nobody else can complete anything.
_REMEDY = 'Keep events where others can write: `[event_log] store = "sqlite:events.db"` in harn.toml'


@waitpoint_builtin("waitpoint_create(id?: string | dict) -> dict")
def create(vm: Vm, id: Value = None) -> Value:
    """Return the waitpoint with that id, created if necessary; without an id, one is generated.

    Also with a dict: `{id, metadata}`.

    Example: waitpoint_create({id: "approved", metadata: {by: "legal"}}).status  // "open"
    """
    given: Dict = id if type(id) is dict else {"id": id}
    check_options(vm, "waitpoint_create", given)
    return _waitpoints(vm).create(given.get("id"), given.get("metadata")).to_dict()


@waitpoint_builtin("waitpoint_complete(id: string | dict, value?: any, options?: dict) -> dict")
def complete(vm: Vm, id: Value = ABSENT, value: Value = None, options: Value = None) -> Value:
    """Complete a waitpoint with a value, which everybody who waits receives. The first completion counts.

    Options: `by`; `create`: make it if there is none. `changed` says whether it was this completion.

    Example:
        waitpoint_create("delivered")
        let first = waitpoint_complete("delivered", {n: 3})
        let second = waitpoint_complete("delivered", {n: 4})
        [first.status, first.changed, second.changed, second.value]  // ["completed", true, false, {n: 3}]
    """
    given = _options(vm, "waitpoint_complete", options)
    point = _id(id)
    done = _waitpoints(vm).complete(
        point, value, by=given.get("by"), create=_flag(given, "create", otherwise=False)
    )
    return done.to_dict()


@waitpoint_builtin("waitpoint_cancel(id: string | dict, options?: dict) -> dict")
def cancel(vm: Vm, id: Value = ABSENT, options: Value = None) -> Value:
    """Cancel a waitpoint that is still open. Options: `reason`, `by`.

    Example:
        waitpoint_create("picked up")
        waitpoint_cancel("picked up", {reason: "returned"}).status  // "cancelled"
    """
    given = _options(vm, "waitpoint_cancel", options)
    return _waitpoints(vm).cancel(_id(id), reason=given.get("reason"), by=given.get("by")).to_dict()


@waitpoint_builtin("waitpoint_wait(ids: string | dict | list, options?: dict) -> dict")
def wait(vm: Vm, ids: Value = ABSENT, options: Value = None) -> Value:
    """Wait until waitpoints are completed, and return the outcome: `{status, waitpoints, wait_id, …}`.

    The status is `completed`, `cancelled`, `timed_out` or `interrupted`. Options: `timeout`; `all: false` to
    wait for one of them; `wait_id`: a wait entered again under its id keeps its deadline and its end.

    Example:
        spawn { waitpoint_complete("ready", "go", {create: true}) }
        waitpoint_wait("ready", {timeout: 5s}).waitpoints[0].value  // "go"
    """
    given = _options(vm, "waitpoint_wait", options)
    names = [_id(item) for item in ids] if type(ids) is list else [_id(ids)]
    waiting = _waitpoints(vm).enter(
        names,
        wait_id=given.get("wait_id"),
        timeout=seconds(given, "timeout"),
        all=_flag(given, "all", otherwise=True),
        session_id=sessions_of(vm).current_id(),
        run_id=vm.service(Patience, lambda vm: Patience()).run_id,
    )
    result = waiting.look()
    if result is None:
        with SessionWait(vm, "waitpoint", waiting.wait_id, waitpoint_ids=waiting.ids) as told:
            result = _awaited(vm, waiting)
            told.status = result.status
    return result.to_dict()


class Patience:
    """``wait(waiting)`` is how this Vm's programs wait for what may outlast the process, if not as tasks do;
    None for one that can't. ``run_id`` is the durable run that they are, if they are one, and ``told`` is
    called when a wait begins: with the waitpoints' ids, and what a request to people has there."""

    run_id: str | None = None
    told: Callable[[Sequence[str], Dict], object] = staticmethod(lambda ids, metadata: None)
    wait: Callable[[Waiting], WaitResult | None] = staticmethod(lambda waiting: None)


def _awaited(vm: Vm, waiting: Waiting) -> WaitResult:
    """Suspend the current task until the wait is over, or the task is asked to end."""
    outlasting = vm.service(Patience, lambda vm: Patience()).wait(waiting)
    if outlasting is not None:
        return outlasting
    log, left, begin = log_of(vm), waiting.seconds_left(), vm.tasks.now()
    until = None if left is None else begin + left
    outside = f"waitpoint {', '.join(waiting.ids)}", _REMEDY
    with vm.state(Waiters, lambda: Waiters(vm)).listening(waiting.points):
        while not vm.tasks.current.cancel_requested:
            poll = min(max(SOON, (vm.tasks.now() - begin) / 10), LATEST)
            rest(vm, log, until, poll=poll, outside=outside)
            result = waiting.look(is_over=until is not None and vm.tasks.now() >= until)
            if result is not None:
                return result
    return waiting.interrupted()


def _waitpoints(vm: Vm) -> Waitpoints:
    """Return the waitpoints of the Vm's log, once the rules let the program write there."""
    log = require_log(vm)
    return vm.state(
        Waitpoints,
        lambda: Waitpoints(log, now=lambda: vm.world.clock.now(), new_id=lambda: vm.world.ids.new()),
    )


# Arguments.


def _id(value: Value) -> Any:
    """Return the id of a waitpoint: a text, or a record of one."""
    given = value.get("id") if type(value) is dict else value
    if type(given) is not str:
        got = "nothing" if value is ABSENT else type_name(value)
        raise WaitpointError(f"expected a waitpoint or its id, got {got}")
    return given


def _options(vm: Vm, function: str, value: Value) -> Dict:
    if value is not None and type(value) is not dict:
        raise WaitpointError(f"`options` must be a dict or nil, got {type_name(value)}")
    check_options(vm, function, value)
    return value or {}


def _flag(given: Dict, key: str, *, otherwise: bool) -> bool:
    value = given.get(key)
    if value is None:
        return otherwise
    if type(value) is not bool:
        raise WaitpointError(f"`{key}` must be a bool, got {type_name(value)}")
    return value


def seconds(given: Dict, key: str) -> float | None:
    """Return a duration, or a number of milliseconds, in seconds; None when there is none."""
    value = given.get(key)
    if value is None:
        return None
    ms = value.ms if type(value) is Duration else value
    if type(ms) not in (int, float):
        raise WaitpointError(
            f"`{key}` must be a duration or a number of milliseconds, got {type_name(value)}"
        )
    if not 0 <= ms < float("inf"):
        raise WaitpointError(f"`{key}` must not be negative or endless, got {ms}")
    return float(ms) / 1000


# The builtin behind `std/monitors`: poll until a condition holds. Spec: 04 §30, 06 §28, 10 §C18.


_POLL_INTERVAL = 1.0


@builtin("__monitor_wait_for(options: dict) -> dict", family="hitl", counted=True)
def wait_for(vm: Vm, options: Value = None) -> Value:
    """Poll a source until a condition holds or the time is up."""
    try:
        return _Watch(vm, _checked(options)).run()
    except WaitpointError as error:
        raise RuntimeFault(f"wait_for: {error.message}") from None


class _Watch:
    """One call of `wait_for`."""

    def __init__(self, vm: Vm, given: Dict) -> None:
        source = given["source"]
        self.vm = vm
        self.log = require_log(vm)
        self.poll_source: Fn = source["poll"]
        self.condition: Fn = given["condition"]
        self.interval = given["poll_interval"]
        self.topic, self.kind = _push_filter(source.get("push_filter"))
        self.seen = 0 if self.topic is None else self.log.latest(self.topic) or 0
        self.pushes = 0
        if self.topic is not None and source.get("prefers_push"):
            self.interval = given["timeout"]
        plan = MonitorPlan(
            round(given["timeout"] * 1000), round(self.interval * 1000), label=source.get("label")
        )
        self.monitor = Monitor(self.log, self._wait_id(given), self._now_ms, plan, self._new("trace"))
        self.until = vm.tasks.now() + self.monitor.seconds_left()

    def run(self) -> Dict:
        result = self.monitor.recorded() or self.poll()
        if result is None:
            with SessionWait(self.vm, "monitor", self.monitor.wait_id) as told:
                result = self.polled_again()
                told.status = result["status"]
        return result

    def polled_again(self) -> Dict:
        result = None
        while result is None:
            self.rest()
            if self.vm.tasks.current.cancel_requested:
                return self.monitor.interrupted(self.pushes, "the task was asked to end")
            result = self.poll()
        return result

    def poll(self) -> Dict | None:
        """Poll once. Return the result if that was the last time."""
        state = self.vm.call(self.poll_source, self.monitor.context())
        self.monitor.polled(state)
        value = self.vm.call(self.condition, state)
        if value:
            return self.monitor.resolve(MATCHED, condition_value=value, pushes=self.pushes)
        if self.is_over():
            return self.monitor.resolve(TIMED_OUT, pushes=self.pushes)
        return self.monitor.recorded()

    def is_over(self) -> bool:
        """Return true once the deadline has come, also while the program's clock is stopped."""
        return self.vm.tasks.now() >= self.until or self.monitor.seconds_left() == 0

    def rest(self) -> None:
        """Suspend the current task until it is time to poll, or somebody says that there is news."""
        tasks = self.vm.tasks
        end = min(tasks.now() + self.interval, self.until)
        while tasks.now() < end and not tasks.current.cancel_requested:
            if self.topic is None:
                tasks.suspend_until(end)
            else:
                wait_for_news(self.vm, self.log, self.topic, end)
                if self.is_pushed(self.topic):
                    self.pushes += 1
                    return

    def is_pushed(self, topic: str) -> bool:
        """Return true if an event has come that wakes the poll."""
        news = self.log.read_range(topic, self.seen)
        if news:
            self.seen = news[-1][0]
        return any(self.kind in (None, event.kind) for _, event in news)

    def _wait_id(self, given: Dict) -> str:
        id = given.get("wait_id")
        return self._new("wait") if id is None else checked_id(id, "wait_id")

    def _now_ms(self) -> int:
        return milliseconds(self.vm.world.clock.now())

    def _new(self, what: str) -> str:
        return f"{what}_{self.vm.world.ids.new()}"


# Arguments.


def _checked(options: Value) -> Dict:
    """Return the options with times in seconds. Raises `WaitpointError`, `OptionError`."""
    if type(options) is not dict:
        raise WaitpointError(f"`options` must be a dict, got {type_name(options)}")
    waitpoints.WAIT_FOR_OPTIONS.check("wait_for", options)
    source, timeout = options.get("source"), seconds(options, "timeout")
    interval = seconds(options, "poll_interval")
    if timeout is None:
        raise WaitpointError("`timeout` is missing: say how long to wait, e.g. timeout: 5m")
    if interval == 0:
        raise WaitpointError("`poll_interval` must be more than 0")
    if type(source) is not dict:
        raise WaitpointError(f"`source` must be a dict, got {type_name(source)}")
    for name, function in (("source.poll", source.get("poll")), ("condition", options.get("condition"))):
        if type(function) is not Fn:
            raise WaitpointError(f"`{name}` must be a closure, got {type_name(function)}")
    label = source.get("label")
    if label is not None and type(label) is not str:
        raise WaitpointError(f"`source.label` must be a string, got {type_name(label)}")
    return {**options, "timeout": timeout, "poll_interval": _POLL_INTERVAL if interval is None else interval}


def _push_filter(given: Value) -> tuple[str | None, str | None]:
    """Return the topic, and the kind, of the events that wake the poll early; None for no topic, any kind."""
    found = {"topic": given} if type(given) is str else given
    if found is None:
        return None, None
    if type(found) is not dict or type(found.get("topic")) is not str or found.keys() - {"topic", "kind"}:
        raise WaitpointError("`source.push_filter` must be a topic, or {topic, kind?}")
    return found["topic"], found.get("kind")
