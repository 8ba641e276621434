"""When and how windows become smaller, and snapshots. Spec: 10 §C5, §C8, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.builtins.agents.durable.artifacts import Offloaded
from harnpy.builtins.bridge.callables import with_callables
from harnpy.builtins.bridge.durable.callbacks import callback
from harnpy.builtins.bridge.durable.errors import errors_told, invalid
from harnpy.builtins.bridge.durable.verbs import Call, builtin
from harnpy.session.resize.resize_policy import CLEAR
from harnpy.vm.values.objects import Builtin, display

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Any]

_FUNCTIONS = ("summarize", "prompt", "custom_compactor", "mask_callback", "compress_callback")
#: Strategies that put long outputs of tools beside the store.
_WITH_ARTIFACTS = ("offload", "summarize")
#: What the tool of a model does.
_USUAL = "llm"
_PARTS = ("full", "window", "memo")


def _strategy(call: Call, name: str, fn: Value) -> Callable[..., tuple[Any, Any, Any]]:
    """Return a strategy of the program: it returns ``[full, window, memo]``, or a dict with some of them."""
    function = callback(call, fn)

    def strategy(full: Any, window: Any, memo: Any, settings: Any) -> tuple[Any, Any, Any]:
        found = function(full, window, memo, dict(settings))
        if type(found) is dict and all(key in _PARTS for key in found):
            cleared = CLEAR if "memo" in found and found["memo"] is None else found.get("memo")
            return found.get("full"), found.get("window"), cleared
        if type(found) is list and len(found) <= len(_PARTS):
            full, window, memo = [*found, None, None, None][: len(_PARTS)]
            return full, window, memo
        raise invalid(f'strategy "{name}" must return [full, window, memo], got {display(found)}')

    return strategy


@builtin("__session_on_analyze(id: string | nil, fn?: closure, opts?: dict) -> nil")
def on_analyze(call: Call, id: str | None, fn: Value, opts: Dict) -> None:
    """Let a function name the resize strategy that is due; nil restores the default."""
    function = None if fn is None else callback(call, fn)

    def analysis(full: Any, window: Any, memo: Any, settings: Any) -> Any:
        assert function is not None
        return function(full, window, memo, dict(settings))

    for policy in call.policies(id):
        policy.on_analyze(None if function is None else analysis)


@builtin("__session_strategy(id: string | nil, name: string, fn: closure, opts?: dict) -> nil")
def strategy(call: Call, id: str | None, name: str, fn: Value, opts: Dict) -> None:
    """Register a resize strategy."""
    made = _strategy(call, name, fn)
    for policy in call.policies(id):
        policy.strategy(name, made)


@builtin(
    "__session_resize(id: string, strategy?: string, opts?: dict) -> dict | nil",
    "max_length?: int, max_tokens?: int, threshold_pct?: float, min_keep_turns?: int, keep_first?: int, "
    "keep_last?: int, token_threshold?: int, hard_limit_tokens?: int, hard_limit_strategy?: string, "
    "compact_strategy?: string, tool_output_max_chars?: int, summarize?: closure, prompt?: closure, "
    "custom_compactor?: closure, mask_callback?: closure, compress_callback?: closure, background?: bool",
)
def resize(call: Call, id: str, strategy: str | None, opts: Dict) -> Dict | None:
    """Run a resize strategy, or the one that is due, and return what it did; nil when none is, and in the
    background."""
    if opts.pop("background", False):
        call.session(id)  # there is one
        call.durable.background.begin(id, lambda: _resized(call, id, strategy, opts))
        return None
    return _resized(call, id, strategy, opts)


def _resized(call: Call, id: str, strategy: str | None, opts: Dict) -> Dict | None:
    given = with_callables(call.vm, opts, *_FUNCTIONS)
    if strategy in _WITH_ARTIFACTS:
        given["artifacts"] = Offloaded(call)
    report = call.session(id).resize(strategy, **given)
    return None if report is None else report.data()


@builtin(
    "__session_snapshot(id: string, opts?: dict) -> bool",
    "if_needed?: bool, max_events?: int, max_age?: float",
)
def snapshot(call: Call, id: str, opts: Dict) -> bool:
    """Write down what the view shows, so that a load is short; false when none was taken."""
    given = {"max_events": 50, **opts}
    return call.session(id).snapshot(**given)


@builtin("__session_compact_tool(id: string, opts?: dict) -> dict")
def compact_tool(call: Call, id: str, opts: Dict) -> Dict:
    """A tool with which a model makes a session's window smaller."""
    call.session(id)  # there is one

    def compact(vm: Vm, arguments: Value = None) -> str:
        given = arguments if type(arguments) is dict else {}
        chosen = given.get("strategy") or _USUAL
        with errors_told("compact", "strategy", id):
            report = _resized(Call(vm, "compact", call.store), id, chosen, {})
        if report is None or not report["shrunk"]:
            return "The conversation is as short as it gets."
        return f"The conversation has {report['after']['messages']} messages now."

    return {
        "name": "compact",
        "description": "Summarize the earlier part of this conversation, to make room.",
        "parameters": {
            "strategy": {"type": "string", "description": "llm, truncate or trim", "required": False}
        },
        "handler": Builtin("compact", compact, 1),
    }
