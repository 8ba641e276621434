"""`AgentDef`: an agent as data, which a session keeps and an agent loop runs. Spec: 10 §C7.1."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from harnpy.reading.option_tables import expected
from harnpy.session.errors import InvalidArgument
from harnpy.world.clock import is_rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.reading.dicts import Dict


@dataclass(frozen=True)
class Budget:
    """What one turn may take; None is no limit.

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
        """Whether the deadline has passed ``now``, in seconds since 1970."""
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
        """Return the definition that a session keeps. What other systems keep there beside it is left out."""
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
            raise InvalidArgument(f"{what}: unknown key '{key}' ({expected(str(key), known)})")


def _plain(value: Any) -> Any:
    if isinstance(value, Budget):
        return value.data()
    return list(value) if isinstance(value, tuple) else value
