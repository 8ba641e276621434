"""`load_skill`, the tool with which a model asks for a skill. Spec: 07 §13.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.skills.library import NO_NAME, NO_REGISTRY, SkillNotFound
from harnpy.agent.skills.matching import may_invoke
from harnpy.agent.skills.skill_registry import id_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.skills.library import Library
    from harnpy.reading.dicts import Dict


LOAD_SKILL = "load_skill"
SIGNED_ONLY = "HARN_REQUIRE_SIGNED_SKILLS"

_DESCRIPTION = "Load the full instructions of a skill from the catalog, by its id."
_NAME = "The id of the skill."
_SIGNED = "Refuse the skill unless it is signed."

#: The tool as a registry entry.
ENTRY: Dict = {
    "name": LOAD_SKILL,
    "description": _DESCRIPTION,
    "parameters": {
        "name": {"type": "string", "description": _NAME},
        "require_signature": {"type": "boolean", "description": _SIGNED, "required": False},
    },
}
_SCHEMA: Dict = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": _NAME},
        "require_signature": {"type": "boolean", "description": _SIGNED},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def native_tool(style: str) -> Dict:
    """Return the tool as native JSON; ``style`` is "openai" or "anthropic"."""
    definition = {"name": LOAD_SKILL, "description": _DESCRIPTION}
    if style == "anthropic":
        return {**definition, "input_schema": _SCHEMA}
    return {"type": "function", "function": {**definition, "parameters": _SCHEMA}}


class Refused(Exception):
    """The skill can't be loaded; ``kind`` is the name of the model's error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Loaded(NamedTuple):
    skill: Dict
    body: str


def load(
    library: Library,
    arguments: Any,
    session_id: str,
    env: Callable[[str], str | None],
    attempted: Callable[[str], None],
) -> Loaded:
    """Return the skill that a call asks for, and its body. Calls ``attempted(id)`` if there is one.

    Raises `Refused`.
    """
    name = arguments.get("name") if isinstance(arguments, dict) else None
    if not isinstance(name, str) or not name.strip():
        raise Refused("invalid_arguments", NO_NAME)
    if not library.entries:
        raise Refused("skill_registry_unavailable", NO_REGISTRY)
    try:
        skill = library.find(name)
    except SkillNotFound as error:
        raise Refused("skill_not_found", str(error)) from error
    id = id_of(skill)
    attempted(id)
    if not may_invoke(skill):
        raise Refused("skill_model_invocation_disabled", f"skill '{id}' is gated to explicit user invocation")
    if arguments.get("require_signature") is True or _wants_signature(skill, env):
        raise Refused("UnsignedSkillError", f"skill '{id}' is not signed")
    body = library.body(skill, "body", "prompt")
    if body is None:
        message = f"load_skill: skill '{id}' is not lazily loadable in this scope"
        raise Refused("skill_not_found", message)
    return Loaded(skill, library.render(skill, body, session_id=session_id))


def _wants_signature(skill: Dict, env: Callable[[str], str | None]) -> bool:
    asked = (env(SIGNED_ONLY) or "").strip().lower() in ("1", "true", "yes", "on")
    return asked or skill.get("require_signature") is True or bool(skill.get("trusted_signers"))
