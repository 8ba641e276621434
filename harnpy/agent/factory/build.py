"""An agent that is put together: what capabilities add to. Spec: 10 §C7.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harnpy.agent.factory.tools import tool_of
from harnpy.agent.rules.hooks import Hooks
from harnpy.session.errors import AgentError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.agent.tasks import Tasks
    from harnpy.reading.dicts import Dict
    from harnpy.session.agents.definition import AgentDef
    from harnpy.session.runtime.txn import Txn
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
