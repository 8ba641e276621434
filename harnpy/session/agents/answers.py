"""Reading what an agent gave. Spec: 10 §C7.1."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from harnpy.reading.dicts import detached
from harnpy.session.agents.values import Reply
from harnpy.session.errors import AgentError
from harnpy.session.shown.message_parts import calls_of, has_payload, results_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    Message = dict[str, Any]

RETURNED: Final = "text, a message, a list of messages, Reply or None"
YIELDED: Final = "text, a message or Reply"
_EMPTY: Final = "an assistant message with no content, reasoning, thinking blocks, or tool calls"


def messages_of(agent: str, found: Any) -> list[Message]:
    """Return copies of the messages of a returned value; those of a `Reply` without its usage.

    Raises `AgentError` for what is no answer.
    """
    if isinstance(found, Reply):
        return messages_of(agent, checked_reply(agent, found).messages or found.text)
    if found is None:
        return []
    if isinstance(found, str):
        return [{"role": "assistant", "content": found}] if found.strip() else []
    if isinstance(found, dict):
        return [_message(agent, found)]
    if isinstance(found, list) and all(isinstance(message, dict) for message in found):
        return [_message(agent, message) for message in found]
    raise unexpected(agent, "returned", found, RETURNED)


def checked_reply(agent: str, reply: Reply) -> Reply:
    """Return the reply. Raises `AgentError` where one of its fields has the wrong type."""
    fields: Iterable[tuple[str, bool, str]] = (
        ("text", isinstance(reply.text, str), "text"),
        ("messages", reply.messages is None or isinstance(reply.messages, list), "a list of messages"),
        ("model", reply.model is None or isinstance(reply.model, str), "text or None"),
        ("stop_reason", isinstance(reply.stop_reason, str), "text"),
    )
    for name, is_right, expected in fields:
        if not is_right:
            given = type(getattr(reply, name)).__name__
            raise AgentError(f"agent {agent} returned a Reply whose `{name}` is {given}: expected {expected}")
    problem = problem_of_use(reply.usage, reply.cost)
    if problem is not None:
        raise AgentError(f"agent {agent} returned a Reply whose {problem}")
    return reply


def problem_of_use(usage: Any, cost: Any) -> str | None:
    """Return what is wrong with what an answer took; None if nothing is."""
    is_usage = usage is None or (isinstance(usage, dict) and all(map(_is_number, usage.values())))
    if not is_usage:
        return f"`usage` is {type(usage).__name__}: expected a dict of numbers"
    if not _is_number(cost):
        return f"`cost` is {cost if isinstance(cost, float) else type(cost).__name__}: expected a number"
    return None


def unexpected(agent: str, verb: str, found: Any, expected: str) -> AgentError:
    """Return the error of a value that is none of those that are expected."""
    kind = type(found).__name__
    if isinstance(found, list):
        wrong = (type(item).__name__ for item in found if not isinstance(item, dict))
        kind = f"list with {next(wrong, 'dict')}"
    return AgentError(f"agent {agent} {verb} {kind}: expected {expected}")


class Pairing:
    """The calls of one turn that have no result yet. Spec: 10 §A1.4."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._open: list[str] = []

    def take(self, messages: list[Message]) -> None:
        """Take notice of messages, in order. Raises `AgentError` for a result that answers no call, and for
        a call that the next answer leaves behind."""
        for message in messages:
            answered = results_of(message)
            if answered is None:
                self.close()
                self._open = [call.id for call in calls_of(message) if call.id is not None]
            for id in answered or ():
                if id not in self._open:
                    raise AgentError(f"agent {self._agent} returned a result that answers no call: {id!r}")
                self._open.remove(id)

    def close(self) -> None:
        """Raise `AgentError` if a call has no result."""
        if self._open:
            raise AgentError(f"agent {self._agent} returned the call {self._open[0]!r} without its result")


def _message(agent: str, message: Message) -> Message:
    role = message.get("role")
    if role not in ("assistant", "tool"):
        raise AgentError(f"agent {agent} returned a message of role {role!r}: expected 'assistant' or 'tool'")
    if role == "assistant" and not has_payload(message):
        raise AgentError(f"agent {agent} returned {_EMPTY}")
    copied: Message = detached(message)
    return copied


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
