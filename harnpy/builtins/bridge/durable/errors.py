"""What a program catches when a verb fails: ``{category, code, message, session_id}``. Spec: 10 §C9, §C11."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from harnpy.faults import OptionError
from harnpy.session.errors import ArtifactCorrupt, ArtifactNotFound, EventRejected, SessionError
from harnpy.storage.errors import StorageError
from harnpy.vm.errors import Thrown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The category of each code; ``invalid`` is that of all others.
_CATEGORIES: Final[Mapping[str, str]] = {
    "version_conflict": "conflict",
    "exists": "conflict",
    "tool_ambiguous": "conflict",
    "not_found": "not_found",
    "event_not_found": "not_found",
    "busy": "busy",
    "timeout": "busy",
    "lane_full": "busy",
    "lease_held": "busy",
    "full": "busy",
    "corrupt": "corrupt",
    "unsupported": "unsupported",
    "schema": "unsupported",
    "lease_lost": "cancelled",
    "closed": "cancelled",
}
_ARTIFACTS: Final[Mapping[type, str]] = {ArtifactNotFound: "not_found", ArtifactCorrupt: "corrupt"}


@contextmanager
def errors_told(verb: str, argument: str, id: str | None) -> Iterator[None]:
    """Raise what the program catches, for an error of sessions or stores inside the block.

    ``argument`` is the one that the session is to keep, ``id`` that of the session which the call is about.
    """
    try:
        yield
    except (SessionError, StorageError) as error:
        category = _ARTIFACTS.get(type(error)) or _CATEGORIES.get(error.code, "invalid")
        message = error.message
        if isinstance(error, EventRejected) and error.pointer is not None:
            message = f"{verb}: `{argument}` must be JSON-serializable"
        raise thrown(category, error.code, message, getattr(error, "session_id", None) or id) from error
    except OptionError as error:
        raise invalid(error.message_from(verb), id) from error


def invalid(message: str, id: str | None = None) -> Thrown:
    """Return the error of an argument that can't be."""
    return thrown("invalid", "invalid", message, id)


def thrown(category: str, code: str, message: str, id: str | None) -> Thrown:
    shown: dict[str, Any] = {"category": category, "code": code, "message": message, "session_id": id}
    return Thrown(shown)
