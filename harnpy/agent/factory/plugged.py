"""What was plugged into a turn, in the loop of a definition: approvals and questions. Spec: 10 §C7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.factory.tools import Tool
from harnpy.agent.rules.hooks import PRE_TOOL_USE
from harnpy.session.guards.approvals import ALLOW
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from harnpy.agent.rules.hooks import Hooks
    from harnpy.agent.tasks import Tasks
    from harnpy.reading.dicts import Dict
    from harnpy.session.agents.turn import Turn
    from harnpy.session.guards.approvals import ApprovalGate
    from harnpy.session.guards.inputs import InputGate


def ask_before_calls(turn: Turn, gate: ApprovalGate, hooks: Hooks, tasks: Tasks) -> None:
    """Have the gate decide on each call of a tool, after the rules of the loop."""

    def decide(payload: Dict) -> Any:
        name, arguments = payload["tool"]["name"], compact_json(payload["tool"]["args"])
        approval = tasks.wait(gate.request(turn.session, name, arguments, turn=turn))
        if approval.decision == ALLOW:
            return None
        return {"deny": f"approval denied: {approval.reason}" if approval.reason else "approval denied"}

    hooks.add(PRE_TOOL_USE, decide)


def offer_questions(turn: Turn, gate: InputGate, entries: list[Dict], tasks: Tasks) -> None:
    """Offer the model the tool that asks a person, unless it has one of that name."""

    def ask(arguments: Dict) -> Any:
        return gate.request(turn.session, arguments["prompt"], turn)

    # A turn that is entered again has the answer, or the question is still open.
    asking = Tool(**gate.tool, handler=ask, idempotent=True, on_ambiguous="retry")
    if all(entry["name"] != asking.name for entry in entries):
        entries.append(asking.entry(tasks))
