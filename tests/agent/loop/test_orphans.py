"""Rule a: no orphans. Whatever is cancelled, whenever, the session's next request is in order.

Spec: 10 §C12.1 a, §C16.4.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import pytest

from harnpy.agent.loop.make_loop import run_loop
from harnpy.agent.runtime import Runtime
from harnpy.faults import Interruption
from harnpy.session import SessionRegistry
from harnpy.session.log import Session
from tests.worlds import models_with

READING = {"tool_annotations": {name: {"kind": "read"} for name in ("read_a", "read_b")}}
CALLS = ("read_a", "read_b", "write", "fail", "denied", "write")
FORMATS = [("mock", "native"), ("anthropic", "native"), ("mock", "text")]


class Bomb:
    """Interrupts what runs at its ``at``-th chance, once."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.passed = 0

    def tick(self) -> None:
        self.passed += 1
        if self.passed == self.at:
            raise Interruption("cancelled")


class Program:
    """A session whose loop is interrupted before and after everything that it stores and waits for."""

    def __init__(self, provider: str, format: str, bomb: Bomb, monkeypatch: pytest.MonkeyPatch) -> None:
        self.models = models_with({})
        self.sessions = SessionRegistry()
        self.format = format
        self.bomb = bomb
        for _ in range(2):
            self.models.mock.add(self._reply())
        for method in ("write", "record"):
            monkeypatch.setattr(Session, method, self._fused(getattr(Session, method)))
        monkeypatch.setattr("harnpy.agent.loop.make_loop.native_style", lambda *_: self._style(provider))

    def _style(self, provider: str) -> str:
        return "anthropic" if provider == "anthropic" else "openai"

    def _reply(self) -> dict[str, Any]:
        if self.format == "native":
            return {"text": "", "tool_calls": [{"name": name, "arguments": {}} for name in CALLS]}
        return {"text": "\n".join(f"<tool_call>\n{name}({{ }})\n</tool_call>" for name in CALLS)}

    def _fused(self, method: Any) -> Any:
        def fused(*args: Any, **kwargs: Any) -> Any:
            self.bomb.tick()
            result = method(*args, **kwargs)
            self.bomb.tick()
            return result

        return fused

    def _tool(self, name: str) -> Any:
        def handler(_: Any) -> str:
            self.bomb.tick()
            if name == "fail":
                raise ConnectionError("down")
            return name

        return handler

    def loop(self) -> None:
        names = dict.fromkeys(CALLS)
        tools = [
            {"name": name, "description": name, "parameters": {}, "handler": self._tool(name)}
            for name in names
        ]
        allowed = [name for name in names if name != "denied"]
        run_loop(
            Runtime(self.models, self.sessions),
            "go",
            None,
            {
                "provider": "mock",
                "session_id": "s",
                "tools": {"_type": "tool_registry", "tools": tools},
                "tool_format": self.format,
                "policy": {"tools": allowed, **READING},
            },
        )

    def asked(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.models.mock.calls()[-1]["messages"]
        return messages


def assert_in_order(messages: list[dict[str, Any]]) -> None:
    """Each call has one result right behind it, and each result a call, as providers require."""
    open_calls: list[str] = []
    for message in messages:
        results = results_of(message)
        if not results:
            assert open_calls in ([], ["text"]), f"unanswered: {open_calls}"
            open_calls = []
        for id in results:
            assert id in open_calls, f"{id} answers nothing"
            open_calls.remove(id)
        open_calls += calls_of(message)
    assert open_calls in ([], ["text"]), f"unanswered: {open_calls}"


def blocks(message: dict[str, Any], type: str) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if block["type"] == type] if isinstance(content, list) else []


def calls_of(message: dict[str, Any]) -> list[str]:
    if message["role"] == "assistant" and "<tool_call>" in str(message.get("content")):
        return ["text"]
    return [call["id"] for call in (*message.get("tool_calls", ()), *blocks(message, "tool_use"))]


def results_of(message: dict[str, Any]) -> list[str]:
    if message["role"] == "user" and 'kind="tool_results"' in str(message.get("content")):
        return ["text"]
    if message["role"] == "tool":
        return [message["tool_call_id"]]
    return [block["tool_use_id"] for block in blocks(message, "tool_result")]


def answers(session: Session) -> int:
    return sum("text" in results_of(message) for message in session.messages())


def steps_with_calls(session: Session) -> int:
    """Return how many steps made calls: calls that are text and weren't begun are only text."""
    steps: list[list[str]] = [[]]
    for event in session.events():
        if event.type == "step_started":
            steps.append([])
        steps[-1].append(event.type)
    return sum("tool_completed" in step for step in steps)


def chances(provider: str, format: str) -> int:
    """How often a loop can be interrupted."""
    bomb = Bomb(0)
    with pytest.MonkeyPatch.context() as patch:
        Program(provider, format, bomb, patch).loop()
    return bomb.passed


@pytest.mark.parametrize(("provider", "format"), FORMATS)
def test_a_no_orphans(provider: str, format: str) -> None:
    step = 1 if os.environ.get("HARNPY_STORES") == "all" else 2
    for at in range(1, chances(provider, format) + 1, step):
        with pytest.MonkeyPatch.context() as patch:
            program = Program(provider, format, Bomb(at), patch)
            with suppress(Interruption):
                program.loop()
            session = program.sessions.session("s")
            if session is not None and not session.view.open_turns:
                assert_in_order(session.messages())
            program.models.mock.clear()
            program.models.mock.add({"text": "done"})
            program.loop()
            assert_in_order(program.asked())
            session = program.sessions.session("s")
            assert session is not None
            assert_in_order(session.messages())
            assert not session.view.open_turns
            assert format != "text" or answers(session) == steps_with_calls(session)
