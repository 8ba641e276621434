"""What is said in the runs: pieces of conversation in which calls and results come in every shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.session.model import Message


def said(role: str, content: Any = None, **more: Any) -> Message:
    return {"role": role, "content": content, **more}


def calling(*ids: str, content: str | None = None) -> Message:
    calls = [{"id": id, "name": "read", "arguments": {"path": f"/{id}"}} for id in ids]
    return said("assistant", content, tool_calls=calls)


def tool(id: str, content: str = "done") -> Message:
    return said("tool", content, tool_call_id=id, name="read")


def tool_result(id: str, content: str = "done") -> Message:
    return said("tool_result", content, tool_use_id=id)


def uses(*ids: str, kind: str = "tool_use") -> Message:
    text = {"type": "text", "text": "let me see"}
    return said("assistant", [text, *({"type": kind, "id": id, "name": "read", "input": {}} for id in ids)])


def results(*ids: str) -> Message:
    return said("user", [{"type": "tool_result", "tool_use_id": id, "content": "done"} for id in ids])


LINES = "\n".join(f"line {n}: ünïcödé ✓" for n in range(40))
LONG = "x" * 499 + "é" + "tail " * 30

Shape = Callable[[str], list[Message]]
"""A piece of conversation; its ids are made from a text that no other piece has."""

SHAPES: dict[str, Shape] = {
    "question": lambda t: [said("user", f"question {t}")],
    "answer": lambda t: [said("assistant", f"answer {t}")],
    "nothing": lambda t: [{"role": "assistant", "note": t}, said("user", "")],
    "turn": lambda t: [said("user", f"u{t}"), said("assistant", f"a{t}"), said("system", f"s{t}")],
    "long": lambda t: [said("user", f"{t} {LONG}"), said("assistant", f"{t} {LONG}")],
    "edges": lambda t: [said("user", "e" * count) for count in (499, 500, 501)],
    "lines": lambda t: [said("critic", f"{t}\r\n{LINES}"), said("user", f"{t}\n{LONG}\n\n")],
    "reasoning": lambda t: [said("user", f"u{t}"), said("assistant", f"a{t}", reasoning=f"r{t}")],
    "no reasoning": lambda t: [said("assistant", f"a{t}", reasoning=None)],
    "no calls": lambda t: [said("assistant", f"a{t}", tool_calls=[])],
    "call": lambda t: [said("user", f"u{t}"), calling(t), tool(t, LINES), said("assistant", f"a{t}")],
    "two calls": lambda t: [calling(f"{t}a", f"{t}b"), tool(f"{t}b"), tool(f"{t}a", LONG)],
    "result": lambda t: [calling(t, content="reading"), tool_result(t, LONG), said("assistant", "read")],
    "blocks": lambda t: [said("user", f"u{t}"), uses(t), results(t), said("assistant", f"a{t}")],
    "many blocks": lambda t: [uses(f"{t}a", f"{t}b", kind="tool_call"), results(f"{t}a", f"{t}b")],
    "split blocks": lambda t: [uses(f"{t}a", f"{t}b"), results(f"{t}b"), results(f"{t}a", f"{t}x")],
    "interrupted": lambda t: [
        calling(t),
        said("user", f"wait {t}"),
        tool(t, LONG),
        said("user", f"go on {t}"),
    ],
    "interleaved": lambda t: [
        calling(f"{t}a"),
        calling(f"{t}b"),
        tool(f"{t}a", LINES),
        tool_result(f"{t}b", LONG),
    ],
    "same id again": lambda t: [
        calling("again"),
        tool("again"),
        calling("again"),
        tool("again", f"{t} {LONG}"),
    ],
    "no ids": lambda t: [said("assistant", None, tool_calls=[{"name": "read"}]), said("tool", f"r{t}")],
    "orphan": lambda t: [tool(f"{t}?", LINES)],
    "orphans": lambda t: [said("user", f"u{t}"), tool_result(f"{t}?"), results(f"{t}?")],
}
