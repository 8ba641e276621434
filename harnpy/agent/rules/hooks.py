"""Functions that are called before and after what agents do, and may change it. Spec: 07 §8.4.

A hook has an event and a pattern, and receives a payload dict. Hooks run in the order of registration,
each on the previous one's result.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError
from harnpy.formats.display import display, type_name
from harnpy.formats.globs import affix_matches
from harnpy.formats.json import compact_json
from harnpy.session.strategies import microcompact

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.formats.dicts import Dict

    Handler = Callable[[Dict], Any]
    Test = Callable[[Dict], bool]

PRE_TOOL_USE, POST_TOOL_USE = "PreToolUse", "PostToolUse"
PRE_AGENT_TURN, POST_AGENT_TURN = "PreAgentTurn", "PostAgentTurn"
WORKER_EVENTS = (
    "WorkerSpawned",
    "WorkerProgressed",
    "WorkerWaitingForInput",
    "WorkerCompleted",
    "WorkerFailed",
    "WorkerCancelled",
)
EVENTS = (PRE_TOOL_USE, POST_TOOL_USE, PRE_AGENT_TURN, POST_AGENT_TURN, *WORKER_EVENTS)

_COMPARISON = re.compile(r"\s*([\w.]+)\s*(=~|==|!=)\s*(.*?)\s*", re.DOTALL)
_PATH = re.compile(r"\s*(\w+(?:\.\w+)+)\s*")


class Hook(NamedTuple):
    event: str
    applies: Test
    handler: Handler


class BeforeTool(NamedTuple):
    """A call after its hooks: ``denial`` is the reason why it isn't made."""

    arguments: Dict
    denial: str | None = None


class Hooks:
    """The hooks of one program, after the ``lasting`` ones of its embedder."""

    def __init__(self, lasting: Sequence[Hook] = ()) -> None:
        self._lasting = lasting
        self._hooks: list[Hook] = []

    def __bool__(self) -> bool:
        return bool(self._lasting or self._hooks)

    def beside(self) -> Hooks:
        """Return these hooks, to which others may be added for one agent."""
        return Hooks([*self._lasting, *self._hooks])

    def add(self, event: str, handler: Handler, pattern: str = "*") -> None:
        self._hooks.append(hook(event, handler, pattern))

    def add_tool_rule(self, tools: str, deny: str | None = None, max_output: int | None = None) -> None:
        """Deny the tools that match a pattern, or shorten their results (`register_tool_hook`)."""

        def applies(payload: Dict) -> bool:
            return affix_matches(tools, payload["tool"]["name"])

        if deny is not None:
            self._hooks.append(Hook(PRE_TOOL_USE, applies, lambda payload: {"deny": deny}))
        if max_output is not None:
            self._hooks.append(
                Hook(
                    POST_TOOL_USE,
                    applies,
                    lambda payload: microcompact(payload["result"]["text"], max_output),
                )
            )

    def clear_tool_hooks(self) -> None:
        """Remove the program's hooks that run before or after tools."""
        self._hooks = [each for each in self._hooks if each.event not in (PRE_TOOL_USE, POST_TOOL_USE)]

    def before(self, name: str, arguments: Dict) -> BeforeTool:
        """Run the hooks of a call before it is made."""
        for each in self._of(PRE_TOOL_USE):
            payload = {"event": PRE_TOOL_USE, "tool": {"name": name, "args": arguments}}
            if not each.applies(payload):
                continue
            answer = each.handler(payload)
            if answer is None:
                continue
            if not isinstance(answer, dict):
                raise _wrong_answer(PRE_TOOL_USE, "nil or {deny, args}", answer)
            if answer.get("deny") is not None:
                return BeforeTool(arguments, display(answer["deny"]))
            changed = answer.get("args")
            if changed is not None and not isinstance(changed, dict):
                raise _wrong_answer(PRE_TOOL_USE, "nil or {deny, args}", changed)
            arguments = arguments if changed is None else changed
        return BeforeTool(arguments)

    def after(self, name: str, arguments: Dict, text: str) -> str:
        """Return the text of a tool's result after the hooks."""
        for each in self._of(POST_TOOL_USE):
            tool = {"name": name, "args": arguments}
            payload = {"event": POST_TOOL_USE, "tool": tool, "result": {"text": text}}
            if not each.applies(payload):
                continue
            answer = each.handler(payload)
            if isinstance(answer, dict):
                answer = answer.get("result")
            elif answer is not None and not isinstance(answer, str):
                raise _wrong_answer(POST_TOOL_USE, "nil, string, or {result}", answer)
            text = text if answer is None else display(answer)
        return text

    def run(self, event: str, **payload: Any) -> None:
        """Notify the hooks of an event that they can't change."""
        for each in self._of(event):
            given = {"event": event, **payload}
            if each.applies(given):
                each.handler(given)

    def _of(self, event: str) -> list[Hook]:
        return [each for each in (*self._lasting, *self._hooks) if each.event == event]


def hook(event: str, handler: Handler, pattern: str = "*") -> Hook:
    """Return a hook. Raises `MisuseError` for an unknown event."""
    if event not in EVENTS:
        raise MisuseError(f"unknown hook event '{event}': expected one of {', '.join(EVENTS)}")
    return Hook(event, payload_test(pattern), handler)


def payload_test(pattern: str) -> Test:
    """Return the test that a pattern stands for.

    `path =~ "regex"`, `path == "v"`, `path != "v"`, a dotted path that must be set, else a pattern of tool
    names.
    """
    pattern = pattern.strip()
    if pattern in ("", "*"):
        return lambda payload: True
    compared = _COMPARISON.fullmatch(pattern)
    if compared is not None:
        path, operator, right = compared.groups()
        return _comparison(path, operator, _unquoted(right))
    found = _PATH.fullmatch(pattern)
    if found is not None:
        return lambda payload: bool(_at(payload, found[1]))
    return lambda payload: affix_matches(pattern, _text_at(payload, "tool.name"))


def _comparison(path: str, operator: str, right: str) -> Test:
    if operator == "==":
        return lambda payload: _text_at(payload, path) == right
    if operator == "!=":
        return lambda payload: _text_at(payload, path) != right
    try:
        search = re.compile(right).search
    except re.error:
        return lambda payload: False
    return lambda payload: search(_text_at(payload, path)) is not None


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


_MISSING = object()


def _at(payload: Any, path: str) -> Any:
    """Return the value at a dotted path, None when there is none."""
    found = _find(payload, path)
    return None if found is _MISSING else found


def _text_at(payload: Any, path: str) -> str:
    """Return the same as text: JSON for other values, "" for none."""
    found = _find(payload, path)
    if found is _MISSING:
        return ""
    return found if isinstance(found, str) else compact_json(found)


def _find(payload: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(payload, dict) or name not in payload:
            return _MISSING
        payload = payload[name]
    return payload


def _wrong_answer(event: str, expected: str, answer: Any) -> MisuseError:
    return MisuseError(f"{event} hook must return {expected}, got {type_name(answer)}")
