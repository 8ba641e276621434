"""A program that keeps conversations, with its types: mypy checks it, a test runs it."""

from __future__ import annotations

from typing import Any

from harnpy import AgentDef, Capabilities, LoopFactory, Session, SessionRuntime, Tool, runtime, tool
from harnpy.session import Budget, RunLog, SessionConflict, TurnResult, actions, cell_of, export_run


@tool(read_only=True)
def tracking(parcel: int, language: str = "en") -> dict[str, Any]:
    """Where a parcel is."""
    return {"at": "the station", "days": 1}


def echo(messages: list[dict[str, Any]]) -> str:
    return f"You said: {messages[-1]['content']}"


def answered(session: Session) -> None:
    session.set("metadata.answered", True)


def texts(session: Session) -> list[str]:
    return [str(message["content"]) for message in session.messages()]


def stale(kept: SessionRuntime) -> bool:
    try:
        kept.execute("one", actions.Suspend("waiting"), expected_revision=0)
    except SessionConflict:
        return True
    return False


def main() -> list[object]:
    given: Tool = tracking
    loops = LoopFactory(tools=[given])
    known: Capabilities = loops.capabilities
    loops.mock.add({"text": "It comes tomorrow."})
    desk = SessionRuntime("memory:", agents=loops)
    definition = AgentDef("desk", system_prompt="Be short.", model="mock", budget=Budget(max_steps=3))
    desk.create(definition, id="chat")
    said: TurnResult = desk.send("chat", "Where is it?")
    kept = SessionRuntime("memory:")
    kept.create("one", id="one")
    kept.execute("one", answered)
    result: TurnResult = kept.send("one", "hi", agent=echo)
    session: Session = kept.get("one")
    run: RunLog = export_run(session)
    cell: str = cell_of(session.messages())._repr_html_()
    default: SessionRuntime = runtime("memory:")
    default.close()
    return [
        said.text,
        result.text,
        texts(session),
        stale(kept),
        len(run.turns),
        "hi" in cell,
        known is not None,
    ]
