"""Skill registries: immutable plain dicts ``{_type, skills}``; a change makes a new one.

Spec: 07 §13.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict


REGISTRY = "skill_registry"

_STRINGS = ("short", "description", "when_to_use", "prompt", "invocation", "model", "effort")
_LISTS = ("paths", "allowed_tools", "mcp", "requires_mcp")
_NAMESPACE = "namespace:"


def registry_of(entries: Iterable[Dict]) -> Dict:
    return {"_type": REGISTRY, "skills": list(entries)}


def is_registry(value: Any) -> bool:
    return isinstance(value, dict) and value.get("_type") == REGISTRY


def entries_of(registry: Any, caller: str, what: str = "requires a skill registry") -> list[Dict]:
    """Return the entries of an argument of ``caller``; errors say ``what`` it should have been."""
    if not isinstance(registry, dict):
        raise OptionError(f"{caller}: {what}")
    entries: Any = registry.get("skills")
    if not is_registry(registry) or not are_entries(entries):
        raise OptionError(f"{caller}: argument must be a skill registry (created with skill_registry())")
    found: list[Dict] = entries
    return found


def first_entries(registry: Any, caller: str) -> list[Dict]:
    """Return the entries of a builtin's first argument of several."""
    return entries_of(registry, caller, "first argument must be a skill registry")


def are_entries(value: Any) -> bool:
    """Whether ``value`` is a list of skills."""
    return isinstance(value, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in value
    )


def define(registry: Any, name: Any, config: Any) -> Dict:
    """Return the registry with the skill added, or replaced if its name is taken. Raises `OptionError`."""
    entries = first_entries(registry, "skill_define")
    if not isinstance(name, str) or not name.strip():
        raise OptionError("skill_define: skill name must be a non-empty string")
    if config is not None and not isinstance(config, dict):
        raise OptionError("skill_define: third argument must be a config dict")
    skill = _entry(name, config or {})
    if any(entry["name"] == name for entry in entries):
        return registry_of(skill if entry["name"] == name else entry for entry in entries)
    return registry_of([*entries, skill])


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
