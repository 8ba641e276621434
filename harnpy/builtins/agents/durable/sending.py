"""Turns: an agent of the program on a prompt. Spec: 10 §C7.1, §C9."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harnpy.agent.option_tables import LOOP
from harnpy.builtins.bridge.durable.agents import with_options
from harnpy.builtins.bridge.durable.verbs import builtin

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call
    from harnpy.vm.values.objects import Value

    Dict = dict[str, Any]

_OWN: Final = ("idempotency_key", "expected_revision")
_RESULT: Final = ("status", "stop_reason", "text", "messages", "usage", "cost", "steps", "turn_id")


@builtin(
    "__session_send(id: string, prompt: string | dict | list | nil, opts?: dict) -> dict",
    "agent?: closure | dict, idempotency_key?: string, expected_revision?: int",
    LOOP,
)
def send(call: Call, id: str, prompt: Value, opts: Dict) -> Dict:
    """Run an agent on a prompt, as one turn, and return what became of it."""
    own = {key: opts[key] for key in _OWN if key in opts}
    loop = {key: value for key, value in opts.items() if key not in (*_OWN, "agent")}
    runtime, caller = call.runtime, call.durable.caller()
    agent = with_options(call, id, opts.get("agent"), loop)
    result = call.alone(id, partial(runtime.send, id, prompt, agent=agent, caller=caller, **own))
    return {key: getattr(result, key) for key in _RESULT}
