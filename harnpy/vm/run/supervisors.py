"""Supervisors: tasks that run again when they fail, alone or together. Spec: 05 §17.

Every run of a child is a task of its own, which begins with the wait that its restart is due. What happens
next is decided when that task ends, so nothing watches over the children in between.
"""

from __future__ import annotations

from contextvars import copy_context

from harnpy.faults import paced
from harnpy.vm.errors import Interrupted
from harnpy.vm.run.tasks import CANCELLED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

    from harnpy.vm.run.scheduler import Scheduler
    from harnpy.vm.run.tasks import Task
    from harnpy.vm.values import Value

    #: ``record(child's name or None, kind, message or None)``
    Record = Callable[[str | None, str, str | None], None]

# When a supervised child runs again after it ended, and when it does not. Spec: 05 §17.


NEVER: Final = "never"
ON_FAILURE: Final = "on_failure"
ALWAYS: Final = "always"
MODES = (NEVER, ON_FAILURE, ALWAYS)


class RestartPolicy:
    """Times are in ms. ``most`` restarts are allowed, any number when it is None."""

    __slots__ = ("backoff", "circuit_open", "factor", "jitter", "longest_backoff", "mode", "most", "window")

    def __init__(
        self,
        mode: str = ON_FAILURE,
        most: int | None = None,
        window: float = 60_000,
        backoff: float = 0,
        longest_backoff: float = 30_000,
        factor: float = 2.0,
        jitter: int = 0,
        circuit_open: float | None = None,
    ) -> None:
        self.mode = mode
        self.most = most
        self.window = window
        self.backoff = backoff
        self.longest_backoff = max(longest_backoff, backoff)
        self.factor = max(factor, 1.0)
        self.jitter = jitter
        self.circuit_open = circuit_open

    def restarts_after(self, failed: bool) -> bool:
        return self.mode == ALWAYS or (failed and self.mode == ON_FAILURE)

    def delay(self, child: int, restarts: int) -> int:
        """Return the ms before restart number ``restarts``, counted from 0, of the child at that index."""
        try:
            grown = self.backoff * self.factor**restarts
        except OverflowError:
            grown = self.longest_backoff
        shift = ((child + 1) * 1103 + restarts * 9176) % (self.jitter + 1)
        return int(min(grown, self.longest_backoff)) + shift


class History:
    """The restarts of a child, and the ends that caused them, by their times in seconds."""

    __slots__ = ("_ends", "_policy", "restarts")

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._ends: list[float] = []
        self.restarts = 0

    def is_exhausted(self, now: float) -> bool:
        """Note an end after which the child should run again; return whether it may not."""
        policy = self._policy
        if policy.most is None:
            return False
        if policy.window <= 0:
            return self.restarts >= policy.most
        self._ends = [end for end in self._ends if (now - end) * 1000 <= policy.window] + [now]
        return len(self._ends) > policy.most

    def forget(self) -> None:
        self._ends.clear()
        self.restarts = 0


STRATEGIES = ("one_for_one", "one_for_all", "rest_for_one", "escalate_to_parent")
#: What a child is in for good.
_TERMINAL = ("stopped", "failed", "suppressed")
#: What a child is in while it has a task that has begun.
_RUNNING = ("running", "draining")


class ChildSpec:
    """A child as it was asked for. ``body(depth, info)`` runs it; ``lease`` is a label."""

    __slots__ = ("body", "kind", "lease", "name", "policy")

    def __init__(
        self, name: str, kind: str, body: Callable[..., Value], policy: RestartPolicy, lease: str | None
    ) -> None:
        self.name = name
        self.kind = kind
        self.body = body
        self.policy = policy
        self.lease = lease


class Child:
    """A child of a supervisor, and the group that its tasks form."""

    __slots__ = (
        "attempt",
        "history",
        "index",
        "last_error",
        "name",
        "restart_at",
        "spec",
        "status",
        "supervisor",
        "task",
        "wait_reason",
    )

    def __init__(self, supervisor: Supervisor, index: int, spec: ChildSpec) -> None:
        self.supervisor = supervisor
        self.index = index
        self.spec = spec
        self.name = f"supervisor {spec.kind}"
        self.history = History(spec.policy)
        self.attempt = 0
        self.status = "pending"
        self.wait_reason: str | None = None
        self.last_error: str | None = None
        self.restart_at: int | None = None
        self.task: Task | None = None

    # --- as a group of tasks ----------------------------------------------------------------------

    def id_of(self, task: Task) -> str:
        assert task.parent
        return f"{task.parent.id()}:supervisor:{self.supervisor.id}:{self.spec.name}"

    def group_id(self, task: Task) -> str:
        return self.supervisor.id

    def on_end(self, task: Task) -> None:
        supervisor = self.supervisor
        if task.output:
            supervisor.record(self.spec.name, "child_output", task.output.removesuffix("\n"))
            task.output = ""
        was_aborted = task.consumed
        for waiting in supervisor.stopping:
            supervisor.tasks.resume(waiting)
        supervisor.tasks.release(task)
        if task is not self.task:  # an earlier one: another took its place
            return
        self.task = None
        if was_aborted:
            self.settle("stopped")
        else:
            supervisor.ended(self, task)
        supervisor.finish_if_over()

    # --- running ----------------------------------------------------------------------------------

    def begin(self, delay: int = 0) -> None:
        """Start the next run, in ``delay`` ms."""
        supervisor = self.supervisor
        tasks = supervisor.tasks

        def run(depth: int) -> Value:
            tasks.sleep(delay / 1000)
            self.attempt += 1
            self.status, self.wait_reason, self.restart_at = "running", None, None
            supervisor.metrics["started"] += 1
            kind = "child_started" if self.attempt == 1 else "child_restart_started"
            supervisor.record(self.spec.name, kind, None)
            return self.spec.body(depth, self.info())

        self.task = task = supervisor.variables.run(tasks.create, run, supervisor.owner)
        task.batch = self
        if supervisor.owner.context is not None:
            task.context = supervisor.owner.context.branch()

    def restart(self, delay: int, reason: str) -> None:
        self.status, self.wait_reason = "waiting", reason
        self.restart_at = self.supervisor.now_ms() + delay
        self.history.restarts += 1
        self.supervisor.metrics["restarted"] += 1
        self.supervisor.record(self.spec.name, "child_restarted", f"scheduled after {delay}ms")
        self.begin(delay)

    def settle(self, status: str, reason: str | None = None) -> None:
        self.status, self.wait_reason, self.restart_at = status, reason, None

    def ask_to_end(self, reason: str) -> None:
        """Set the cancel flag of a run; drop one that has not begun."""
        task = self.task
        if task is None:
            return
        if self.status in _RUNNING:
            self.status, self.wait_reason = "draining", reason
            self.supervisor.tasks.request_cancel(task)
        else:
            self.supervisor.tasks.abort(task)

    def info(self) -> dict[str, Value]:
        """Return what its closure receives."""
        return {
            "supervisor_id": self.supervisor.id,
            "child_name": self.spec.name,
            "child_kind": self.spec.kind,
            "attempt": self.attempt,
            "restart_count": self.history.restarts,
        }

    def state(self) -> dict[str, Value]:
        return {
            "name": self.spec.name,
            "kind": self.spec.kind,
            "status": self.status,
            "restart_count": self.history.restarts,
            "last_error": self.last_error,
            "current_wait_reason": self.wait_reason,
            "active_lease": self.spec.lease,
            "next_restart_time": self.restart_at,
        }


class Supervisor:
    """``owner`` is the task that started it: when that ends, the children do."""

    def __init__(self, tasks: Scheduler, id: str, name: str, strategy: str, drain_ms: float) -> None:
        self.tasks = tasks
        self.id = id
        self.name = name
        self.strategy = strategy
        self.drain_ms = drain_ms
        self.owner = tasks.current
        self.variables = copy_context()
        self.children: list[Child] = []
        self.status = "running"
        self.events: list[dict[str, Value]] = []
        self.publish: Callable[[dict[str, Value]], object] = lambda event: None
        names = ("started", "stopped", "failed", "restarted", "suppressed", "escalated")
        self.metrics: dict[str, Value] = dict.fromkeys(names, 0)
        self._to_restart: set[Child] = set()
        self.stopping: list[Task] = []
        """The tasks that wait for the children to end."""

    def start(self, specs: Sequence[ChildSpec]) -> None:
        self.record(None, "supervisor_started", None)
        self.children = [Child(self, i, spec) for i, spec in enumerate(paced(specs))]
        for child in paced(self.children):
            child.begin()

    def now_ms(self) -> int:
        return self.tasks.vm.clock.now_ms()

    def record(self, child: str | None, kind: str, message: str | None) -> None:
        event = {
            "seq": len(self.events),
            "at_ms": self.now_ms(),
            "supervisor_id": self.id,
            "child": child,
            "kind": kind,
            "message": message,
        }
        self.events.append(event)
        self.publish(event)

    def state(self) -> dict[str, Value]:
        return {
            "_type": "supervisor_state",
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "strategy": self.strategy,
            "metrics": dict(self.metrics),
            "children": [child.state() for child in self.children],
        }

    # --- when a run has ended ---------------------------------------------------------------------

    def ended(self, child: Child, task: Task) -> None:
        """Decide what follows the end of a run that nobody aborted."""
        was_asked = task.cancel_requested and _is_cancellation(task.error)
        failed = task.error is not None and not was_asked
        self._note_end(child, task, failed)
        if child in self._to_restart:
            self._to_restart.discard(child)
            child.restart(0, "propagation_restart")
        elif self.status == "running" and child.spec.policy.restarts_after(failed):
            self._again(child, failed)

    def _note_end(self, child: Child, task: Task, failed: bool) -> None:
        child.settle("failed" if failed else "stopped")
        child.last_error = task.error_text() if failed else None
        self.metrics[child.status] += 1
        self.record(child.spec.name, f"child_{child.status}", child.last_error)

    def _again(self, child: Child, failed: bool) -> None:
        policy, history = child.spec.policy, child.history
        if failed and self.strategy == "escalate_to_parent":
            self._escalate(child)
        elif not history.is_exhausted(self.tasks.now()):
            delay = policy.delay(child.index, history.restarts)
            child.restart(delay, "restart_backoff")
            if failed:
                self._restart_others(child)
        elif policy.circuit_open is None:
            child.settle("suppressed", "restart_cap_exceeded")
            self.metrics["suppressed"] += 1
            self.record(child.spec.name, "child_suppressed", "restart cap reached")
        else:
            self._open_circuit(child, int(policy.circuit_open))

    def _open_circuit(self, child: Child, ms: int) -> None:
        child.settle("circuit_open", "circuit_open")
        child.restart_at = self.now_ms() + ms
        child.history.forget()
        self.metrics["suppressed"] += 1
        self.record(child.spec.name, "child_suppressed", "restart cap reached; circuit opened")
        child.begin(ms)

    def _restart_others(self, failed: Child) -> None:
        first = {"one_for_all": 0, "rest_for_one": failed.index + 1}.get(self.strategy, len(self.children))
        for child in self.children[first:]:
            if child is failed or child.status == "suppressed":
                continue
            if child.status in _RUNNING:
                self._to_restart.add(child)
                child.ask_to_end("propagation_restart")
            elif child.task is None:
                child.restart(0, "propagation_restart")

    def _escalate(self, failed: Child) -> None:
        self.status = "escalated"
        self.metrics["escalated"] += 1
        self.record(failed.spec.name, "child_escalated", failed.last_error)
        for child in self.children:
            child.ask_to_end("shutdown")

    def finish_if_over(self) -> None:
        if self.status == "running" and all(child.status in _TERMINAL for child in self.children):
            self.status = "completed"
            self.record(None, "supervisor_completed", None)

    # --- stopping ---------------------------------------------------------------------------------

    def stop(self, seconds: float) -> None:
        """Ask all children to end, wait so long, abort the rest."""
        if self.status == "stopped":
            return
        self.status = "draining"
        self._to_restart.clear()
        self.record(None, "supervisor_stopping", None)
        tasks, until = self.tasks, self.tasks.now() + seconds
        for child in self.children:
            if child.task is not None and child.task is not tasks.current:
                child.ask_to_end("shutdown")
        self.stopping.append(tasks.current)
        try:
            while self._left() and tasks.now() < until:
                tasks.suspend_until(until)
        finally:
            self.stopping.remove(tasks.current)
        left = self._left()
        for task in left:
            tasks.abort(task)
        self.status = "stopped"
        self.record(None, "supervisor_stopped", "forced" if left else "drained")

    def _left(self) -> list[Task]:
        tasks = [child.task for child in self.children if child.task is not None]
        return [task for task in tasks if task is not self.tasks.current]


class Supervisors(dict[str, Supervisor]):
    """The supervisors of one program, by id."""


def _is_cancellation(error: BaseException | None) -> bool:
    return isinstance(error, Interrupted) and error.value == CANCELLED
