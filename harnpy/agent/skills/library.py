"""A set of skills, and how one of them is found and read. Spec: 07 §13."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.agent.skills.rendering import substituted, variables
from harnpy.agent.skills.skill_registry import SKILLS, id_of
from harnpy.faults import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.reading.dicts import Dict


NO_NAME = "load_skill: requires a non-empty skill name"
NO_REGISTRY = (
    "load_skill: no skill registry is bound to this scope. Start the VM with discovered skills first."
)


class SkillNotFound(OptionError):
    """No skill, or more than one, has that name; ``str()`` is the sentence."""


class FoundSkill(NamedTuple):
    """A skill found in a file: its entry has no body."""

    entry: Dict
    body: str
    directory: str


class Library:
    """``entries`` are the available skills, ``found`` those of files, whose bodies it can read."""

    def __init__(
        self, entries: Sequence[Dict], found: Iterable[FoundSkill], env: Callable[[str], str | None]
    ) -> None:
        self.entries = entries
        self._found = {id_of(skill.entry): skill for skill in found}
        self._env = env

    def find(self, name: str) -> Dict:
        """Return the skill with that id, else the one with that name. Raises `SkillNotFound`."""
        for entry in self.entries:
            if id_of(entry) == name:
                return entry
        named = [entry for entry in self.entries if entry["name"] == name]
        if not named:
            raise SkillNotFound(f"skill '{name}' not found")
        if len(named) > 1:
            raise SkillNotFound(f"skill '{name}' is ambiguous; use the fully qualified id from the catalog")
        return named[0]

    def body(self, entry: Dict, *keys: str) -> str | None:
        """Return a skill's body: the first of ``keys`` that the entry has, else its file's body."""
        for key in keys:
            value = entry.get(key)
            if isinstance(value, str):
                return value
        found = self._found.get(id_of(entry))
        return None if found is None else found.body

    def render(
        self, entry: Dict, body: str, arguments: Sequence[str] = (), session_id: str | None = None
    ) -> str:
        """Return the entry's ``body`` with its placeholders filled in."""
        found = self._found.get(id_of(entry))
        directory = entry.get("skill_dir", None if found is None else found.directory)
        return substituted(body, arguments, variables(self._env, directory, session_id))


def found_registry(found: Iterable[FoundSkill]) -> Dict:
    """Return the registry of the found skills: the global `skills`."""
    return SKILLS.registry_of(skill.entry for skill in found)
