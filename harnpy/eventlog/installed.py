"""The event log that a Python program installs for its Harn programs. Spec: 08 §15.2.

It holds in the context (`contextvars`) where it was installed, so threads and tasks don't see each other's.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextvars import Context

    from harnpy.eventlog.topics import StoreEventLog

_INSTALLED: ContextVar[StoreEventLog | None] = ContextVar("installed event log", default=None)


def install_event_log(log: StoreEventLog) -> None:
    """Make ``log`` the one that is in use from here on."""
    _INSTALLED.set(log)


def installed_event_log(context: Context | None = None) -> StoreEventLog | None:
    """Return the log that was installed in ``context``, None: in the current one; None when there is none."""
    return _INSTALLED.get() if context is None else context.get(_INSTALLED)


def active_event_log() -> StoreEventLog:
    """Return the log that is in use here. The first call installs one in memory if there is none."""
    log = _INSTALLED.get()
    if log is None:
        from harnpy.eventlog.topics import memory_log

        log = memory_log()
        _INSTALLED.set(log)
    return log


def reset_active_event_log() -> None:
    """Install none."""
    _INSTALLED.set(None)
