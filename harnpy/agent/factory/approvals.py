"""Asking a person whether an agent may call a tool. Spec: 07 §8.2, 10 §C16.1."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from harnpy.agent.people import log
from harnpy.agent.people.requests import APPROVAL, HumanCancelled, Request, outcome, response_from
from harnpy.session.errors import AgentError
from harnpy.session.events import APPROVAL_REQUESTED
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.agent.rules.gate import Ask
    from harnpy.agent.runtime import Runtime
    from harnpy.reading.dicts import Dict
    from harnpy.session.runtime.txn import Txn


def asker(runtime: Runtime, session: Txn) -> Ask | None:
    """Return what asks the world's person, and answers why not; None where nobody is there."""
    human, world, session_id = runtime.world.people.ask, runtime.world, session.id
    if human is None:
        return None

    def ask(tool: str, arguments: Dict) -> str | None:
        payload = {"action": f"call tool {tool}", "args": arguments, "quorum": 1, "reviewers": []}
        now = rfc3339(world.clock.now())
        request = Request(f"hitl_approval_{world.ids.new()}", APPROVAL, "", now, payload)
        runtime.record(session_id, log.asked(request, session_id, tool))
        known = session.recall(APPROVAL_REQUESTED, tool=tool, args=arguments)
        if known is not None and known.end is not None:
            runtime.record(session_id, [(known.end.type, known.end.data)])
            return _refusal(known.end.data)
        try:
            responses = _responses(human({**request.record(), "approved_by": []}), runtime)
        except HumanCancelled as error:
            reason = str(error) or "cancelled"
            runtime.record(session_id, log.called_off(request, tool, reason))
            return reason
        ending = outcome(request, responses)
        if ending is None:
            runtime.record(session_id, log.called_off(request, tool, "nobody answered"))
            return "nobody answered"
        if ending.error:
            runtime.record(session_id, log.denied(request, str(ending.error), responses))
            return str(ending.error)
        runtime.record(session_id, log.answered(request, ending.value, responses))
        return None

    return ask


def _refusal(ended: Dict) -> str | None:
    """Return why a request was refused that ended earlier."""
    return None if ended.get("decision") == "allow" else ended["reason"]


def _responses(answer: Any, runtime: Runtime) -> list[Dict]:
    if inspect.isawaitable(answer):
        answer = runtime.tasks.wait(answer)
    given = answer if isinstance(answer, list) else [] if answer is None else [answer]
    if not all(isinstance(each, dict) for each in given):
        kind = type(answer).__name__
        raise AgentError(f"people.ask returned {kind}: expected a dict, a list of dicts or None")
    return [response_from(each, rfc3339(runtime.world.clock.now())) for each in given]
