"""A task: what it runs, where it stands among the others, and what it owns. Spec: 05 §1, §12.

What a task owns: its output until somebody awaits it, its deadlines, its unawaited children, and the context
it works under.
"""

from __future__ import annotations

from harnpy.vm.errors import FAILURES
from harnpy.vm.run.backtrace import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Protocol

    from harnpy.spans import Span
    from harnpy.vm.run.tasks.overtime import Overtime
    from harnpy.vm.run.tasks.permits import Grant

    Value = Any

    class Named(Protocol):
        """What a message about a wait can name."""

        def display(self) -> str: ...

    #: ``("for a message on", [channel])``
    Wait = tuple[str, Sequence[Named]]

    class TaskContext(Protocol):
        """What a task works under. A task that it starts begins with a branch of it."""

        def branch(self) -> TaskContext: ...

        def refuses(self, builtin: str) -> str | None:
            """Why the task may not call a builtin; None when it may."""

        def refuses_effect(self, effect: str, target: str) -> str | None:
            """Why the task may not have an effect on the world; None when it may."""

        def refuses_path(self, effect: str, path: str, named: str) -> str | None:
            """The same for the file or directory ``path``, free of links, which ``named`` leads to."""

        @property
        def restricts(self) -> bool:
            """Whether any effect may be refused."""

    class Group(Protocol):
        """The tasks that run together. ``name`` is what started them."""

        name: str

        def id_of(self, task: Task) -> str: ...
        def group_id(self, task: Task) -> str: ...
        def on_end(self, task: Task) -> None: ...


class Task:
    """One task. What few tasks ever have is a class attribute until then: tasks are made by the thousand."""

    result: Value = None
    error: BaseException | None = None
    done = False
    started = False
    consumed = False
    cancel_requested = False
    greenlet: Any = None
    #: How many callbacks of builtins it is inside of.
    callbacks = 0
    #: How many tasks and how many batches it has started.
    handles = 0
    groups = 0
    #: What started it, unless a batch did.
    kind = "spawn"
    #: Its number among the tasks that its parent spawned (from 1), or in its batch (from 0).
    index = 0
    #: What runs it together with others and is notified of its end.
    batch: Group | None = None
    #: What it works under; None until something is.
    context: TaskContext | None = None
    #: What it carries for its program; replaced, never changed, as children share it.
    runtime_context: dict[str, Value] = {}  # noqa: RUF012
    #: The span that it is in, while spans are recorded; its children begin in it.
    span: Span | None = None
    #: The spans that its program has opened by itself, outermost first; replaced, never changed.
    open_spans: tuple[dict[str, Value], ...] = ()
    #: What it waits for that must come from outside the program, and what to do when it cannot come.
    outside: tuple[str, str] | None = None
    #: What its last wait was for: how to say it, and the things it names.
    wait: Wait | None = None
    #: The greenlet to go back to when the task was aborted from there.
    aborter: Any = None
    #: Counts resumptions, so that timers of an earlier wait are recognised as stale.
    turn = 0
    #: What it printed and its parent has not taken yet; the root prints at once.
    output = ""
    #: The tasks that wait for it to end.
    waiting: tuple[Task, ...] = ()
    #: Its unawaited children, as the keys.
    children: dict[Task, None] | None = None
    #: When its `deadline` blocks end, innermost last, and what it may do after the outermost that has passed.
    deadlines: tuple[float, ...] = ()
    overtime: Overtime | None = None
    #: What it may do after it was asked to end, and once more after that has been thrown.
    patience: Overtime | None = None
    overtime_of_end: Overtime | None = None
    #: The permits that it has acquired and not released, as the keys.
    held: dict[Grant, None] | None = None

    def __init__(self, body: Callable[[int], Value] | None, parent: Task | None) -> None:
        self.body = body
        self.parent = parent
        self.nesting: int = parent.nesting + 1 if parent else 0

    def id(self) -> str:
        """Its place in the tree of tasks, as text (05 §12)."""
        if self.parent is None:
            return "task_root"
        if self.batch is not None:
            return self.batch.id_of(self)
        return f"{self.parent.id()}:{self.kind}:{self.index}"

    def group_id(self) -> str | None:
        return None if self.batch is None else self.batch.group_id(self)

    def name(self) -> str:
        """What started it."""
        if self.batch:
            return self.batch.name
        return self.kind if self.parent else "root"

    def family(self) -> Iterator[Task]:
        """The task, its unawaited children, theirs, …"""
        yield self
        for child in self.children or ():
            yield from child.family()

    def is_limited(self) -> bool:
        """Whether its wait ends by itself: at a deadline, or since it was asked to end."""
        return bool(self.deadlines) or self.cancel_requested

    def display(self) -> str:
        """How messages name it."""
        return self.id()

    def handle_id(self) -> str:
        """How its handle shows."""
        return f"vm_task_{self.index}"

    def error_text(self) -> str:
        """The failed task's error as text, with the line it failed at."""
        if not isinstance(self.error, FAILURES):
            raise self.error or AssertionError("the task did not fail")
        return describe(self.error, 0)
