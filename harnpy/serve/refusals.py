"""`Refused`: a request that isn't carried out, and what each error of the rooms below becomes.

Spec: 11 §1.3.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from harnpy.eventlog.errors import LogError
from harnpy.eventlog.waitpoints import UnknownWaitpoint
from harnpy.faults import Fault
from harnpy.session import errors as session
from harnpy.storage import errors as storage
from harnpy.workflow.engines import errors as engines

if TYPE_CHECKING:
    from harnpy.client import types as t


_log = logging.getLogger(__name__)


class Refused(Fault):
    """A request that isn't carried out: an HTTP ``status``, a stable ``code``, one sentence."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


NOT_FOUND: Final = (404, "not_found")
CONFLICT: Final = (409, "conflict")
BUSY: Final = (409, "busy")
INVALID: Final = (422, "invalid")
UNAVAILABLE: Final = (503, "unavailable")
#: Characters of the longest key of a turn.
LONGEST_KEY: Final = 200

#: What an error becomes: the first class that it is one of. All other faults are `INVALID`.
_KINDS: Final[tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], tuple[int, str]], ...]] = (
    ((session.SessionNotFound, session.ChildNotFound), NOT_FOUND),
    (session.NotController, (409, "not_controller")),
    ((engines.RunNotFound, UnknownWaitpoint), NOT_FOUND),
    ((session.SessionBusy, session.LaneFull, session.LaneTimeout, session.SessionLeased), BUSY),
    ((storage.LeaseHeld, storage.LeaseLost, storage.StoreBusy), BUSY),
    (
        (session.SessionConflict, session.InvalidTransition, session.SessionReadOnly, session.RewindError),
        CONFLICT,
    ),
    ((engines.RunExists, storage.VersionConflict, storage.StreamExists), CONFLICT),
    (session.BudgetExceeded, (402, "over_budget")),
    ((session.ExecutionTimeout,), (409, "timeout")),
    (storage.Unsupported, INVALID),
)
_STORES: Final = (storage.StorageError, LogError)
#: What a store says that isn't about itself.
_OF_A_STREAM: Final = tuple(
    kind
    for kinds, _ in _KINDS
    for kind in (kinds if isinstance(kinds, tuple) else (kinds,))
    if kind is not storage.StoreBusy
)


def refused(error: Fault) -> Refused:
    """Return what a caller is told of an error of the rooms below."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, _STORES) and not isinstance(error, _OF_A_STREAM):
        # What a store says may tell where it is.
        _log.warning("the store failed: %s", error)
        return Refused(*UNAVAILABLE, "the store can't be reached, or failed: try again in a moment")
    for kinds, (status, code) in _KINDS:
        if isinstance(error, kinds):
            return Refused(status, code, _sentence(str(error)))
    return Refused(*INVALID, _sentence(str(error)))


class refusing:  # noqa: N801 - a context manager; as a generator it would cost each request much more
    """Raise `Refused` for what fails inside, but for mistakes of ours."""

    __slots__ = ()

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, place: object) -> None:
        if isinstance(error, Fault):
            raise refused(error) from error


def check_texts(*values: object, **named: object) -> None:
    """Raise `Refused` for a NUL in a parameter, or in the id that a body gives: not every store has it."""
    for name, value in (*((None, each) for each in values), *named.items()):
        texts = value if isinstance(value, list) else [value, getattr(value, "id", None)]
        if any(isinstance(each, str) and "\0" in each for each in texts):
            raise Refused(
                *INVALID, f"`{name}` has a NUL in it" if name else "an id or parameter has a NUL in it"
            )


def no_session(id: str) -> Refused:
    return Refused(*NOT_FOUND, str(session.SessionNotFound(id)))


def check_key(key: str, name: str) -> str:
    """Return the key of a turn. Raise `Refused` for what can't be one."""
    if not key.strip() or len(key) > LONGEST_KEY or not key.isascii() or not key.isprintable():
        what = f"`{name}` must be 1 to {LONGEST_KEY} printable ASCII characters"
        raise Refused(400, "bad_request", what)
    return key


def check_answer(request: t.Request, body: t.Answer) -> None:
    """Raise `Refused` for an answer to something else than was asked."""
    if request.kind == "approval" and (body.decision is None or body.answer is not UNSET):
        raise Refused(*INVALID, f"request '{request.id}' is an approval: it takes `decision`, and a `reason`")
    if request.kind == "question" and (body.decision is not None or body.answer is UNSET):
        raise Refused(*INVALID, f"request '{request.id}' is a question: it takes an `answer`")


def _sentence(text: str) -> str:
    """Return the first line of a text, and of that what a reply holds."""
    return text.partition("\n")[0][:1000]
