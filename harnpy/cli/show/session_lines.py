"""A kept session on a terminal, line by line: its messages, its events. Spec: 10 §C21."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from harnpy.cli.console import harmless, one_line, paint
from harnpy.session.transcript import message_event
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from harnpy.session.events import Event

_EXCERPT = 160


def message(message: dict[str, Any]) -> str:
    """A message: its role, then its text, later lines indented."""
    text = message_event(message, "")["text"]
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        text = "\n".join(filter(None, [text, *map(_call, calls)]))
    role = one_line(str(message.get("role", "")))
    lines = harmless(text).split("\n")
    return "\n".join([f"{paint(role, 'bold', sys.stdout)}: {lines[0]}", *(f"  {line}" for line in lines[1:])])


def request(request: dict[str, Any]) -> str:
    """The request of a step: whom it went to, and what it said."""
    named = [name for name in (request["provider"], request["model"]) if name is not None]
    asked = f"step {request['step']} (event {request['seq']}): {', '.join(named) or 'a function'}"
    lines = [one_line(asked)]
    if request["tools"]:
        lines.append(f"tools: {', '.join(one_line(_tool_name(tool)) for tool in request['tools'])}")
    if request["system"]:
        lines.append(message({"role": "system", "content": request["system"]}))
    lines += map(message, [*request["messages"], *request["tail"]])
    if "prefill" in request:
        lines.append(message({"role": "assistant", "content": request["prefill"]}))
    return "\n".join(lines)


def _tool_name(tool: Any) -> str:
    function = tool.get("function", tool) if isinstance(tool, dict) else {}
    return str(function.get("name") or tool.get("type") or "") if isinstance(function, dict) else ""


def event(event: Event) -> str:
    """An event: number, time, type, and the beginning of its data."""
    data = one_line(compact_json(event.data))
    data = data if len(data) <= _EXCERPT else data[: _EXCERPT - 1] + "…"
    return f"{event.seq:6}  {event.timestamp}  {event.type:20}  {data}"


def excerpt(text: str, query: str) -> str:
    """The part of a text around what was searched for, on one line; all of a short one."""
    line = one_line(text)
    if len(line) <= _EXCERPT:
        return line
    word = query.split()[0].strip('"').casefold() if query.split() else ""
    at = max(0, line.casefold().find(word) - _EXCERPT // 4)
    part = line[at : at + _EXCERPT]
    return ("…" if at else "") + part + ("…" if at + _EXCERPT < len(line) else "")


def _call(call: Any) -> str:
    function = call.get("function", call) if isinstance(call, dict) else {}
    arguments = function.get("arguments", function.get("input", ""))
    shown = arguments if isinstance(arguments, str) else compact_json(arguments)
    return f"-> {function.get('name', '')}({shown})"


def counted(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
