"""Supervisors: long-lived tasks under a restart policy, and reading their specifications. Spec: 05 §17."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.arguments import check_options
from harnpy.faults import paced
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.run.supervisors import MODES, STRATEGIES, ChildSpec, RestartPolicy, Supervisor, Supervisors
from harnpy.vm.values import Duration, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    Fields = dict[str, Value]

# Reading what `supervisor_start` is given. Spec: 05 §17.


_START = "supervisor_start"
#: The names of each field of a policy, the proper one first.
_POLICY = {
    "mode": ("mode", "policy"),
    "most": ("max_restarts", "max"),
    "window": ("window_ms", "window"),
    "backoff": ("backoff_ms", "backoff", "initial_backoff_ms"),
    "longest_backoff": ("max_backoff_ms", "max_backoff"),
    "factor": ("factor", "backoff_factor"),
    "jitter": ("jitter_ms", "jitter"),
    "circuit_open": ("circuit_open_ms", "circuit_open"),
}
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_SHUTDOWN_MS = 5000


class Spec:
    """A supervisor as it was asked for. ``id`` is None when it is to be numbered."""

    def __init__(self, vm: Vm, given: Fields) -> None:
        check_options(_START, given)
        children = given.get("children")
        if type(children) is not list:
            raise RuntimeFault(f"{_START}: children must be a list")
        if not children:
            raise RuntimeFault(f"{_START}: children must include at least one child")
        self.id = _text(given.get("id"))
        self.name = _text(given.get("name"))
        self.strategy = _strategy(given.get("strategy"))
        drain = _first(given, ("shutdown_ms", "drain_ms"))
        self.drain_ms = _SHUTDOWN_MS if drain is None else milliseconds("shutdown_ms", drain)
        default = given.get("restart")
        self.children = [_child(vm, i, child, default) for i, child in enumerate(paced(children))]


def milliseconds(name: str, given: Value, function: str = _START) -> float:
    """Return a time as ms: an int or float of them, a duration, or a text such as "10ms"."""
    if type(given) is Duration:
        return max(given.ms, 0)
    if type(given) in (int, float):
        return max(given, 0)  # type: ignore[no-any-return]
    if type(given) is str:
        number, unit = given.rstrip("hms"), given.lstrip("0123456789")
        if number.isdecimal() and unit in _UNITS:
            return int(number) * _UNITS[unit]
    raise RuntimeFault(f'{_START}: {name} must be a time such as 10, 10ms or "10ms", got {display(given)}')


def _child(vm: Vm, index: int, given: Value, default: Value) -> ChildSpec:
    fields = given if type(given) is dict else {}
    name = _text(fields.get("name")) or f"child_{index}"
    body = vm.callback(_first(fields, ("task", "handler")), 1)
    if body is None:
        raise RuntimeFault(f"{_START}: child '{name}' requires a task closure")
    policy = fields.get("restart")
    lease = _first(fields, ("active_lease", "lease"))
    return ChildSpec(
        name,
        _text(fields.get("kind")) or "task",
        body,
        _policy(vm, default if policy is None else policy),
        None if lease is None else display(lease),
    )


def _policy(vm: Vm, given: Value) -> RestartPolicy:
    if given is None:
        return RestartPolicy()
    if type(given) is str:
        return RestartPolicy(_mode(given))
    if type(given) is not dict:
        raise RuntimeFault(f"{_START}: restart policy must be a string or dict, got {type_name(given)}")
    found = {field: _first(given, names) for field, names in _POLICY.items()}
    read = {field: _read(field, value) for field, value in found.items() if value is not None}
    return RestartPolicy(**read)


def _read(field: str, value: Value) -> Value:
    name = _POLICY[field][0]
    if field == "mode":
        return _mode(display(value))
    if field == "factor":
        if type(value) not in (int, float):
            raise RuntimeFault(f"{_START}: {name} must be a number, got {type_name(value)}")
        return float(value)
    if field == "most":
        if type(value) is not int:
            raise RuntimeFault(f"{_START}: {name} must be an int, got {type_name(value)}")
        return max(value, 0)
    ms = milliseconds(name, value)
    return int(ms) if field == "jitter" else ms


def _mode(given: str) -> str:
    plain = given.lower().replace("-", "_").replace(" ", "_")
    if plain not in MODES:
        raise RuntimeFault(f"{_START}: unknown restart mode '{given}'")
    return plain


def _strategy(given: Value) -> str:
    if given is None:
        return STRATEGIES[0]
    plain = display(given).replace("_", "")
    if plain == "escalate":
        return "escalate_to_parent"
    for strategy in STRATEGIES:
        if strategy.replace("_", "") == plain:
            return strategy
    raise RuntimeFault(f"{_START}: unknown strategy '{display(given)}'")


def _first(given: Fields, names: tuple[str, ...]) -> Value:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _text(given: Value) -> str | None:
    return None if given is None or given == "" else display(given)


# Supervisors: long-lived tasks under a restart policy. Spec: 05 §17.


builtin = partial(declare, family="concurrency", counted=True)

#: Where what happens to supervisors is told in the event log.
_TOPIC = "supervisor.lifecycle"


@builtin("supervisor_start(spec: dict) -> dict")
def supervisor_start(vm: Vm, spec: Value = ABSENT) -> Value:
    """Run closures as tasks that are restarted when they fail; return a handle at once.

    `spec`: `children` (`{name, kind, task, restart, active_lease}` each), `id`, `name`, `strategy`
    (`one_for_one`, `one_for_all`, `rest_for_one`, `escalate_to_parent`), `restart`, `shutdown_ms`.
    A restart policy is `never`, `on_failure`, `always` or `{mode, max_restarts, window_ms, backoff_ms,
    max_backoff_ms, factor, jitter_ms, circuit_open_ms}`.

    Example:
        let tries = atomic(0)
        let flaky = { info -> if atomic_add(tries, 1) == 0 { throw "not yet" } }
        let s = supervisor_start({restart: "on_failure", children: [{name: "flaky", task: flaky}]})
        while atomic_get(tries) < 2 { sleep(10ms) }
        supervisor_stop(s)
        supervisor_metrics(s).restarted  // 1
    """
    if spec is ABSENT or spec is None:
        raise RuntimeFault("supervisor_start: spec is required")
    if type(spec) is not dict:
        raise RuntimeFault("supervisor_start: expected a dict")
    read = Spec(vm, spec)
    supervisors = vm.state(Supervisors)
    id = read.id or _next_id(supervisors)
    if id in supervisors:
        raise RuntimeFault(f"supervisor_start: supervisor '{id}' already exists")
    supervisor = Supervisor(vm.tasks, id, read.name or id, read.strategy, read.drain_ms)
    emit = vm.builtins.bound("event_log.emit")
    supervisor.publish = lambda event: vm.calls.call_builtin(emit, (_TOPIC, event["kind"], event))
    supervisors[id] = supervisor
    supervisor.start(read.children)
    return {"_type": "supervisor", "id": id, "name": supervisor.name}


@builtin("supervisor_state(supervisor: any) -> dict")
def supervisor_state(vm: Vm, supervisor: Value = ABSENT) -> Value:
    """Return the state of a supervisor and its children.

    Example:
        let s = supervisor_start({children: [{name: "once", task: { info -> nil }}]})
        let names = supervisor_state(s).children.map({ child -> child.name })
        supervisor_stop(s)
        names  // ["once"]
    """
    return _found(vm, "supervisor_state", supervisor).state()


@builtin("supervisor_metrics(supervisor: any) -> dict")
def supervisor_metrics(vm: Vm, supervisor: Value = ABSENT) -> Value:
    """Return how many children were `{started, stopped, failed, restarted, suppressed, escalated}`.

    Example:
        let s = supervisor_start({children: [{name: "poll", task: { info -> sleep(1h) }}]})
        sleep(10ms)
        supervisor_stop(s, 0)
        supervisor_metrics(s).started  // 1
    """
    return dict(_found(vm, "supervisor_metrics", supervisor).metrics)


@builtin("supervisor_events(supervisor: any) -> list")
def supervisor_events(vm: Vm, supervisor: Value = ABSENT) -> Value:
    """Return the events so far, in order: `{seq, at_ms, supervisor_id, child, kind, message}` each.

    Example:
        let s = supervisor_start({children: [{name: "once", task: { info -> nil }}]})
        supervisor_stop(s)
        supervisor_events(s)[0].kind  // "supervisor_started"
    """
    return list(_found(vm, "supervisor_events", supervisor).events)


@builtin("supervisor_stop(supervisor: any, timeout?: any) -> dict")
def supervisor_stop(vm: Vm, supervisor: Value = ABSENT, timeout: Value = None) -> Value:
    """Ask all children to end, wait, and abort those that haven't ended in time; return the final state.

    `timeout`: ms or a duration; the default is the spec's `shutdown_ms`.

    Example:
        let s = supervisor_start({children: [{name: "on", task: { info -> sleep(1h) }}]})
        supervisor_stop(s, 10).status  // "stopped"
    """
    found = _found(vm, "supervisor_stop", supervisor)
    ms = found.drain_ms if timeout is None else milliseconds("timeout", timeout, "supervisor_stop")
    found.stop(ms / 1000)
    return found.state()


def _found(vm: Vm, function: str, target: Value) -> Supervisor:
    id = target.get("id") if type(target) is dict else target
    if id is ABSENT or id is None:
        raise RuntimeFault(f"{function}: supervisor handle or id is required")
    name = display(id)
    if not name:
        raise RuntimeFault(f"{function}: supervisor id must not be empty")
    supervisor = vm.state(Supervisors).get(name)
    if supervisor is None:
        raise RuntimeFault(f"{function}: unknown supervisor '{name}'")
    return supervisor


def _next_id(supervisors: Supervisors) -> str:
    number = len(supervisors) + 1
    while f"supervisor_{number}" in supervisors:
        number += 1
    return f"supervisor_{number}"
