"""The live sessions of a Vm, and the active session of a task with its model calls. Spec: 10 §A2.5, §C9."""

from __future__ import annotations

import sys
from functools import partial

from harnpy.builtins.bridge.agent_tasks import TaskWaiter
from harnpy.builtins.bridge.contexts import context_of
from harnpy.session import hooks
from harnpy.session.history import ANY, message_drafts
from harnpy.session.prompt import memo_message
from harnpy.session.registry import SessionRegistry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.agent.context import ActiveSession
    from harnpy.formats.dicts import Dict
    from harnpy.session.log import Session
    from harnpy.session.open_sessions import SessionStack, Sink
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


def sessions_of(vm: Vm) -> SessionRegistry:
    """Return the live sessions of a Vm, created on first use."""
    return vm.service(SessionRegistry, _opened)


def _opened(vm: Vm) -> SessionRegistry:
    """Return sessions whose stack is the running task's, as many as the Vm's limits allow."""
    meter = vm.meter
    admission = None if meter is None else partial(meter.hold, "sessions")

    def stack() -> SessionStack:
        return context_of(vm).sessions

    sessions = SessionRegistry(
        world=vm.world,
        stack=stack,
        admission=admission,
        sinks=lambda id: _installed_sink(vm, id),
        waiter=TaskWaiter(vm, stack),
    )
    sessions.stores.reach = partial(_reach, vm)
    return sessions


def _reach(vm: Vm, url: str) -> None:
    from harnpy.builtins.bridge.live_http import reach_database

    reach_database(vm, url)


def _installed_sink(vm: Vm, id: str) -> Sink | None:
    """Return the topic of a session's agent events, if an event log is installed. Spec: 08 §1.7."""
    if "harnpy.eventlog" not in sys.modules:  # nobody can have installed one, and it takes its time
        return None
    from harnpy.eventlog.agent_events import AgentEventTopic
    from harnpy.eventlog.topics import installed_event_log

    log = installed_event_log()
    return None if log is None else AgentEventTopic(log, id, lambda: vm.world.clock.now(), vm.world.warn)


# The session that a task's loops and model calls are on when they name none. Spec: 10 §A2.5, §C9.


def active_session(vm: Vm) -> ActiveSession | None:
    """The running task's; None inside a loop, whose conversation is its own."""
    if vm.task_context is None:
        return None
    context = context_of(vm)
    return None if context.sessions.ids else context.active


def on_active_session(vm: Vm, options: Value) -> Value:
    """The options of a loop, with the active session if they name none."""
    active = active_session(vm)
    given = {} if options is None else options
    if active is None or type(given) is not dict or given.get("session_id") is not None:
        return options
    sessions_of(vm).open(active.id, {"store": active.runtime.store})
    return {**given, "session_id": active.id}


# A model call on the active session of a task. Spec: 10 §A2.5, §C9.


class ActiveCall:
    """One model call on the active session: what is sent, and what is recorded of it."""

    def __init__(self, active: ActiveSession, prompt: str) -> None:
        self._events = active.runtime.events
        self._session: Session = active.runtime.get(active.id)
        self._prompt = {"role": "user", "content": prompt}

    def messages(self) -> list[Dict]:
        """Return the window, the prompt, and the memo, if there is one."""
        session = self._session
        window, memo = session.window(), session.memo
        size = len(memo) if isinstance(memo, str | list | dict) else 0
        counts = {"context_window_size": len(window), "memo_size": size}
        self._events.emit(hooks.APPLIED, {"session_id": session.id, **counts})
        return [*window, self._prompt, *([] if memo is None else [memo_message(memo)])]

    def record(self, text: str) -> None:
        """Append what was asked and what was answered, in one append."""
        session = self._session
        answer = [{"role": "assistant", "content": text}] if text.strip() else []
        session.append(*message_drafts([self._prompt, *answer]), expected_version=ANY)
        session.history_changed()
        facts = {"has_user_content": True, "has_assistant_content": bool(answer)}
        counts = {"context_window_size": session.length}
        self._events.emit(hooks.CONTEXT_APPENDED, {"session_id": session.id, **facts, **counts})
