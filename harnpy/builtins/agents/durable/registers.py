"""What a session keeps beside its messages. Spec: 10 §C3.1, §C8.1, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.durable.errors import invalid
from harnpy.builtins.bridge.durable.verbs import builtin
from harnpy.session.settings.keys import REGISTERS

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call
    from harnpy.vm.values.objects import Value

    Dict = dict[str, Any]


@builtin("__session_memo(id: string, opts?: dict) -> any")
def memo(call: Call, id: str, opts: Dict) -> Value:
    """What is remembered beside the messages; nil at first."""
    return call.session(id).memo


@builtin("__session_set_memo(id: string, value: any, opts?: dict) -> int")
def set_memo(call: Call, id: str, value: Value, opts: Dict) -> int:
    """Set the memo, and return its version."""
    return call.session(id).set("memo", value)


@builtin("__session_get(id: string, key: string, default?: any, opts?: dict) -> any")
def get(call: Call, id: str, key: str, default: Value, opts: Dict) -> Value:
    """The value of a register; `default` when it was never set, or cleared."""
    return call.session(id).get(key, default)


@builtin(
    "__session_set(id: string | nil, key: string, value: any, opts?: dict) -> int",
    "source?: string, reason?: string, metadata?: dict",
)
def set_(call: Call, id: str | None, key: str, value: Value, opts: Dict) -> int:
    """Set a register, and return its new version; without a session, a setting of this program."""
    if id is not None:
        return call.session(id).set(key, value, **opts)
    if not key.startswith(REGISTERS):
        raise invalid(f'{call.name}: without a session only settings can be set, and "{key}" is none')
    return call.durable.set_setting(key, value)
