"""The builtin behind `std/monitors`: poll until a condition holds. Spec: 04 §30, 06 §28, 10 §C18."""

from __future__ import annotations

from harnpy.builtins.agents.waitpoints import seconds
from harnpy.builtins.bridge.live_event_log import require_log, wait_for_news
from harnpy.builtins.bridge.session_waits import SessionWait
from harnpy.eventlog import option_tables
from harnpy.eventlog.monitors import MATCHED, Monitor, MonitorPlan
from harnpy.eventlog.waitpoint_records import TIMED_OUT, WaitpointError, checked_id
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import Fn, type_name
from harnpy.world.clock import milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

_POLL_INTERVAL = 1.0


@builtin("__monitor_wait_for(options: dict) -> dict", family="hitl", counted=True)
def wait_for(vm: Vm, options: Value = None) -> Value:
    """Poll a source until a condition holds, or the time is over."""
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
        """Whether the deadline has come, also while the program's clock is stopped."""
        return self.vm.tasks.now() >= self.until or self.monitor.seconds_left() == 0

    def rest(self) -> None:
        """Suspend the current task until it is time to poll, or somebody says that there is news."""
        tasks = self.vm.tasks
        end = min(tasks.now() + self.interval, self.until)
        while tasks.now() < end and not tasks.current.cancel_requested:
            if self.topic is None:
                tasks.wake_at(tasks.current, end)
                tasks.suspend()
            else:
                wait_for_news(self.vm, self.log, self.topic, end)
                if self.is_pushed(self.topic):
                    self.pushes += 1
                    return

    def is_pushed(self, topic: str) -> bool:
        """Whether an event has come that wakes the poll."""
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
    option_tables.WAIT_FOR.check("wait_for", options)
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
