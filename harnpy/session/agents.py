"""Agents as data, what they give and what a sender receives. Spec: 10 §C7.1."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal

from harnpy.formats.dicts import detached
from harnpy.formats.options import expected
from harnpy.formats.tool_messages import calls_of, results_of
from harnpy.session.errors import AgentError, InvalidArgument
from harnpy.session.messages import has_payload
from harnpy.world.clock import is_rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harnpy.formats.dicts import Dict

    Message = dict[str, Any]

# What agents give and what whoever sends gets. Spec: 10 §C7.1.


@dataclass(frozen=True)
class Reply:
    """An answer, as a text or as messages, with what it took.

    ``usage`` are tokens by name, ``cost`` is in USD; both, and ``model``, are of one step. Raises ValueError
    for a text beside messages.
    """

    text: str = ""
    messages: list[Message] | None = None
    usage: dict[str, Any] | None = None
    cost: float = 0.0
    model: str | None = None
    stop_reason: str = "completed"

    def __post_init__(self) -> None:
        if self.text and self.messages is not None:
            raise ValueError("a Reply takes `text` or `messages`, not both")


class Waiting(Exception):
    """Raised by an agent whose turn ends until something outside happens, which ``external_id`` names."""

    def __init__(self, reason: str, external_id: str | None = None) -> None:
        super().__init__(reason, external_id)
        self.reason = reason
        self.external_id = external_id


#: The ``reason`` of errors that say that a request is too long for its model.
OVERFLOW: Final = "context_overflow"


class ContextOverflow(Exception):
    """Raised by an agent whose request its model has refused as too long: the window is made smaller, and the
    agent called again."""

    reason = OVERFLOW


@dataclass(frozen=True)
class TurnResult:
    """The outcome of a turn. ``messages`` are those of the agent, ``text`` is what the last one says,
    ``finish_reason`` the service's word for why the last reply ended."""

    status: Literal["completed", "waiting", "stopped", "failed"]
    stop_reason: str
    text: str
    messages: list[Message]
    usage: dict[str, Any] | None
    cost: float
    steps: int
    turn_id: str
    session: Any
    finish_reason: str | None = None

    def _repr_html_(self) -> str:
        from harnpy.formats.markup import money, plural
        from harnpy.session.cells import cell_of_messages

        cost = money(self.cost) if self.cost else ""
        pairs = [("", self.stop_reason), ("", plural(self.steps, "step")), ("cost", cost)]
        return cell_of_messages(f"Turn {self.status}", pairs, self.messages).html


@dataclass(frozen=True)
class RunEvent:
    """A piece of a streamed answer (``kind`` ``chunk``), or in the end its ``result``."""

    kind: Literal["chunk", "result"]
    text: str = ""
    result: TurnResult | None = None


# `AgentDef`: an agent as data, which a session keeps and an agent loop runs. Spec: 10 §C7.1.


@dataclass(frozen=True)
class Budget:
    """The limits of one turn; None means unlimited.

    ``max_cost`` is in USD, ``max_tokens`` counts those of all calls, ``max_steps`` calls of the model,
    ``max_seconds`` is time; ``deadline``, a time by RFC 3339, holds for all turns. Time is looked at before
    each call. Raises `InvalidArgument` for what is none of these.
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    max_steps: int | None = None
    max_seconds: float | None = None
    deadline: str | None = None

    def __post_init__(self) -> None:
        for name, kinds, what in _LIMITS:
            value = getattr(self, name)
            if value is not None and (type(value) not in kinds or value < 0):
                raise InvalidArgument(f"Budget: `{name}` must be {what}, got {value!r}")
        if self.deadline is not None and _instant(self.deadline) is None:
            raise InvalidArgument(f"Budget: `deadline` must be a time by RFC 3339, got {self.deadline!r}")

    def is_past(self, now: float) -> bool:
        """Return whether the deadline has passed ``now``, in seconds since 1970."""
        instant = None if self.deadline is None else _instant(self.deadline)
        return instant is not None and now >= instant

    def seconds_left(self, now: float) -> float | None:
        """Return how long a turn may take that begins ``now``, in seconds since 1970; None: as long as it
        wants."""
        limits = [] if self.max_seconds is None else [float(self.max_seconds)]
        instant = None if self.deadline is None else _instant(self.deadline)
        if instant is not None:
            limits.append(instant - now)
        return min(limits, default=None)

    def data(self) -> Dict:
        """Return it as JSON, without what has no limit."""
        limits = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in limits.items() if value is not None}


_COUNT: Final = ((int,), "a count")
_NUMBER: Final = ((int, float), "a number that isn't negative")
_LIMITS: Final[tuple[tuple[str, tuple[type, ...], str], ...]] = (
    ("max_cost", *_NUMBER),
    ("max_tokens", *_COUNT),
    ("max_steps", *_COUNT),
    ("max_seconds", *_NUMBER),
)


@dataclass(frozen=True)
class AgentDef:
    """An agent: what it is told, which model answers, what that may call.

    ``label`` is the name by default. ``model``: ``"provider/model"``, or options of `llm_call`; None is the
    default one. ``tools`` are names, None means all that the loop has; ``denied_tools`` are left out.
    ``capabilities`` are names of what brings tools and instructions; ``skills`` those of skills in files.
    ``settings`` hold for its sessions (10 §C8.1); ``options`` are `agent_loop`'s (07 §6.1); ``metadata``
    becomes its sessions'. Raises `InvalidArgument` for a field of the wrong type.
    """

    name: str
    description: str = ""
    system_prompt: str = ""
    label: str = ""
    model: str | Mapping[str, Any] | None = None
    capabilities: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    denied_tools: tuple[str, ...] = ()
    skills: tuple[str, ...] | None = None
    budget: Budget | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("capabilities", "tools", "denied_tools", "skills"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, is_right, what in self._checks():
            if not is_right:
                given = type(getattr(self, name)).__name__
                raise InvalidArgument(f"AgentDef: `{name}` must be {what}, got {given}")
        if not self.name.strip():
            raise InvalidArgument("AgentDef: `name` must not be blank")

    def _checks(self) -> list[tuple[str, bool, str]]:
        texts = ("name", "description", "system_prompt", "label")
        dicts = ("settings", "options", "metadata")
        model, budget = self.model, self.budget
        return [
            *((name, isinstance(getattr(self, name), str), "text") for name in texts),
            ("model", model is None or isinstance(model, str | dict), "text or a dict of options"),
            ("capabilities", _are_names(self.capabilities), "a list of names"),
            ("tools", self.tools is None or _are_names(self.tools), "a list of names or None"),
            ("denied_tools", _are_names(self.denied_tools), "a list of names"),
            ("skills", self.skills is None or _are_names(self.skills), "a list of names or None"),
            ("budget", budget is None or isinstance(budget, Budget), "a Budget or None"),
            *((name, isinstance(getattr(self, name), dict), "a dict") for name in dicts),
        ]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> AgentDef:
        """Return the definition that a dict is. Raises `InvalidArgument` for an unknown key."""
        _check_keys("AgentDef", given, tuple(each.name for each in fields(cls)))
        if "name" not in given:
            raise InvalidArgument("AgentDef: `name` is missing")
        return cls.stored(given)

    @classmethod
    def stored(cls, data: Mapping[str, Any]) -> AgentDef:
        """Return the definition that a session keeps, without the keys of other systems."""
        known = {each.name: data[each.name] for each in fields(cls) if each.name in data}
        budget = known.get("budget")
        if isinstance(budget, dict):
            names = tuple(each.name for each in fields(Budget))
            _check_keys("Budget", budget, names)
            known["budget"] = Budget(**budget)
        return cls(**{"name": known.get("label", "agent"), **known})

    def data(self) -> Dict:
        """Return it as JSON, without what is as it is by default."""
        data: Dict = {"name": self.name}
        for each in fields(self)[1:]:
            value = getattr(self, each.name)
            if value or (value == () and each.name in ("tools", "skills")):
                data[each.name] = _plain(value)
        return data

    def facts(self) -> Dict:
        """Return what ``session_created`` says of it."""
        return {"agent_name": self.name, "agent_label": self.label or self.name, "definition": self.data()}


def _instant(text: Any) -> float | None:
    """Return the time that a text is, in seconds since 1970; None for what is none."""
    if not isinstance(text, str) or not is_rfc3339(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except ValueError:
        return None


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(name, str) for name in value)


def _check_keys(what: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            elsewhere = _ELSEWHERE.get(str(key)) if what == "AgentDef" else None
            hint = elsewhere or expected(str(key), known)
            raise InvalidArgument(f"{what}: unknown key '{key}' ({hint})")


#: Options of loops that stand elsewhere in a definition, and where.
_LOOP_OPTIONS = "approval_policy permissions policy max_iterations temperature tool_format"
_ELSEWHERE = {
    "provider": 'a model is written with its provider: `model: "openai/gpt-5-mini"`',
    "system": "a definition has `system_prompt`",
    **{key: f"options of the loop stand in `options`: {{{key}: …}}" for key in _LOOP_OPTIONS.split()},
}


def _plain(value: Any) -> Any:
    if isinstance(value, Budget):
        return value.data()
    return list(value) if isinstance(value, tuple) else value


# Reading what an agent gave. Spec: 10 §C7.1.


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
    for name, is_right, wanted in fields:
        if not is_right:
            given = type(getattr(reply, name)).__name__
            raise AgentError(f"agent {agent} returned a Reply whose `{name}` is {given}: expected {wanted}")
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
