"""Supervisors: long-lived tasks under a restart policy. Spec: 05 §17."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.tasks.supervisor_specs import Spec, milliseconds
from harnpy.vm.declare.builtin import ABSENT
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.run.tasks.supervisors import Supervisor, Supervisors
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="concurrency", counted=True)

#: Where what happens to supervisors is told in the event log.
_TOPIC = "supervisor.lifecycle"


@builtin("supervisor_start(spec: dict) -> dict")
def supervisor_start(vm: Vm, spec: Value = ABSENT) -> Value:
    """Run closures as tasks that are restarted when they fail; returns a handle at once.

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
    """What a supervisor and its children are doing.

    Example:
        let s = supervisor_start({children: [{name: "once", task: { info -> nil }}]})
        let names = supervisor_state(s).children.map({ child -> child.name })
        supervisor_stop(s)
        names  // ["once"]
    """
    return _found(vm, "supervisor_state", supervisor).state()


@builtin("supervisor_metrics(supervisor: any) -> dict")
def supervisor_metrics(vm: Vm, supervisor: Value = ABSENT) -> Value:
    """How often children were `{started, stopped, failed, restarted, suppressed, escalated}`.

    Example:
        let s = supervisor_start({children: [{name: "poll", task: { info -> sleep(1h) }}]})
        sleep(10ms)
        supervisor_stop(s, 0)
        supervisor_metrics(s).started  // 1
    """
    return dict(_found(vm, "supervisor_metrics", supervisor).metrics)


@builtin("supervisor_events(supervisor: any) -> list")
def supervisor_events(vm: Vm, supervisor: Value = ABSENT) -> Value:
    """What has happened, in order: `{seq, at_ms, supervisor_id, child, kind, message}` each.

    Example:
        let s = supervisor_start({children: [{name: "once", task: { info -> nil }}]})
        supervisor_stop(s)
        supervisor_events(s)[0].kind  // "supervisor_started"
    """
    return list(_found(vm, "supervisor_events", supervisor).events)


@builtin("supervisor_stop(supervisor: any, timeout?: any) -> dict")
def supervisor_stop(vm: Vm, supervisor: Value = ABSENT, timeout: Value = None) -> Value:
    """Ask all children to end, wait for them, abort those that have not ended in time; the final state.

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
