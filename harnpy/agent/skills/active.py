"""The skills of one loop: which are active, what they add to the prompt, which tools they leave.

The loop calls `match` at the start of an iteration, `block` for the system prompt, `allows` for each tool,
and answers the model's `load_skill` calls with `load`. Spec: 07 §13.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harnpy.agent.registries import are_entries
from harnpy.agent.skills.library import Library
from harnpy.agent.skills.loading import LOAD_SKILL, Refused, load
from harnpy.agent.skills.matching import Candidate, candidates
from harnpy.agent.skills.skill_registry import SKILLS, described, id_of
from harnpy.faults import MisuseError
from harnpy.reading.lenient import Options
from harnpy.session.transcript import lifecycle_event
from harnpy.text.json.writer import pretty_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.agent.skills.library import FoundSkill
    from harnpy.agent.skills.skill_servers import SkillServers
    from harnpy.reading.dicts import Dict
    from harnpy.world import World


METADATA = "metadata"
_STRATEGIES = (METADATA, "host", "embedding")
_INTERNAL = "__harn_"
_NAMESPACE = "namespace:"
_TOPIC = "agent.skills"


@dataclass(frozen=True, slots=True)
class Matching:
    """How skills become active. ``top_n`` is how many may; with ``sticky`` only the first turn chooses."""

    strategy: str = METADATA
    top_n: int = 1
    sticky: bool = True
    working_files: tuple[str, ...] = ()


def read_matching(given: Options, working_files: tuple[str, ...] = ()) -> Matching:
    """How skills are matched: ``given`` is `skill_match`."""
    strategy = given.string("strategy", METADATA)
    top_n, sticky = given.integer("top_n"), given.value("sticky")
    return Matching(
        strategy if strategy in _STRATEGIES else METADATA,
        max(1, top_n or 1),
        sticky is None or sticky is True,
        working_files,
    )


def read_working_files(options: Options) -> tuple[str, ...]:
    """The files that a loop works on, one or a list of them."""
    files = options.value("working_files")
    return (files,) if isinstance(files, str) else tuple(options.strings("working_files") or ())


def read_skills(given: Any, label: str) -> list[Dict]:
    """Return the skills of an option: a registry, a list, or nil for none. Raises `MisuseError`."""
    entries = given.get("skills") if SKILLS.is_registry(given) else given
    if entries is None:
        return []
    if not are_entries(entries):
        raise MisuseError(f"{label}: skills must be a skill registry or a list of skill entries")
    return list(entries)


class ActiveSkills:
    """``note`` records a transcript event, ``emit(type, **fields)`` notifies subscribers."""

    def __init__(
        self,
        skills: list[Dict],
        matching: Matching,
        session_id: str,
        world: World,
        note: Callable[[Dict], None],
        emit: Callable[..., None],
        servers: SkillServers,
        found: Iterable[FoundSkill] = (),
    ) -> None:
        self._library = Library(skills, found, world.environment.get)
        self._matching = matching
        self._session_id = session_id
        self._world = world
        self._note = note
        self._emit = emit
        self.servers = servers
        self._active: dict[str, Dict] = {}
        self._loaded: dict[str, Dict] = {}
        self._resumed = False
        #: Counts the changes of the active skills.
        self.changes = 0

    def __bool__(self) -> bool:
        """Whether there are any skills."""
        return bool(self._library.entries)

    @property
    def active(self) -> list[str]:
        """Return the ids of the active skills, for the session to keep."""
        return list(self._active)

    def restore(self, ids: Iterable[str]) -> None:
        """Continue with the skills that were active at the end of the session's last loop."""
        known = {id_of(skill): skill for skill in self._library.entries}
        self._active = {id: known[id] for id in ids if id in known}
        self._resumed = bool(self._active)
        for id, skill in self._active.items():
            self.servers.hold(id, skill)
        self.changes += self._resumed

    # Matching.

    def due(self, iteration: int) -> bool:
        """Whether the iteration begins with matching."""
        return bool(self) and not (self._matching.sticky and (iteration > 0 or self._resumed))

    def match(self, message: str, iteration: int) -> None:
        """Choose the active skills for ``message``, the user's latest, if matching is due."""
        if not self.due(iteration):
            return
        if self._matching.strategy != METADATA:
            text = f"skill_match strategy '{self._matching.strategy}' needs a host; metadata decides"
            self._world.warn(_TOPIC, text)
        fitting = candidates(self._library.entries, message, self._matching.working_files)
        self._note_event("skill_matched", "", self._report(fitting, iteration))
        self._change({id_of(found.skill): found for found in fitting[: self._matching.top_n]}, iteration)

    def _report(self, fitting: list[Candidate], iteration: int) -> Dict:
        return {
            "strategy": self._matching.strategy,
            "iteration": iteration,
            "reassess": iteration > 0,
            "candidates": [
                {"name": id_of(found.skill), "score": found.score, "reason": found.reason}
                for found in fitting
            ],
            "working_files": list(self._matching.working_files),
        }

    def _change(self, chosen: dict[str, Candidate], iteration: int) -> None:
        former = self._active
        self.changes += former.keys() != chosen.keys()
        self._active = {id: found.skill for id, found in chosen.items()}
        for id, skill in former.items():
            if id not in chosen:
                self._deactivated(id, skill, iteration)
        for id, found in chosen.items():
            if id not in former:
                self._activated(id, found, iteration)

    def _deactivated(self, id: str, skill: Dict, iteration: int) -> None:
        self._note_event("skill_deactivated", id, {"name": id, "iteration": iteration})
        self._emit("skill_deactivated", skill_name=id, iteration=iteration)
        self._call(skill, "on_deactivate")
        if id not in self._loaded:
            self.servers.let_go(id)

    def _activated(self, id: str, found: Candidate, iteration: int) -> None:
        skill, tools = found.skill, _allowed(found.skill)
        description, _ = described(skill)
        about = {"name": id, "description": description, "iteration": iteration}
        why = {"score": found.score, "reason": found.reason, "allowed_tools": tools}
        self._note_event("skill_activated", id, {**about, **why})
        self._emit("skill_activated", skill_name=id, iteration=iteration, reason=found.reason)
        if tools:
            self._note_event("skill_scope_tools", id, {"name": id, "allowed_tools": tools})
            self._emit("skill_scope_tools", skill_name=id, allowed_tools=tools)
        self.servers.hold(id, skill)
        self._call(skill, "on_activate")

    def _call(self, skill: Dict, hook: str) -> None:
        function = skill.get(hook)
        if not callable(function):
            return
        try:
            function()
        except Exception as error:
            self._world.warn(_TOPIC, f"{hook} of skill '{id_of(skill)}': {error}")

    # The effects of the active skills.

    def block(self) -> str:
        """Return the section of the system prompt, "" when no skill is active."""
        sections = [self._section(id, skill) for id, skill in self._in_force().items()]
        return "\n\n".join(["## Active skills", *sections]) if sections else ""

    def _section(self, id: str, skill: Dict) -> str:
        description, occasion = described(skill)
        tools = _allowed(skill)
        about = [
            f"### {id}",
            description,
            f"When to use: {occasion}" if occasion else "",
            f"Scoped tools: {', '.join(tools)}" if tools else "",
        ]
        body = self._library.body(skill, "body", "prompt") or ""
        rendered = self._library.render(skill, body, session_id=self._session_id).strip()
        return "\n\n".join(filter(None, ["\n".join(filter(None, about)), rendered]))

    def allows(self, name: str, entry: Dict | None = None) -> bool:
        """Whether the active skills allow the model a tool; ``entry`` is the tool's, if it has one."""
        allowed = {tool for skill in self._in_force().values() for tool in _allowed(skill)}
        if not allowed or "*" in allowed or name in allowed or name == LOAD_SKILL:
            return True
        namespace = (entry or {}).get("namespace")
        tagged = isinstance(namespace, str) and _NAMESPACE + namespace in allowed
        return tagged or name.startswith(_INTERNAL)

    def _in_force(self) -> dict[str, Dict]:
        return {**self._active, **self._loaded}

    # The tool.

    def load(self, arguments: Any) -> tuple[str, bool]:
        """Return the answer to a `load_skill` call, and whether it succeeded."""
        try:
            setting = self._world.unguarded.environment.get
            loaded = load(self._library, arguments, self._session_id, setting, self._note_attempt)
        except Refused as refusal:
            name = arguments.get("name") if isinstance(arguments, dict) else None
            error = {"error": refusal.kind, "message": refusal.message, "skill": name}
            return pretty_json(error), False
        id = id_of(loaded.skill)
        self._loaded[id] = loaded.skill
        self.servers.hold(id, loaded.skill)
        self.changes += 1
        return loaded.body, True

    def _note_attempt(self, id: str) -> None:
        unsigned = {"skill_id": id, "signer_fingerprint": None, "signed": False, "trusted": False}
        self._note_event("skill.loaded", id, unsigned)

    def _note_event(self, kind: str, text: str, metadata: Dict) -> None:
        self._note(lifecycle_event(kind, text, metadata=metadata))


def _allowed(skill: Dict) -> list[str]:
    tools = skill.get("allowed_tools")
    return [tool for tool in tools if isinstance(tool, str)] if isinstance(tools, list) else []
