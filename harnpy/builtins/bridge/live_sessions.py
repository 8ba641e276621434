"""The live sessions of a Vm."""

from __future__ import annotations

import sys
from functools import partial

from harnpy.builtins.bridge.contexts import context_of
from harnpy.session.registry import SessionRegistry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.session.sink import Sink
    from harnpy.vm.vm import Vm


def sessions_of(vm: Vm) -> SessionRegistry:
    """Return the live sessions of a Vm, created on first use."""
    return vm.service(SessionRegistry, _opened)


def _opened(vm: Vm) -> SessionRegistry:
    """Return sessions whose stack is the running task's, as many as the Vm's limits allow."""
    meter = vm.meter
    admission = None if meter is None else partial(meter.hold, "sessions")
    sessions = SessionRegistry(
        world=vm.world,
        stack=lambda: context_of(vm).sessions,
        admission=admission,
        sinks=lambda id: _installed_sink(vm, id),
    )
    sessions.stores.reach = partial(_reach, vm)
    return sessions


def _reach(vm: Vm, url: str) -> None:
    from harnpy.builtins.bridge.reached_databases import reach_database

    reach_database(vm, url)


def _installed_sink(vm: Vm, id: str) -> Sink | None:
    """Return the topic of a session's agent events, if an event log is installed. Spec: 08 §1.7."""
    if "harnpy.eventlog" not in sys.modules:  # nobody can have installed one, and it takes its time
        return None
    from harnpy.builtins.bridge.live_event_log import installed_log
    from harnpy.eventlog.agent_events import AgentEventTopic

    log = installed_log()
    return None if log is None else AgentEventTopic(log, id, lambda: vm.world.clock.now(), vm.world.warn)
