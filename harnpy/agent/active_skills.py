"""The skills of one loop: which match, which are active, what they add to the prompt, which tools they leave.

The loop calls `match` at the start of an iteration, `block` for the system prompt, `allows` for each tool,
and answers the model's `load_skill` calls with `load`. The MCP servers that a skill requires are held while
it is active. Spec: 07 §13.2, §15.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.loop_options import SKILL_MATCH
from harnpy.agent.skills import (
    NO_SKILL_NAME,
    NO_SKILL_REGISTRY,
    SKILLS,
    Library,
    SkillNotFound,
    description_of,
    skill_id,
)
from harnpy.agent.tool_registry import are_entries
from harnpy.faults import Interruption, MisuseError
from harnpy.formats.dicts import Options, as_texts
from harnpy.formats.json import pretty_json
from harnpy.formats.text_size import byte_length
from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from harnpy.agent.runtime import Runtime
    from harnpy.agent.skills import FoundSkill
    from harnpy.formats.dicts import Dict
    from harnpy.world import World

_TOKEN = re.compile(r"[^\W_]+")
_SHORTEST = 3
_NAMED = 2.0
_TOUCHED = 1.5
_DISABLED = ("disable-model-invocation", "disable_model_invocation")


class Candidate(NamedTuple):
    skill: Dict
    score: float
    reason: str


def candidates(skills: Iterable[Dict], message: str, working_files: Sequence[str]) -> list[Candidate]:
    """Return the skills that match at all, best first."""
    scored = [score(skill, message, working_files) for skill in skills if may_invoke(skill)]
    return sorted((found for found in scored if found.score > 0), key=lambda found: -found.score)


def may_invoke(skill: Dict) -> bool:
    """Return True if the model may load the skill by itself."""
    return not any(skill.get(key) for key in _DISABLED)


def score(skill: Dict, message: str, working_files: Sequence[str]) -> Candidate:
    lowered = message.lower()
    tokens = [token for token in _TOKEN.findall(lowered) if byte_length(token) >= _SHORTEST]
    hits = sum(token in text.lower() for text in description_of(skill) for token in tokens)
    total, reasons = 0.0, []
    if hits:
        total += hits / (hits + 1.5)
        reasons.append(f"{hits} keyword hit(s)")
    if skill["name"].lower() in lowered:
        total += _NAMED
        reasons.append(f"prompt mentions '{skill['name']}'")
    touched = sum(_touches(pattern, working_files) for pattern in as_texts(skill.get("paths")))
    if touched:
        total += _TOUCHED * touched
        reasons.append(f"{touched} path glob(s) matched")
    return Candidate(skill, total, "; ".join(reasons))


def path_pattern(glob: str) -> re.Pattern[str]:
    """``*`` and ``?`` stay within a segment of the path, ``**`` crosses them."""
    pieces = []
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", glob):
        pieces.append(_WILD.get(piece) or re.escape(piece))
    return re.compile("".join(pieces), re.DOTALL)


_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _touches(glob: str, files: Sequence[str]) -> bool:
    pattern = path_pattern(glob)
    return any(pattern.fullmatch(file) for file in files)


# `load_skill`, the tool with which a model asks for a skill. Spec: 07 §13.2.


LOAD_SKILL = "load_skill"
SIGNED_ONLY = "HARN_REQUIRE_SIGNED_SKILLS"

_DESCRIPTION = "Load the full instructions of a skill from the catalog, by its id."
_NAME = "The id of the skill."
_SIGNED = "Refuse the skill unless it is signed."

#: The tool as a registry entry.
LOAD_SKILL_ENTRY: Dict = {
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


def load_skill_tool(style: str) -> Dict:
    """Return the tool as native JSON; ``style`` is "openai" or "anthropic"."""
    definition = {"name": LOAD_SKILL, "description": _DESCRIPTION}
    if style == "anthropic":
        return {**definition, "input_schema": _SCHEMA}
    return {"type": "function", "function": {**definition, "parameters": _SCHEMA}}


class SkillRefused(Exception):
    """The skill can't be loaded; ``kind`` is the name of the model's error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class LoadedSkill(NamedTuple):
    skill: Dict
    body: str


def load_skill(
    library: Library,
    arguments: Any,
    session_id: str,
    env: Callable[[str], str | None],
    attempted: Callable[[str], None],
) -> LoadedSkill:
    """Return the skill that a call asks for, and its body. Calls ``attempted(id)`` if there is one.

    Raises `Refused`.
    """
    name = arguments.get("name") if isinstance(arguments, dict) else None
    if not isinstance(name, str) or not name.strip():
        raise SkillRefused("invalid_arguments", NO_SKILL_NAME)
    if not library.entries:
        raise SkillRefused("skill_registry_unavailable", NO_SKILL_REGISTRY)
    try:
        skill = library.find(name)
    except SkillNotFound as error:
        raise SkillRefused("skill_not_found", str(error)) from error
    id = skill_id(skill)
    attempted(id)
    if not may_invoke(skill):
        raise SkillRefused(
            "skill_model_invocation_disabled", f"skill '{id}' is gated to explicit user invocation"
        )
    if arguments.get("require_signature") is True or _wants_signature(skill, env):
        raise SkillRefused("UnsignedSkillError", f"skill '{id}' is not signed")
    body = library.body(skill, "body", "prompt")
    if body is None:
        message = f"load_skill: skill '{id}' is not lazily loadable in this scope"
        raise SkillRefused("skill_not_found", message)
    return LoadedSkill(skill, library.render(skill, body, session_id=session_id))


def _wants_signature(skill: Dict, env: Callable[[str], str | None]) -> bool:
    asked = (env(SIGNED_ONLY) or "").strip().lower() in ("1", "true", "yes", "on")
    return asked or skill.get("require_signature") is True or bool(skill.get("trusted_signers"))


class SkillServers:
    """``note`` records a transcript event. Leaving the block lets all servers go."""

    def __init__(self, runtime: Runtime, note: Callable[[Dict], None]) -> None:
        self._runtime = runtime
        self._record = note
        self._held: dict[str, list[str]] = {}

    def hold(self, id: str, skill: Dict) -> None:
        """Make the servers of a skill active. One that can't be connected is noted, and missing."""
        if id in self._held:
            return
        held = self._held[id] = []
        for server in _required(skill):
            try:
                self._runtime.tasks.wait(self._runtime.servers().ensure_active(server))
            except Exception as error:
                if not self._runtime.is_failure(error):
                    raise
                about = {"skill": id, "server": server, "error": str(error)}
                self._note("skill_mcp_bind_failed", id, about)
                text = f"MCP server '{server}' of skill '{id}': {error}"
                self._runtime.world.warn("agent.skills", text)
                continue
            held.append(server)
            self._note("skill_mcp_bound", id, {"skill": id, "server": server})

    def let_go(self, id: str) -> None:
        """Release the servers of a skill."""
        for server in self._held.pop(id, ()):
            self._release(server)
            self._note("skill_mcp_unbound", id, {"skill": id, "server": server})

    def _release(self, server: str) -> None:
        self._runtime.tasks.wait(self._runtime.servers().release(server))

    def _note(self, kind: str, skill: str, about: Dict) -> None:
        self._record(lifecycle_event(kind, skill, metadata=about))

    def __enter__(self) -> SkillServers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        held, self._held = self._held, {}
        if error is None or isinstance(error, Exception | Interruption):  # not in a task that is stopped
            for server in (server for servers in held.values() for server in servers):
                self._release(server)


def _required(skill: Dict) -> list[str]:
    options = Options(skill)
    return options.strings("requires_mcp") or options.strings("mcp") or []


METADATA = "metadata"
_STRATEGIES = (METADATA, "host", "embedding")
_INTERNAL = "__harn_"
_NAMESPACE = "namespace:"
_TOPIC = "agent.skills"


@dataclass(frozen=True, slots=True)
class Matching:
    """The way skills become active. At most ``top_n`` may; with ``sticky`` only the first turn chooses."""

    strategy: str = SKILL_MATCH.default("strategy")
    top_n: int = SKILL_MATCH.default("top_n")
    sticky: bool = SKILL_MATCH.default("sticky")
    working_files: tuple[str, ...] = ()


_BY_METADATA = Matching()


def read_matching(given: Options, working_files: tuple[str, ...] = ()) -> Matching:
    """Read the option `skill_match`."""
    if not (given.given or working_files):
        return _BY_METADATA
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
    if given is None:
        return []
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
        self._skills = skills
        self._found = found
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
        """Return True if there are any skills."""
        return bool(self._skills)

    @cached_property
    def _library(self) -> Library:
        return Library(self._skills, self._found, self._world.environment.get)

    @property
    def active(self) -> list[str]:
        """Return the ids of the active skills, for the session to keep."""
        return list(self._active)

    def restore(self, ids: Iterable[str]) -> None:
        """Continue with the skills that were active at the end of the session's last loop."""
        known = {skill_id(skill): skill for skill in self._skills}
        self._active = {id: known[id] for id in ids if id in known}
        self._resumed = bool(self._active)
        for id, skill in self._active.items():
            self.servers.hold(id, skill)
        self.changes += self._resumed

    # Matching.

    def due(self, iteration: int) -> bool:
        """Return True if the iteration begins with matching."""
        return bool(self._skills) and not (self._matching.sticky and (iteration > 0 or self._resumed))

    def match(self, message: str, iteration: int) -> None:
        """Choose the active skills for ``message``, the user's latest, if matching is due."""
        if not self.due(iteration):
            return
        if self._matching.strategy != METADATA:
            text = f"skill_match strategy '{self._matching.strategy}' needs a host; metadata decides"
            self._world.warn(_TOPIC, text)
        fitting = candidates(self._skills, message, self._matching.working_files)
        self._note_event("skill_matched", "", self._report(fitting, iteration))
        self._change({skill_id(found.skill): found for found in fitting[: self._matching.top_n]}, iteration)

    def _report(self, fitting: list[Candidate], iteration: int) -> Dict:
        return {
            "strategy": self._matching.strategy,
            "iteration": iteration,
            "reassess": iteration > 0,
            "candidates": [
                {"name": skill_id(found.skill), "score": found.score, "reason": found.reason}
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
        skill, tools = found.skill, as_texts(found.skill.get("allowed_tools"))
        description, _ = description_of(skill)
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
            self._world.warn(_TOPIC, f"{hook} of skill '{skill_id(skill)}': {error}")

    # The effects of the active skills.

    def block(self) -> str:
        """Return the section of the system prompt, "" when no skill is active."""
        sections = [self._section(id, skill) for id, skill in self._in_force().items()]
        return "\n\n".join(["## Active skills", *sections]) if sections else ""

    def _section(self, id: str, skill: Dict) -> str:
        description, occasion = description_of(skill)
        tools = as_texts(skill.get("allowed_tools"))
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
        """Return True if the active skills allow the model a tool; ``entry`` is the tool's, if it has one."""
        skills = self._in_force().values()
        allowed = {tool for skill in skills for tool in as_texts(skill.get("allowed_tools"))}
        if not allowed or "*" in allowed or name in allowed or name == LOAD_SKILL:
            return True
        namespace = (entry or {}).get("namespace")
        tagged = isinstance(namespace, str) and _NAMESPACE + namespace in allowed
        return tagged or name.startswith(_INTERNAL)

    def _in_force(self) -> dict[str, Dict]:
        return {**self._active, **self._loaded}

    # The tool.

    def answer(self, call: Dict) -> tuple[str, bool]:
        """Return the answer to a `load_skill` call, and whether it succeeded."""
        return self.load(call["arguments"])

    def load(self, arguments: Any) -> tuple[str, bool]:
        """Return the answer to such a call with these arguments, and whether it succeeded."""
        try:
            setting = self._world.unguarded.environment.get
            loaded = load_skill(self._library, arguments, self._session_id, setting, self._note_attempt)
        except SkillRefused as refusal:
            name = arguments.get("name") if isinstance(arguments, dict) else None
            error = {"error": refusal.kind, "message": refusal.message, "skill": name}
            return pretty_json(error), False
        id = skill_id(loaded.skill)
        self._loaded[id] = loaded.skill
        self.servers.hold(id, loaded.skill)
        self.changes += 1
        return loaded.body, True

    def _note_attempt(self, id: str) -> None:
        unsigned = {"skill_id": id, "signer_fingerprint": None, "signed": False, "trusted": False}
        self._note_event("skill.loaded", id, unsigned)

    def _note_event(self, kind: str, text: str, metadata: Dict) -> None:
        self._note(lifecycle_event(kind, text, metadata=metadata))
