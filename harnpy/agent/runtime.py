"""The parts that the agents of one program share."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from harnpy.agent.context import AgentContext
from harnpy.agent.rules.hooks import Hooks
from harnpy.agent.tasks import OneTask
from harnpy.agent.tool_registry import ToolFailure
from harnpy.agent.workplace import Workplace
from harnpy.faults import Fault, MisuseError
from harnpy.formats.dicts import detached
from harnpy.llm.errors import GENERIC
from harnpy.session.events import EventDraft

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from contextlib import AbstractContextManager

    from harnpy.agent.rules.gate import Ask
    from harnpy.agent.skills import FoundSkill
    from harnpy.agent.tasks import Tasks
    from harnpy.agent.workers import Workers
    from harnpy.formats.dicts import Dict
    from harnpy.llm.call import Models
    from harnpy.mcp.servers import Servers
    from harnpy.session.agent_turn import Turn
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


def category_of_fault(error: BaseException) -> str:
    """Return the category of an error of ours; most have none."""
    return getattr(error, "category", None) or GENERIC


def _one_context() -> Callable[[], AgentContext]:
    """One context, for embedders without tasks."""
    only = AgentContext()
    return lambda: only


class Stages(Protocol):
    """What keeps the stages of workflows, in a durable run. Spec: 10 §C19.1."""

    #: The id of the run that is the whole job; None where a program runs workflows, each with its own.
    run_id: str | None
    #: The steps of that run which are recorded already: their keys and outputs, in order.
    recorded: Sequence[tuple[str, Dict]]
    #: Called once the graph was compared with those steps, before anything is done.
    checked: Callable[[], None] | None
    #: The finished stages whose outputs are taken although they were edited.
    accepted: Collection[str]

    def step(self, key: str, work: Callable[[], Dict]) -> Dict:
        """Return what ``work()`` returns, or what it returned in an earlier process."""

    def turn(self, session_id: str, key: str, act: Callable[[Runtime, Turn, Conversation], Any]) -> Any:
        """Return what ``act`` returns: it does one turn of a stored session, for that key only once.

        It is called again to go through what the log has of the turn: then its calls are answered from
        there (10 §C16.5).
        """

    def prepare(self, session_id: str) -> None:
        """Have the session open, if the store has it."""


class Runtime:
    """``context`` returns the running task's. ``home`` returns the directory of the program, if it has one.
    ``ask`` asks a person for approval. ``found_skills`` are the skills of files, whose bodies aren't in their
    entries; ``workers`` and the MCP ``servers`` are the program's. Inside ``tools_bound(options)`` their
    registry is the bound one. ``is_failure`` distinguishes what the work in hand failed with from what ends
    the task that does it, and from our own mistakes; ``category`` names its kind (02 §19.8). ``stages`` keeps
    the stages of a durable run.
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
        category: Callable[[BaseException], str] = category_of_fault,
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
        self.category = category
        self.stages: Stages | None = None
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

    def keeps(self, id: str) -> bool:
        """Return whether there is a log in which facts of a session can be recorded."""
        return id in self.running or self.sessions.session(id) is not None

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
