"""The runner: sessions of a store, with an agent that answers in them. Spec: 10 §A1.17, §B2."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy.session.agents.definition import Budget
from harnpy.session.faces.canto.watching import Subscription

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.session.agents.values import RunEvent, TurnResult
    from harnpy.session.children.scheduling import ScheduledChild
    from harnpy.session.children.values import ChildRef, ChildResult, ChildSpec
    from harnpy.session.faces.canto.stores import Store


class BudgetGuard(Budget):
    """Ends a turn before the step that comes after ``max_cost`` USD were spent."""

    def __init__(self, max_cost: float) -> None:
        super().__init__(max_cost=max_cost)


class TokenGuard(Budget):
    """Ends a turn before the step that comes after ``max_tokens`` were used."""

    def __init__(self, max_tokens: int) -> None:
        super().__init__(max_tokens=max_tokens)


class Runner:
    """Runs turns. ``agent`` is one that `SessionRuntime.send` takes, ``options`` are those of each send: a
    guard is its ``budget``."""

    def __init__(self, store: Store, agent: Any = None, **options: Any) -> None:
        self.store = store
        self._runtime = store.runtime
        self._options = {"agent": agent, **options}

    def send(self, session_id: str, prompt: Any, **options: Any) -> TurnResult:
        """Run the agent on a prompt, in a session that is created if there is none."""
        self._open(session_id)
        return self._runtime.send(session_id, prompt, **{**self._options, **options})

    def send_stream(self, session_id: str, prompt: Any, **options: Any) -> Iterator[RunEvent]:
        """Give the answer piece by piece, in the end the result. Closing the iterator cancels the turn."""
        self._open(session_id)
        return self._runtime.stream(session_id, prompt, **{**self._options, **options})

    def run(self, session_id: str, **options: Any) -> TurnResult:
        """Run the agent on what is there."""
        return self.send(session_id, None, **options)

    def watch(self, session_id: str) -> Subscription:
        """Return the events that come from now on, whoever appends them."""
        self._open(session_id)
        return Subscription(self._runtime.get(session_id).watch())

    def bootstrap(
        self, session_id: str, cwd: str | None = None, files: Any = None, tools: Iterable[str] = ()
    ) -> None:
        """Tell the model where it works: the directory, the files in it, and its tools."""
        self._open(session_id)
        self._runtime.bootstrap(session_id, cwd, files, tools)

    def evict(self, session_id: str) -> bool:
        """Drop the live object of a session, unless somebody works on it or watches it."""
        return self._runtime.evict(session_id)

    # Children.

    def spawn_child(self, session_id: str, spec: ChildSpec) -> ChildRef:
        """Have a child of the session run. It is in the log when this returns."""
        return self._runtime.spawn(session_id, self._with_agent(spec))

    def wait_child(self, child_id: str, timeout: float | None = None) -> ChildResult:
        """Return what became of a child, and forget it. ``timeout`` is in seconds."""
        return self._runtime.wait(child_id, timeout)

    def delegate(self, session_id: str, spec: ChildSpec) -> ChildResult:
        """`spawn_child` and `wait_child`."""
        return self._runtime.run_child(session_id, self._with_agent(spec))

    def schedule_child(self, session_id: str, spec: ChildSpec) -> ScheduledChild:
        """Have a child begin when ``spec.due_at`` says."""
        return self._runtime.schedule_child(session_id, self._with_agent(spec))

    def _with_agent(self, spec: ChildSpec) -> ChildSpec:
        agent = self._options["agent"] if spec.agent is None else spec.agent
        return replace(spec, agent=agent, mode=str(spec.mode))

    def _open(self, session_id: str) -> None:
        self._runtime.open(session_id, create=True)
