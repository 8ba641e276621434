"""What the agents of one program share, and what they need of the world."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harnpy.agent.context import AgentContext
from harnpy.agent.errors import ToolFailure
from harnpy.agent.programs import no_programs
from harnpy.agent.rules.hooks import Hooks
from harnpy.agent.tools.search_index import no_patterns
from harnpy.faults import Fault, Interruption, MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from contextlib import AbstractContextManager

    from harnpy.agent.programs import RunProgram
    from harnpy.agent.rules.gate import Ask
    from harnpy.agent.skills.library import FoundSkill
    from harnpy.agent.tools.search_index import Compile
    from harnpy.agent.workers.workers import Workers
    from harnpy.llm.call import Models
    from harnpy.reading.dicts import Dict
    from harnpy.session.loop_conversation import Conversation
    from harnpy.session.registry import SessionRegistry


class Files(Protocol):
    """The files that agents may look at. Relative paths are the implementation's affair."""

    def read_text(self, path: str) -> str:
        """The text of a file. Raises OSError and UnicodeDecodeError."""

    def is_dir(self, path: str) -> bool: ...

    def list_dir(self, path: str) -> list[str]:
        """The names of a directory's entries, sorted; those of directories end in ``/``. Raises OSError."""

    def absolute(self, path: str) -> str:
        """The path, however relative it is."""

    def modified(self, path: str) -> int | None:
        """When a file was written last, in ns; None when there is none."""

    def replace_text(self, path: str, text: str) -> None:
        """Write a file. Whoever reads it, even after a crash, finds the former text or this one. Raises
        OSError."""


class Attempt(NamedTuple):
    """What came of one of several calls: its result, or the error that it raised."""

    position: int
    result: Any
    error: BaseException | None


def no_workers() -> Workers:
    """A world in which nothing goes on beside the program."""
    raise MisuseError("no workers can be employed here")


def at_once(act: Callable[[], None]) -> None:
    act()


def in_turn(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """The results of the calls, made one after the other."""
    return [call() for call in calls]


def failed_by_itself(error: BaseException) -> bool:
    """Whether an error is one of ours that says what went wrong."""
    return isinstance(error, Fault | ToolFailure)


def one_by_one(calls: Sequence[Callable[[], Any]], limit: int) -> Generator[Attempt, None, None]:
    """What came of the calls, made one after the other."""
    return (attempt(position, call) for position, call in enumerate(calls))


def attempt(position: int, call: Callable[[], Any]) -> Attempt:
    try:
        return Attempt(position, call(), None)
    except (Exception, Interruption) as error:
        return Attempt(position, None, error)


def _one_context() -> Callable[[], AgentContext]:
    """One context, for embedders without tasks."""
    only = AgentContext()
    return lambda: only


@dataclass(slots=True)
class Runtime:
    """``together(calls)`` makes calls at the same time and answers their results in order;
    ``as_they_end(calls, limit)`` makes at most ``limit`` at a time and tells what came of each as it ends;
    to close that iterator ends those that still run, and begins no others;
    ``host_tool(entry, arguments)`` runs a tool that the host offers; ``context`` gives the running task's;
    ``ask`` asks a person for approval; ``pattern`` compiles a regular expression or raises ValueError.
    ``running`` are the conversations of running loops, by session id; ``found_skills`` the skills of files,
    whose bodies aren't in their entries; ``run_program`` runs one of the system; ``workers`` are the
    program's. Inside ``tools_bound(options)`` their registry is the bound one. ``is_failure`` tells what the
    work in hand failed with from what ends the task that does it, and from our own mistakes.
    ``when_idle(act)`` acts once the program has nothing to do but to wait.
    """

    models: Models
    sessions: SessionRegistry
    files: Files | None = None
    together: Callable[[Sequence[Callable[[], Any]]], list[Any]] = field(default=in_turn)
    as_they_end: Callable[[Sequence[Callable[[], Any]], int], Generator[Attempt, None, None]] = field(
        default=one_by_one
    )
    host_tool: Callable[[Dict, Dict], Any] | None = None
    hooks: Hooks = field(default_factory=Hooks)
    context: Callable[[], AgentContext] = field(default_factory=_one_context)
    ask: Ask | None = None
    pattern: Compile = field(default=no_patterns)
    running: dict[str, Conversation] = field(default_factory=dict)
    found_skills: Sequence[FoundSkill] = ()
    run_program: RunProgram = field(default=no_programs)
    tools_bound: Callable[[Any], AbstractContextManager[None]] = nullcontext
    is_failure: Callable[[BaseException], bool] = failed_by_itself
    workers: Callable[[], Workers] = field(default=no_workers)
    when_idle: Callable[[Callable[[], None]], None] = field(default=at_once)

    def announcer(self, id: str) -> Callable[..., None]:
        """A function ``emit(type, **fields)`` for the agent events of a session, anonymous or not."""
        sessions = self.sessions

        def emit(type: str, **fields: Any) -> None:
            if sessions.has_audience(id):
                sessions.emit(id, {"type": type, "session_id": id, **fields})

        return emit
