"""Registers: what a session keeps by key beside its messages, its settings and its status.

Spec: 10 §C3.1, §C8.1.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.formats.dicts import detached
from harnpy.session import events as kinds
from harnpy.session import rewind
from harnpy.session.errors import InvalidArgument, InvalidTransition
from harnpy.session.events import EventDraft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harnpy.session.log import Session

# Registers: what a session keeps by key beside its messages. Spec: 10 §C3.1.


#: Those that go back with the conversation; all others are the session's.
OF_THE_BRANCH = ("model", "thinking", "tools")
METADATA = "metadata."

_KEYS = frozenset({*OF_THE_BRANCH, "memo", "pins", "scratchpad", "system_prompt", "task", "tasks"})


class Register(NamedTuple):
    """The value of a register; ``version`` counts from 1, ``seq`` is the number of the event that says so."""

    version: int
    value: Any
    seq: int


def is_register(key: str) -> bool:
    """Return whether there is a register of that key."""
    return key in _KEYS or key.startswith((METADATA, "settings."))


# What a setting is called, and what the known ones may be. Spec: 10 §C8.1.


#: The registers that hold a session's own.
REGISTERS = "settings."
_PREFIXES = ("session.", REGISTERS)


def name_of(key: str) -> str:
    """Return a setting's name: ``session.<k>``, ``settings.<k>`` and ``<k>`` are the same."""
    if not isinstance(key, str):
        raise InvalidArgument(f"set: the name of a setting is a text, got {type(key).__name__}")
    if "." not in key:
        return key
    return next((key.removeprefix(prefix) for prefix in _PREFIXES if key.startswith(prefix)), key)


def check(name: str, value: Any) -> None:
    """Raise `InvalidArgument` for a value that the setting can't have. None unsets any."""
    known = _KNOWN.get(name)
    if known is None or value is None:
        return
    fits, wanted = known
    if not fits(value):
        raise InvalidArgument(f"set: setting '{name}' must be {wanted}, got {value!r}")


def _is_length(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_keys(value: Any) -> bool:
    return isinstance(value, str | list)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


_KNOWN = {
    "max_length": (_is_length, "an int >= 0 or none"),
    "input_keys": (_is_keys, "a string, a list or none"),
    "reply_keys": (_is_keys, "a string, a list or none"),
    "auto_resize": (_is_bool, "a bool or none"),
}


# A session's status, and which may follow which; what became of its last turn. Spec: 10 §C3.1.


ACTIVE, SUSPENDED, COMPLETED, FAILED, DELETED = "active", "suspended", "completed", "failed", "deleted"

#: What became of the last turn: there is none, it has no end yet, and its ends.
PENDING, IN_PROGRESS, STOPPED = "pending", "in_progress", "stopped"

#: Why a turn ended that did what it was to do, by itself or by giving the work to somebody else.
#: Spec: 10 §C16.1.
DONE, HANDED_OVER = "completed", "handoff"


class SessionStatus(StrEnum):
    """The statuses of a session. Each equals its text."""

    ACTIVE = ACTIVE
    SUSPENDED = SUSPENDED
    COMPLETED = COMPLETED
    FAILED = FAILED
    DELETED = DELETED


_ALL: Final = frozenset({ACTIVE, SUSPENDED, COMPLETED, FAILED, DELETED})
_NEXT: Final = {
    ACTIVE: _ALL,
    SUSPENDED: _ALL,
    COMPLETED: frozenset({ACTIVE, DELETED}),
    FAILED: frozenset({ACTIVE, DELETED}),
    DELETED: frozenset[str](),
}


def can_become(former: str, status: str) -> bool:
    """Return whether a session of status ``former`` may get ``status``; staying the same is no change."""
    return status == former or status in _NEXT[former]


def check_status(status: str, session_id: str | None = None) -> None:
    """Raises `InvalidArgument` for what is no status."""
    if status not in _ALL:
        raise InvalidArgument(f'unknown status "{status}"', session_id)


def check_transition(session_id: str, former: str, status: str) -> None:
    """Raises `InvalidArgument` for what is no status, `InvalidTransition` for one that can't follow."""
    check_status(status, session_id)
    if not can_become(former, status):
        raise InvalidTransition(session_id, former, status)


def execution_after(turn_completed: dict[str, Any]) -> str:
    """Return what became of a turn, by the payload of its end."""
    if "error" in turn_completed:
        return FAILED
    return COMPLETED if turn_completed.get("turn_stop_reason") == DONE else STOPPED


# A session's todo list. Spec: 10 §A3.5.


MOST = 20

TASK_PENDING, TASK_IN_PROGRESS, TASK_COMPLETED = "pending", "in_progress", "completed"
_SIGNS = {TASK_PENDING: "○", TASK_IN_PROGRESS: "◐", TASK_COMPLETED: "●"}


class Task(NamedTuple):
    """One thing to do; ``active_form`` says that it is being done."""

    content: str
    status: str = TASK_PENDING
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
        if sum(task.status == TASK_IN_PROGRESS for task in tasks) > 1:
            raise InvalidArgument("Only 1 task can be in_progress")
        return tasks

    def data(self) -> list[dict[str, str]]:
        """Return it as the register ``tasks`` keeps it."""
        return [task.data() for task in self]

    def render(self) -> str:
        """Return one line for each task."""
        lines = (
            f"{number}. {_SIGNS[task.status]} "
            f"{task.active_form if task.status == TASK_IN_PROGRESS else task.content}"
            for number, task in enumerate(self, 1)
        )
        return "\n".join(lines) or "(no tasks)"

    def summary(self) -> str:
        """Return how many tasks there are, and of which status."""
        done, doing, waiting = (
            sum(task.status == status for task in self)
            for status in (TASK_COMPLETED, TASK_IN_PROGRESS, TASK_PENDING)
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
    status = item.get("status") or TASK_PENDING
    if not isinstance(status, str) or status not in _SIGNS:
        raise InvalidArgument(f"'status' must be one of {', '.join(_SIGNS)}")
    active = item.get("activeForm") or content
    if not isinstance(active, str):
        raise InvalidArgument("'activeForm' must be a string")
    return Task(content, status, active)


# Who sets a setting: the session itself, its agent, the runtime. Spec: 10 §C8.1.
#
# A setting is looked up when it is used, so a change at one level reaches every session that hasn't set it
# itself, at once, and writes nothing into their logs.


class Level(MutableMapping[str, Any]):
    """The settings of an agent, of a runtime. None unsets one.

    Keys may be written as ``session.<k>``, ``settings.<k>`` or ``<k>``; a value that a known setting can't
    have raises `InvalidArgument`.
    """

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = {}
        self.update(given or {})

    def __setitem__(self, key: str, value: Any) -> None:
        name = name_of(key)
        check(name, value)
        if value is None:
            self._values.pop(name, None)
        else:
            self._values[name] = value

    def __delitem__(self, key: str) -> None:
        del self._values[name_of(key)]

    def __getitem__(self, key: str) -> Any:
        return self._values[name_of(key)]

    def get(self, key: str, default: Any = None) -> Any:
        return self._values.get(name_of(key), default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def effective(registers: Mapping[str, Register], levels: Sequence[Mapping[str, Any]], name: str) -> Any:
    """Return the value of a setting: the session's own, else that of the nearest level; None where nobody has
    set it."""
    own = registers.get(REGISTERS + name)
    if own is not None and own.value is not None:
        return own.value
    for level in levels:
        value = level.get(name)
        if value is not None:
            return value
    return None


class Settings(Mapping[str, Any]):
    """The settings that hold for one session: its registers', then those of ``levels``, the nearest first.

    It shows what is set when it is read. A setting that nobody has set isn't in it.
    """

    def __init__(
        self, registers: Callable[[], Mapping[str, Register]], levels: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self._registers = registers
        self._levels = levels

    def __getitem__(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        value = effective(self._registers(), self._levels, name_of(key))
        return default if value is None else detached(value)

    def __iter__(self) -> Iterator[str]:
        own = (key for key, known in self._registers().items() if known.value is not None)
        names = dict.fromkeys(key.removeprefix(REGISTERS) for key in own if key.startswith(REGISTERS))
        for level in self._levels:
            names |= {name_of(key): None for key in level if level[key] is not None}
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)})"


# Verbs of a session. Values are copied on their way in and out.


def set_register(
    session: Session,
    key: str,
    value: Any,
    *,
    source: str | None = None,
    reason: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> int:
    """Set a register and return its new version, counted from 1. Raises `InvalidArgument` for a key
    that isn't a register's (10 §C3.1), and for a value that the register can't have."""
    if not is_register(key):
        raise InvalidArgument(f'unknown register "{key}"', session.id)
    if key.startswith(REGISTERS):
        check(name_of(key), value)
    if key == rewind.REGISTER and not rewind.are_pins(value):
        raise InvalidArgument("`pins` must be a list of event numbers: use `pin`", session.id)
    given = {"source": source, "reason": reason}
    why = {name: text for name, text in given.items() if text is not None}
    setting = session.setting(key, value, **why)
    setting.metadata = metadata
    setting.check()
    setting.data, setting.metadata = detached(setting.data), detached(metadata)
    session.write(setting)
    version: int = setting.data["version"]
    return version


def setting(session: Session, key: str, value: Any, **why: Any) -> EventDraft:
    """Return the draft of the event that sets a register. ``why``: source, reason, metadata."""
    known = session.view.registers.get(key)
    version = 1 if known is None else known.version + 1
    return EventDraft(kinds.REGISTER_SET, {"key": key, "value": value, "version": version, **why})


def get_register(session: Session, key: str, default: Any = None) -> Any:
    """Return the value of a register; ``default`` when it was never set, or cleared."""
    known = session.view.registers.get(key) if isinstance(key, str) else None
    return default if known is None or known.value is None else detached(known.value)


def set_memo(session: Session, value: Any) -> None:
    session.set("memo", value)


def set_task(session: Session, text: str) -> None:
    """Say what the session is about. A blank text clears it."""
    if not isinstance(text, str):
        raise InvalidArgument(f"a task must be a text, got {type(text).__name__}", session.id)
    session.set("task", text if text.strip() else None)


def set_tasks(session: Session, tasks: Iterable[Task | dict[str, Any]]) -> None:
    """Replace the todo list. Raises `InvalidArgument` for one that breaks the rules (10 §A3.5)."""
    session.set("tasks", TaskList.of(tasks).data())


def set_scratchpad(session: Session, value: Any, **why: Any) -> int:
    """Replace the scratchpad and return its version. ``why``: source, reason, metadata."""
    return session.set("scratchpad", value, **why)


def clear_scratchpad(session: Session, **why: Any) -> int:
    """Empty the scratchpad and return its version."""
    return session.set("scratchpad", None, **why)


def set_status(session: Session, status: str, reason: str | None = None) -> None:
    """Change the status, unless it is that already.

    Raises `InvalidTransition` when it can't follow the present one, `InvalidArgument` when it is none.
    """
    former, status = session.status, str(status)
    check_transition(session.id, former, status)
    if status != former:
        why = {} if reason is None else {"reason": reason}
        session.write(EventDraft(kinds.STATUS_CHANGED, {"from": former, "to": status, **why}))
