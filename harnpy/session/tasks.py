"""A session's todo list. Spec: 10 §A3.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 20

PENDING, IN_PROGRESS, COMPLETED = "pending", "in_progress", "completed"
_SIGNS = {PENDING: "○", IN_PROGRESS: "◐", COMPLETED: "●"}


class Task(NamedTuple):
    """One thing to do; ``active_form`` says that it is being done."""

    content: str
    status: str = PENDING
    active_form: str = ""

    def data(self) -> dict[str, str]:
        """Return it as the register ``tasks`` keeps it."""
        return {"content": self.content, "status": self.status, "activeForm": self.active_form}


class TaskList(tuple[Task, ...]):
    """Tasks that keep the rules: 20 at most, one of them in progress, each with a content."""

    __slots__ = ()

    @classmethod
    def of(cls, items: Iterable[Task | dict[str, Any]]) -> TaskList:
        """Read a list of tasks or of dicts {content, status?, activeForm?}. Raises `InvalidArgument`."""
        tasks = cls(map(_task, items))
        if len(tasks) > MOST:
            raise InvalidArgument(f"Maximum {MOST} tasks allowed")
        if sum(task.status == IN_PROGRESS for task in tasks) > 1:
            raise InvalidArgument("Only 1 task can be in_progress")
        return tasks

    def data(self) -> list[dict[str, str]]:
        """Return it as the register ``tasks`` keeps it."""
        return [task.data() for task in self]

    def render(self) -> str:
        """Return one line for each task."""
        lines = (
            f"{number}. {_SIGNS[task.status]} "
            f"{task.active_form if task.status == IN_PROGRESS else task.content}"
            for number, task in enumerate(self, 1)
        )
        return "\n".join(lines) or "(no tasks)"

    def summary(self) -> str:
        """Return how many tasks there are, and of which status."""
        done, doing, waiting = (
            sum(task.status == status for task in self) for status in (COMPLETED, IN_PROGRESS, PENDING)
        )
        return f"Tasks: {done}/{len(self)} completed, {doing} in progress, {waiting} pending"


def _task(item: Any) -> Task:
    if isinstance(item, Task):
        item = item.data()
    if not isinstance(item, dict):
        raise InvalidArgument(f"a task must be a dict, got {type(item).__name__}")
    content = item.get("content")
    if not isinstance(content, str) or not content.strip():
        raise InvalidArgument("'content' is required")
    status = item.get("status") or PENDING
    if not isinstance(status, str) or status not in _SIGNS:
        raise InvalidArgument(f"'status' must be one of {', '.join(_SIGNS)}")
    active = item.get("activeForm") or content
    if not isinstance(active, str):
        raise InvalidArgument("'activeForm' must be a string")
    return Task(content, status, active)
