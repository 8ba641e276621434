"""Waitpoints: signals from outside, and waiting for them. Spec: 04 §30, 06 §28, 10 §C18."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_event_log import SOON, log_of, require_log, rest
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.builtins.bridge.session_waits import SessionWait
from harnpy.builtins.bridge.waiters import Waiters
from harnpy.eventlog.waitpoint_records import WaitpointError
from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.vm.declare.builtin import ABSENT
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.values.objects import Duration, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.eventlog.waiting import Waiting
    from harnpy.eventlog.waitpoint_records import WaitResult
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="hitl", counted=True)

#: Seconds between two looks of somebody who has waited for long.
_LATEST = 2.0
#: What to do when nobody else can complete anything.
_REMEDY = 'Keep events where others can write: `[event_log] store = "sqlite:events.db"` in harn.toml'


@builtin("waitpoint_create(id?: string | dict) -> dict")
def create(vm: Vm, id: Value = None) -> Value:
    """The waitpoint of that id, made if there is none; without an id one is minted.

    Also with a dict: `{id, metadata}`.

    Example:
        waitpoint_create({id: "approved", metadata: {by: "legal"}}).status  // "open"
    """
    given: Dict = id if type(id) is dict else {"id": id}
    check_options(vm, "waitpoint_create", given)
    return _waitpoints(vm).create(given.get("id"), given.get("metadata")).to_dict()


@builtin("waitpoint_complete(id: string | dict, value?: any, options?: dict) -> dict")
def complete(vm: Vm, id: Value = ABSENT, value: Value = None, options: Value = None) -> Value:
    """Complete a waitpoint with a value, which all who wait get. Of two completions the first counts.

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


@builtin("waitpoint_cancel(id: string | dict, options?: dict) -> dict")
def cancel(vm: Vm, id: Value = ABSENT, options: Value = None) -> Value:
    """Call a waitpoint off, unless it is over. Options: `reason`, `by`.

    Example:
        waitpoint_create("picked up")
        waitpoint_cancel("picked up", {reason: "returned"}).status  // "cancelled"
    """
    given = _options(vm, "waitpoint_cancel", options)
    return _waitpoints(vm).cancel(_id(id), reason=given.get("reason"), by=given.get("by")).to_dict()


@builtin("waitpoint_wait(ids: string | dict | list, options?: dict) -> dict")
def wait(vm: Vm, ids: Value = ABSENT, options: Value = None) -> Value:
    """Wait until waitpoints are completed, and return what came of it: `{status, waitpoints, wait_id, …}`.

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
    )
    result = waiting.look()
    if result is None:
        with SessionWait(vm, "waitpoint", waiting.wait_id, waitpoint_ids=waiting.ids) as told:
            result = _awaited(vm, waiting)
            told.status = result.status
    return result.to_dict()


def _awaited(vm: Vm, waiting: Waiting) -> WaitResult:
    """Suspend the current task until the wait is over, or the task is asked to end."""
    log, left, begin = log_of(vm), waiting.seconds_left(), vm.tasks.now()
    until = None if left is None else begin + left
    outside = f"waitpoint {', '.join(waiting.ids)}", _REMEDY
    with vm.state(Waiters, lambda: Waiters(vm)).listening(waiting.points):
        while not vm.tasks.current.cancel_requested:
            poll = min(max(SOON, (vm.tasks.now() - begin) / 10), _LATEST)
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
