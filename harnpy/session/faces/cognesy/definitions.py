"""What an agent is. Spec: 10 §A3.1."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from harnpy.session.agents.definition import AgentDef, Budget

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Names of fields → those that a session's log has (10 §C7.1). Others have one name.
_STORED = {"llm_config": "model", "tools_deny": "denied_tools"}


class LLMConfig:
    """Options of a model are a dict: ``provider`` (Cognesy's ``driver``), ``model`` …"""

    @staticmethod
    def from_array(data: Mapping[str, Any]) -> dict[str, Any]:
        return {"provider" if key == "driver" else key: value for key, value in data.items()}


@dataclass(frozen=True)
class AgentDefinition:
    """What an agent is. Without a ``label`` that is the name; ``tools`` and ``skills`` None are all."""

    name: str
    description: str = ""
    system_prompt: str = ""
    label: str = ""
    llm_config: Any = None
    capabilities: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    tools_deny: tuple[str, ...] = ()
    skills: tuple[str, ...] | None = None
    budget: Budget | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.name)
        for name in ("capabilities", "tools", "tools_deny", "skills"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else tuple(value))

    def facts(self) -> dict[str, Any]:
        """Return what ``session_created`` says of the agent. Raises `InvalidArgument` for a wrong field."""
        given = {_STORED.get(each.name, each.name): getattr(self, each.name) for each in fields(self)}
        return AgentDef(**given).facts()

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> AgentDefinition:
        """Read what `facts` gives. Keys that Cognesy doesn't know are left out."""
        stored = facts.get("definition") or {}
        known = {each.name: stored.get(_STORED.get(each.name, each.name)) for each in fields(cls)}
        known |= {"name": facts.get("agent_name", ""), "label": facts.get("agent_label", "")}
        if known["budget"] is not None:
            limits = [each.name for each in fields(Budget)]
            known["budget"] = Budget(**{name: known["budget"].get(name) for name in limits})
        return cls(**{key: value for key, value in known.items() if value is not None})
