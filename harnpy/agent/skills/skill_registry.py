"""Skill registries and the skills in them. Spec: 07 §13.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.registries import RegistryKind
from harnpy.faults import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict

SKILLS = RegistryKind("skill")

_STRINGS = ("short", "description", "when_to_use", "prompt", "invocation", "model", "effort")
_LISTS = ("paths", "allowed_tools", "mcp", "requires_mcp")
_NAMESPACE = "namespace:"


def define(registry: Any, name: Any, config: Any) -> Dict:
    """Return the registry with the skill added, or replaced if its name is taken. Raises `OptionError`."""
    entries = SKILLS.first_entries(registry, "skill_define")
    if not isinstance(name, str) or not name.strip():
        raise OptionError("skill_define: skill name must be a non-empty string")
    if config is not None and not isinstance(config, dict):
        raise OptionError("skill_define: third argument must be a config dict")
    skill = _entry(name, config or {})
    if any(entry["name"] == name for entry in entries):
        return SKILLS.registry_of(skill if entry["name"] == name else entry for entry in entries)
    return SKILLS.registry_of([*entries, skill])


def id_of(entry: Dict) -> str:
    """Return a skill's name, with its namespace."""
    namespace = entry.get("namespace")
    return f"{namespace}/{entry['name']}" if isinstance(namespace, str) and namespace else entry["name"]


def described(entry: Dict) -> tuple[str, str]:
    """Return a skill's description and when to use it, "" for what it lacks."""
    return _text(entry.get("description")), _text(entry.get("when_to_use"))


def describe(entries: Iterable[Dict]) -> str:
    """Return the skills of a registry as text for people."""
    lines = []
    for entry in sorted(entries, key=lambda entry: entry["name"]):
        lines += skill_lines(entry["name"], *described(entry))
    return "\n".join(["Available skills:", *(lines or ["(none)"])])


def skill_lines(shown: str, description: str, occasion: str) -> list[str]:
    """Return a skill's lines in a list of skills."""
    lines = [f"- {shown}: {description}" if description else f"- {shown}"]
    return [*lines, f"  when: {occasion}"] if occasion else lines


def _entry(name: str, config: Dict) -> Dict:
    unset = {key for key in (*_STRINGS, *_LISTS) if config.get(key) is None}
    given = {key: value for key, value in config.items() if key not in unset}
    for key in _STRINGS:
        if not isinstance(given.get(key, ""), str):
            raise OptionError(f"skill_define: '{key}' must be a string")
    for key in _LISTS:
        if not isinstance(given.get(key, []), list):
            raise OptionError(f"skill_define: '{key}' must be a list")
    for tool in given.get("allowed_tools", []):
        _check_tool(tool)
    return {"description": given.get("short", ""), **given, "name": name}


def _check_tool(tool: Any) -> None:
    if not isinstance(tool, str) or ":" not in tool:
        return
    if not tool.startswith(_NAMESPACE):
        raise OptionError(
            f"skill_define: 'allowed_tools' entry '{tool}' contains ':' — only the `namespace:<tag>` prefix "
            "is recognized"
        )
    if not tool.removeprefix(_NAMESPACE).strip():
        raise OptionError(f"skill_define: 'allowed_tools' entry '{tool}' missing a tag after the colon")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
