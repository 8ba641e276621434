"""The MCP servers that a loop's skills require: held while the skills are active. Spec: 07 §15.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.faults import Interruption
from harnpy.reading.lenient import Options
from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from harnpy.agent.runtime import Runtime
    from harnpy.reading.dicts import Dict


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
