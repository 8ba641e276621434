"""`AgentBuild`: an agent put together from a definition: capabilities and the options of its loop.

A capability is tools, instructions and options under one name. Spec: 10 §C7.1.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Self

from harnpy.agent.factory.tools import Tool, tool, tool_of
from harnpy.agent.rules.hooks import PRE_TOOL_USE, Hooks
from harnpy.agent.toolbox import FILE_TOOLS
from harnpy.agent.workplace import real_path_in
from harnpy.faults import OptionError
from harnpy.llm.configuration.known_providers import MOCK
from harnpy.llm.native_tools import Parameters
from harnpy.session.errors import AgentError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harnpy.agent.skills import FoundSkill
    from harnpy.agent.tasks import Tasks
    from harnpy.formats.dicts import Dict
    from harnpy.llm.call import Models
    from harnpy.session.agents import AgentDef
    from harnpy.session.transaction import Txn
    from harnpy.world import World


class AgentBuild:
    """An agent that is put together for one turn of ``session``; ``world`` is where it acts."""

    def __init__(self, definition: AgentDef, session: Txn, world: World, tasks: Tasks) -> None:
        self.definition = definition
        self.session = session
        self.world = world
        self.tasks = tasks
        self.hooks = Hooks()
        #: By name, as loops have them.
        self.entries: dict[str, Dict] = {}
        self.read_only: list[str] = []
        self.instructions: list[str] = []
        self.options: Dict = {}

    def add_tool(self, tool: Any) -> None:
        """Add a `Tool`, or a function as one. Raises `AgentError` for a second one of the same name."""
        made = tool_of(tool)
        self.add_entry(made.entry(self.tasks))
        if made.read_only:
            self.read_only.append(made.name)

    def add_entry(self, entry: Dict) -> None:
        """Add a tool in the form that loops have."""
        name = entry["name"]
        if name in self.entries:
            raise AgentError(f"agent '{self.definition.name}' has two tools that are called '{name}'")
        self.entries[name] = entry

    def add_system(self, text: str) -> None:
        """Add a paragraph to the system prompt."""
        self.instructions.append(text.strip())

    def set_option(self, key: str, value: Any) -> None:
        """Set an option of the loop (07 §6.1), unless the definition does."""
        self.options[key] = value


#: What brings something to an agent that is put together.
Capability = Callable[[AgentBuild], None]


def known_names(what: str, names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names. Raises `AgentError` for one that isn't known."""
    names, known = list(names), sorted(known)
    for name in names:
        if name not in known:
            raise AgentError(f"unknown {what} '{name}' (known: {', '.join(known) or 'none'})")
    return names


# The capabilities that are there from the beginning. Spec: 10 §C7.1.


_SECONDS: Final = 120
_TASKS: Final = {
    "type": "object",
    "properties": {
        "tasks": {
            "type": "array",
            "description": "The whole list: it takes the place of the former one.",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string", "description": "What is to be done."},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                    "activeForm": {"type": "string", "description": "The same while it is being done."},
                },
                "required": ["content", "status"],
            },
        }
    },
    "required": ["tasks"],
    "additionalProperties": False,
}
_PATH: Final = {"type": "string", "description": "Relative to the working directory."}


def use_bash(build: AgentBuild) -> None:
    """Tool ``bash``: commands in the working directory."""
    world = build.world

    async def bash(command: str, timeout: int = _SECONDS) -> str:
        """Run a command with bash, in the working directory. It reads no input.

        Args:
            command: The command.
            timeout: After how many seconds it is stopped.
        """
        ended = await world.processes.run(["bash", "-c", command], world.files.cwd(), None, timeout)
        said = (ended.out + ended.err).decode("utf-8", "replace")
        if ended.code is None:
            return f"Error: stopped after {timeout} s\n{said}"
        return said if ended.code == 0 else f"{said}\n[exit code {ended.code}]".lstrip("\n")

    build.add_tool(bash)


def use_files(build: AgentBuild) -> None:
    """Tools ``read_file``, ``list_directory`` and ``write_file``, below the working directory."""
    world = build.world
    numbers = {
        "offset": {"type": "integer", "description": "The first line, counted from 1."},
        "limit": {"type": "integer", "description": "How many lines."},
    }
    build.add_entry(_served("read_file", "Read a text file.", {"path": _PATH, **numbers}, ["path"]))
    build.add_entry(_served("list_directory", "List a directory.", {"path": _PATH}, []))
    build.read_only += FILE_TOOLS
    build.hooks.add(PRE_TOOL_USE, lambda payload: _stay_below(world, payload["tool"]))

    @tool
    def write_file(path: str, content: str) -> str:
        """Write a text file; what is there is replaced.

        Args:
            path: Relative to the working directory.
            content: The whole text.
        """
        whole = os.path.join(world.files.cwd(), path)
        world.files.make_directory(os.path.dirname(whole))
        world.files.write_text(whole, content)
        return f"wrote {len(content)} characters to {path}"

    build.add_tool(write_file)


def use_tasks(build: AgentBuild) -> None:
    """Tool ``todo_write``: the session's todo list."""
    session = build.session

    def write(arguments: Dict) -> str:
        session.set_tasks(arguments["tasks"])
        return f"{session.tasks.render()}\n{session.tasks.summary()}"

    build.add_tool(Tool("todo_write", "Write the todo list, to plan and to show progress.", _TASKS, write))


READY_MADE: Final[dict[str, Capability]] = {
    "use_bash": use_bash,
    "use_files": use_files,
    "use_tasks": use_tasks,
}


def _served(name: str, description: str, properties: Dict, required: list[str]) -> Dict:
    """Return a tool that the loop answers itself."""
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": description, "parameters": Parameters(schema), "executor": "harn"}


def _stay_below(world: World, call: Dict) -> Any:
    """Refuse a call of a file tool whose path leads out of the working directory."""
    path = call["args"].get("path")
    if call["name"] not in (*FILE_TOOLS, "write_file") or not isinstance(path, str) or not path:
        return None
    files, here = world.files, world.files.cwd()
    root, real = files.real_path(here), real_path_in(files, here, path)
    if real is not None and (real == root or real.startswith(os.path.join(root, ""))):
        return None
    return {"deny": f"'{path}' is not below the working directory"}


class Capabilities:
    """Capabilities by name. `use_bash`, `use_files` and `use_tasks` are there from the beginning."""

    def __init__(self) -> None:
        self._known: dict[str, Capability] = dict(READY_MADE)

    def register(self, name: str, capability: Capability) -> Self:
        """Let definitions use ``capability`` by that name; it takes the place of one that has it already."""
        if not isinstance(name, str):
            raise InvalidArgument(f"a capability's name is a text, got {type(name).__name__}")
        if not callable(capability):
            raise InvalidArgument(f"capability '{name}' is a function, got {type(capability).__name__}")
        self._known[name] = capability
        return self

    def names(self) -> list[str]:
        return sorted(self._known)

    def of(self, names: Sequence[str]) -> list[Capability]:
        """Return the capabilities of those names. Raises `AgentError` for an unknown one."""
        return [self._known[name] for name in known_names("capability", names, self._known)] if names else []


# The options that a definition's loop runs with: of the definition, its capabilities and the session's
# registers. Spec: 10 §C7.1.


#: Options of a loop that a definition doesn't have, and what is there instead.
_NOT_OPTIONS: Final = {
    "session_id": "the session is the one that is sent to",
    "messages": "they are the session's",
    "model": "it is `model` of the definition, or the session's (actions.ChangeModel)",
    "provider": "it is a part of `model`",
    "tools": "name them in `tools`",
    "skills": "name them in `skills`",
    "mcp_servers": "make tools that call the servers",
    "daemon": "a turn of a session ends",
}


def check_options(definition: AgentDef, providers: Iterable[str]) -> None:
    """Raise `InvalidArgument` for an option that loops don't have, or not those of definitions."""
    from harnpy.agent.loop_options import LOOP
    from harnpy.llm.call_options import CALL

    for key in definition.options:
        if key in _NOT_OPTIONS:
            raise InvalidArgument(
                f"agent '{definition.name}': option '{key}' isn't one of a definition: {_NOT_OPTIONS[key]}"
            )
    try:
        if definition.options:
            LOOP.check("agent_loop", definition.options, lambda: providers)
        if isinstance(definition.model, dict):
            CALL.check("llm_call", _with_provider(definition.model), lambda: providers)
    except OptionError as error:
        raise InvalidArgument(f"agent '{definition.name}': {error}") from None


def loop_options(build: AgentBuild, models: Models, found: Sequence[FoundSkill]) -> Dict:
    """Return the options of `agent_loop` that the agent has in its next turn.

    Raises `AgentError` for an unknown tool or skill, `OptionError` for a model that nobody has.
    """
    definition, session = build.definition, build.session
    chosen = session.get("model")
    model = _model_options(definition.model if chosen is None else chosen, models)
    options = {**build.options, **model, **definition.options}
    thinking = session.get("thinking")
    if thinking is not None:
        options["thinking"] = thinking
    _limit(options, definition)
    options["tools"] = [build.entries[name] for name in _tool_names(build)]
    options["skills"] = _skills(definition, found)
    options["messages"] = []
    _annotate(options, build.read_only)
    return options


def system_of(build: AgentBuild) -> tuple[str | None, str | None]:
    """Return the session's own system prompt, and what the definition adds to it or has in its place."""
    own = build.session.get("system_prompt")
    prompt = build.definition.system_prompt if own is None else ""
    added = "\n\n".join(filter(None, (prompt.strip(), *build.instructions)))
    return own, added or None


def _model_options(model: Any, models: Models) -> Dict:
    """Return the options that name a model: ``provider/model``, one of the two, or a dict of options."""
    if model is None:
        return {}
    if isinstance(model, dict):
        return _with_provider(model)
    if not isinstance(model, str):
        raise AgentError(f"a model is 'provider/model' or a dict of options, got {type(model).__name__}")
    provider, slash, name = model.partition("/")
    if provider in models.provided or provider in models.config.known_providers.names():
        if slash or provider == MOCK:  # the mock is a model itself, not one that it stands for
            return {"provider": provider, "model": name or provider}
        return {"provider": provider}
    return {"model": model}


def _with_provider(model: Mapping[str, Any]) -> Dict:
    """Return a dict of options with the provider under the name that it has there."""
    return {"provider" if key == "provider_id" else key: value for key, value in model.items()}


def _tool_names(build: AgentBuild) -> list[str]:
    """Return which tools the model may call: of the definition's, those that the session has chosen."""
    definition, entries = build.definition, build.entries
    names = list(entries) if definition.tools is None else known_names("tool", definition.tools, entries)
    if definition.denied_tools:
        denied = known_names("tool", definition.denied_tools, entries)
        names = [name for name in names if name not in denied]
    chosen = build.session.get("tools")
    if chosen is not None:
        names = [name for name in known_names("tool", chosen, entries) if name in names]
    return names


def _skills(definition: AgentDef, found: Sequence[FoundSkill]) -> list[Dict] | None:
    if not definition.skills:
        return None
    from harnpy.agent.skills import skill_id

    entries = {skill_id(skill.entry): skill.entry for skill in found}
    return [entries[name] for name in known_names("skill", definition.skills, entries)]


def _limit(options: Dict, definition: AgentDef) -> None:
    """Put the definition's budget into the options, where the loop looks for it."""
    budget = definition.budget
    if budget is None:
        return
    if budget.max_cost is not None:
        options["budget"] = {**(options.get("budget") or {}), "total_budget_usd": budget.max_cost}
    for key, limit in (("token_budget", budget.max_tokens), ("max_iterations", budget.max_steps)):
        if limit is not None:
            given = options.get(key)
            options[key] = min(limit, given) if type(given) is int else limit


def _annotate(options: Dict, read_only: list[str]) -> None:
    """Let the rules know which tools change nothing."""
    if read_only:
        policy = options.get("policy") or {}
        known = {name: {"kind": "read", "side_effect_level": "read_only"} for name in read_only}
        annotations = {**known, **(policy.get("tool_annotations") or {})}
        options["policy"] = {**policy, "tool_annotations": annotations}
