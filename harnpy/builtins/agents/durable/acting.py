"""Actions on sessions, and hooks around them. Spec: 10 §A3.5, §C7, §C9."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harnpy.builtins.bridge.callables import python_function
from harnpy.builtins.bridge.durable.callbacks import callback, listener
from harnpy.builtins.bridge.durable.errors import invalid
from harnpy.builtins.bridge.durable.verbs import builtin, read_options
from harnpy.session.runtime import actions
from harnpy.session.runtime.hooks import STAGES
from harnpy.text.spell import hint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.builtins.bridge.durable.service import Durable
    from harnpy.builtins.bridge.durable.verbs import Call
    from harnpy.session.runtime.txn import Txn
    from harnpy.vm.values.objects import Value

    Dict = dict[str, Any]


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
    """Carry out an action on a session, and return its info."""
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
    """Have a function called at a stage of every save. Return its name."""
    if stage not in STAGES:
        raise invalid(f'{call.name}: unknown stage "{stage}" ({hint(stage, STAGES)})')
    return call.durable.hooks.add(stage, callback(call, fn), opts.get("priority") or 0, opts.get("name"))


@builtin("__session_unhook(name: string) -> bool")
def unhook(call: Call, name: str) -> bool:
    """Take a hook out; false when there is none of that name."""
    return call.durable.hooks.remove(name)


@builtin("__session_on(event: string, fn: closure) -> string")
def on(call: Call, event: str, fn: Value) -> str:
    """Have a function called with each runtime event of a name, `*` for all. Return a token."""
    return call.durable.listening.add(call.durable.events.on(event, listener(call, fn)))


@builtin("__session_off(token: string) -> bool")
def off(call: Call, token: str) -> bool:
    """End what a token of `session_on` or `session_observe` stands for; false when that is over."""
    return call.durable.listening.end(token)
