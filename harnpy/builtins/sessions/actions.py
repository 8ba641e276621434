"""Actions on sessions, hooks around them, watches, and waits for what is outside.

Spec: 10 §A1.12, §A3.5, §C7, §C9, §C10.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harnpy.builtins.bridge.callables import python_function
from harnpy.builtins.sessions.session_values import event_value, invalid
from harnpy.builtins.sessions.verbs import builtin, callback, listener, read_options
from harnpy.formats.suggestions import hint
from harnpy.session import actions
from harnpy.session.events import WAIT_RESOLVED, WAIT_STARTED, EventDraft
from harnpy.session.history import ANY
from harnpy.session.hooks import STAGES
from harnpy.session.watch import BUFFER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.builtins.sessions.service import Durable
    from harnpy.builtins.sessions.verbs import Call
    from harnpy.session.transaction import Txn
    from harnpy.vm.run.channels import Channel
    from harnpy.vm.values import Value

    Dict = dict[str, Any]

# Actions on sessions, and hooks around them. Spec: 10 §A3.5, §C7, §C9.


class _Closure:
    """An action that is a function of the program: it gets an id for all verbs."""

    name: Final = "closure"

    def __init__(self, durable: Durable, fn: Callable[[str], Any]) -> None:
        self._durable = durable
        self._fn = fn

    def __call__(self, txn: Txn) -> None:
        with self._durable.handle(txn) as id:
            self._fn(id)


def _update_task(task: Any = None, tasks: Any = None) -> actions.UpdateTask:
    return actions.UpdateTask(task if tasks is None else tasks)


_REASON: Final = "reason?: string"
#: What makes each action, and the arguments that it takes.
_ACTIONS: Final[Mapping[str, tuple[Callable[..., Any], str]]] = {
    "suspend": (actions.Suspend, _REASON),
    "resume": (actions.Resume, _REASON),
    "complete": (actions.Complete, _REASON),
    "fail": (actions.Fail, _REASON),
    "delete": (actions.Delete, _REASON),
    "clear": (actions.Clear, ""),
    "fork": (lambda id=None, **why: actions.Fork(id, **why), "id?: string, label?: string, reason?: string"),
    "change_model": (lambda model=None: actions.ChangeModel(model), "model?: string | dict"),
    "change_system_prompt": (lambda text=None: actions.ChangeSystemPrompt(text), "text?: string"),
    "write_metadata": (lambda key, value=None: actions.WriteMetadata(key, value), "key: string, value?: any"),
    "update_task": (_update_task, "task?: string, tasks?: list"),
}


@builtin(
    "__session_execute(id: string, action: string | closure, args?: dict, opts?: dict) -> dict",
    "expected_revision?: int, retries?: int, idempotency_key?: string",
)
def execute(call: Call, id: str, action: Value, args: Dict | None, opts: Dict) -> Dict:
    """Run an action, all or nothing, and return the info.

    `action`: `suspend`, `resume`, `complete`, `fail`, `delete`, `clear`, `fork`, `change_model`,
    `change_system_prompt`, `write_metadata`, `update_task`, or a function, which gets an id for all functions
    of this module. Options: `expected_revision`, `retries`, `idempotency_key`. Spec: 10 §A3.5, §C9.
    """
    act = _named(call, action, args or {}, id) if type(action) is str else _closure(call, action)
    given = {key: value for key, value in opts.items() if value is not None}
    runtime, caller = call.runtime, call.durable.caller()
    call.alone(id, partial(runtime.execute, id, act, caller=caller, **given))
    return call.shown(runtime.info(id))


def _closure(call: Call, fn: Value) -> _Closure:
    return _Closure(call.durable, python_function(call.vm, fn))


def _named(call: Call, name: str, args: Dict, id: str) -> Callable[[Txn], Any]:
    known = _ACTIONS.get(name)
    if known is None:
        raise invalid(f'{call.name}: unknown action "{name}" ({hint(name, _ACTIONS)})', id)
    make, parameters = known
    given = read_options(f"{call.name}: {name}", args, parameters, id)
    if name == "update_task" and len(given) != 1:
        raise invalid(f"{call.name}: update_task takes `task` or `tasks`", id)
    action: Callable[[Txn], Any] = make(**given)
    return action


@builtin("__session_hook(stage: string, fn: closure, opts?: dict) -> string", "priority?: int, name?: string")
def hook(call: Call, stage: str, fn: Value, opts: Dict) -> str:
    """Call `fn(stage, id)` at a stage of every save, and return the hook's name.

    Stages: `before_create`, `after_load`, `after_action`, `before_save`, `after_save`, `after_create`.
    Options: `priority`, `name`. Spec: 10 §A3.5, §C9.
    """
    if stage not in STAGES:
        raise invalid(f'{call.name}: unknown stage "{stage}" ({hint(stage, STAGES)})')
    return call.durable.hooks.add(stage, callback(call, fn), opts.get("priority") or 0, opts.get("name"))


@builtin("__session_unhook(name: string) -> bool")
def unhook(call: Call, name: str) -> bool:
    """Remove a hook; false if there is none with that name. Spec: 10 §A3.5, §C9."""
    return call.durable.hooks.remove(name)


@builtin("__session_on(event: string, fn: closure) -> string")
def on(call: Call, event: str, fn: Value) -> str:
    """Call `fn(name, data)` for each runtime event with a name, or `*` for all; return a token.

    Spec: 10 §A3.5, §C9.
    """
    return call.durable.listening.add(call.durable.events.on(event, listener(call, fn)))


@builtin("__session_off(token: string) -> bool")
def off(call: Call, token: str) -> bool:
    """End a subscription of `session_on` or `session_observe`; false if it has already ended.

    Spec: 10 §A3.5, §C9.
    """
    return call.durable.listening.end(token)


# Watching what is appended, and waiting for what is outside. Spec: 10 §A1.12, §C9, §C10.


@builtin(
    "__session_watch(id: string, opts?: dict) -> channel",
    "after?: int, types?: list, buffer?: int, chunks?: bool",
)
def watch(call: Call, id: str, opts: Dict) -> Channel:
    """Return a channel of a session's events as they are appended by anybody.

    It closes with the session. Options: `after` (begin behind that event), `types`, `buffer` (64): what finds
    it full is dropped and counted; `chunks`: also the pieces of answers as agents make them,
    `{type: "chunk", turn, text, start}`. Spec: 10 §C9, §C10.
    """
    types = opts.get("types")
    if types is not None and not all(type(each) is str for each in types):
        raise invalid(f"{call.name}: option `types` must be a list of strings", id)
    session, after, buffer = call.session(id), opts.get("after"), opts.get("buffer", BUFFER)
    if opts.get("chunks"):
        if getattr(call.runtime.store, "is_recorded", False):
            why = "pieces of answers aren't recorded, so the run would go on differently when it is resumed"
            raise invalid(f"{call.name}: a durable run can't watch `chunks`: {why}", id)
        live = call.runtime.watch(id, after=after, types=types, chunks=True, buffer=buffer)
        return call.durable.listening.watch(session, live, looks=True)
    watched = session.watch(buffer=buffer, after=after, types=types)
    shared = not call.runtime.store.url.startswith("memory:")
    return call.durable.listening.watch(session, watched, looks=shared)


@builtin("__session_observe(id: string, fn: closure, opts?: dict) -> string")
def observe(call: Call, id: str, fn: Value, opts: Dict) -> str:
    """Call `fn(event)` for each event that this program appends, before the append returns.

    Returns a token. Spec: 10 §A1.12, §C9, §C10.
    """
    observer = callback(call, fn)
    return call.durable.listening.observe(call.session(id), lambda event: observer(event_value(event)))


@builtin("__session_wait(id: string, opts?: dict) -> string", "reason?: string, external_id?: string")
def wait(call: Call, id: str, opts: Dict) -> str:
    """Record that a session waits for something outside; return the event's id.

    Options: `reason`, `external_id`. Spec: 10 §A1.12, §C9.
    """
    return call.session(id).append(EventDraft(WAIT_STARTED, opts), expected_version=ANY)[0].id


@builtin("__session_resolve(id: string, opts?: dict) -> bool", "reason?: string, external_id?: string")
def resolve(call: Call, id: str, opts: Dict) -> bool:
    """Record that a session no longer waits; false if it wasn't waiting.

    Options: `reason`, `external_id`. Spec: 10 §A1.12, §C9.
    """
    session = call.session(id)
    if not session.is_waiting:
        return False
    session.append(EventDraft(WAIT_RESOLVED, opts), expected_version=ANY)
    return True


@builtin("__session_is_waiting(id: string, opts?: dict) -> bool")
def is_waiting(call: Call, id: str, opts: Dict) -> bool:
    """Return true while a session waits for an approval or for something outside. Spec: 10 §A1.12, §C9."""
    return call.session(id).is_waiting


@builtin("__session_tool_record(id: string, key: string, opts?: dict) -> dict | nil")
def tool_record(call: Call, id: str, key: str, opts: Dict) -> Dict | None:
    """Return the log's last record of a tool call, by its idempotency key, or nil.

    The record is `{key, status, output, error, event}`. Spec: 10 §A1.13, §C9.
    """
    found = call.session(id).find_tool(key)
    if found is None:
        return None
    known = found.completed or found.started
    assert known is not None
    status = "started" if found.completed is None else "completed"
    shown = {"key": key, "status": status, "output": found.output, "error": found.error}
    return {**shown, "event": event_value(known)}


@builtin("__session_tool_fence(id: string, key: string, opts?: dict) -> dict")
def tool_fence(call: Call, id: str, key: str, opts: Dict) -> Dict:
    """Decide whether to make a tool call: `{action: "execute"}` or `{action: "reuse", output, error}`.

    Throws for one that began and has no end. Spec: 10 §A1.13, §C9.
    """
    found = call.session(id).tool_fence(key)
    if found == "execute":
        return {"action": "execute"}
    return {"action": "reuse", "output": found.output, "error": found.error}
