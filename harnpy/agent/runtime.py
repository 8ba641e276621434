"""The parts that the agents of one program share."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from harnpy.agent.context import AgentContext
from harnpy.agent.rules.hooks import Hooks
from harnpy.agent.tasks import OneTask
from harnpy.agent.tool_registry import ToolFailure
from harnpy.agent.workplace import Workplace
from harnpy.faults import Fault, MisuseError
from harnpy.formats.dicts import detached
from harnpy.session.events import EventDraft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from harnpy.agent.rules.gate import Ask
    from harnpy.agent.skills import FoundSkill
    from harnpy.agent.tasks import Tasks
    from harnpy.agent.workers import Workers
    from harnpy.formats.dicts import Dict
    from harnpy.llm.call import Models
    from harnpy.mcp.servers import Servers
    from harnpy.session.conversation import Conversation
    from harnpy.session.registry import SessionRegistry


def no_workers() -> Workers:
    """For runtimes in which nothing runs beside the program."""
    raise MisuseError("no workers can be employed here")


def no_servers() -> Servers:
    """For runtimes that start no programs."""
    raise MisuseError("no MCP servers can be connected here")


def failed_by_itself(error: BaseException) -> bool:
    """Return True if an error is one of ours that says what went wrong."""
    return isinstance(error, Fault | ToolFailure)


def _one_context() -> Callable[[], AgentContext]:
    """One context, for embedders without tasks."""
    only = AgentContext()
    return lambda: only


class Runtime:
    """``context`` returns the running task's. ``home`` returns the directory of the program, if it has one.
    ``ask`` asks a person for approval. ``found_skills`` are the skills of files, whose bodies aren't in their
    entries; ``workers`` and the MCP ``servers`` are the program's. Inside ``tools_bound(options)`` their
    registry is the bound one. ``is_failure`` distinguishes what the work in hand failed with from what ends
    the task that does it, and from our own mistakes.
    """

    def __init__(
        self,
        models: Models,
        sessions: SessionRegistry,
        tasks: Tasks | None = None,
        *,
        hooks: Hooks | None = None,
        context: Callable[[], AgentContext] | None = None,
        home: Callable[[], str | None] = lambda: None,
        ask: Ask | None = None,
        found_skills: Sequence[FoundSkill] = (),
        tools_bound: Callable[[Any], AbstractContextManager[None]] = nullcontext,
        is_failure: Callable[[BaseException], bool] = failed_by_itself,
        workers: Callable[[], Workers] = no_workers,
        servers: Callable[[], Servers] = no_servers,
        calling: Callable[[str, str], AbstractContextManager[None]] | None = None,
    ) -> None:
        self.models = models
        self.sessions = sessions
        self.world = sessions.world
        self.tasks: Tasks = OneTask(self.world.clock) if tasks is None else tasks
        self.hooks = Hooks() if hooks is None else hooks
        self.context = _one_context() if context is None else context
        self.workplace = Workplace(self.world, self.tasks, lambda: self.context().place, home)
        self.ask = ask
        self.found_skills = found_skills
        self.tools_bound = tools_bound
        self.is_failure = is_failure
        self.workers = workers
        self.servers = servers
        #: ``calling(tool, policy)``: a block that a call of a tool is made in; None for none.
        self.calling = calling
        #: The conversations of running loops, by session id.
        self.running: dict[str, Conversation] = {}

    def read_text(self, path: str) -> str:
        """Return the text of a file that an agent names. Raises OSError and UnicodeDecodeError."""
        return self.world.files.read_text(self.workplace.path(path))

    def record(self, id: str, facts: Iterable[tuple[str, Dict]]) -> None:
        """Record facts in a session's log, if there is one, as part of the turn that runs on it."""
        running, session = self.running.get(id), self.sessions.session(id)
        if running is not None:
            for type, payload in facts:
                running.fact(type, payload)
            running.store()
        elif session is not None:
            session.write(*(EventDraft(type, payload) for type, payload in facts))

    def record_child(self, id: str, facts: Iterable[tuple[str, Dict]]) -> None:
        """Record facts of a child in the log of the session that it was started from, as part of the turn
        that runs on it. The results of the session's loops don't show them, an anonymous loop's do."""
        running, session = self.running.get(id), self.sessions.session(id)
        if session is not None:
            self.sessions.touch(id)
            turn = None if running is None else running.turn
            session.write(*(EventDraft(type, detached(payload), turn=turn) for type, payload in facts))
        elif running is not None:
            for type, payload in facts:
                running.fact(type, detached(payload))

    def announcer(self, id: str) -> Callable[..., None]:
        """A function ``emit(type, **fields)`` for the agent events of a session, anonymous or not."""
        sessions = self.sessions

        def emit(type: str, **fields: Any) -> None:
            if sessions.has_audience(id):
                sessions.emit(id, {"type": type, "session_id": id, **fields})

        return emit
