"""`AgentDef`: an agent as data, which a session keeps and an agent loop runs. Spec: 10 §C7.1."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from harnpy.reading.option_tables import expected
from harnpy.session.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.reading.dicts import Dict


@dataclass(frozen=True)
class Budget:
    """What one turn may take; None is no limit.

    ``max_cost`` is in USD, ``max_tokens`` counts those of all calls, ``max_steps`` calls of the model,
    ``max_seconds`` is time, which is looked at between two calls. Raises `InvalidArgument` for less than 0.
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    max_steps: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            wanted: tuple[type, ...] = (int,) if each.name in _COUNTS else (int, float)
            if value is not None and (type(value) not in wanted or value < 0):
                what = "a count" if each.name in _COUNTS else "a number that isn't negative"
                raise InvalidArgument(f"Budget: `{each.name}` must be {what}, got {value!r}")

    def data(self) -> Dict:
        """Return it as JSON, without what has no limit."""
        limits = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in limits.items() if value is not None}


_COUNTS: Final = ("max_tokens", "max_steps")


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
            _check_keys("Budget", budget, (*names, "deadline"))
            known["budget"] = Budget(**{name: budget[name] for name in names if name in budget})
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
