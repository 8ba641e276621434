"""A session's state as a JSON or YAML text, and a session by itself made of one. Spec: 10 §A2.7, §C17."""

from __future__ import annotations

from harnpy.session.errors import TransferError
from harnpy.session.log import Session
from harnpy.session.parts.arguments import check_session
from harnpy.session.transfer import agently
from harnpy.session.transfer.documents import JSON, YAML, load_document
from harnpy.storage.memory import MemoryStore
from harnpy.world import World

_LANGUAGES = {"json": JSON, "yaml": YAML}


def dump_state(session: Session, format: str = "json", *, plain: bool = False) -> str:
    """Return history, window, memo, settings and what else counts now, as a text in ``json`` or ``yaml``.

    ``plain``: without what only harnpy reads. Raises `TransferError` for another format.
    """
    check_session(session)
    return agently.dumps(session, _language(format), plain=plain)


def load_state(
    path_or_text: str,
    format: str = "json",
    *,
    session_key_path: str | None = None,
    encoding: str = "utf-8",
    id: str | None = None,
) -> Session:
    """Return a session by itself, made of a file or of a text that is no file's path; JSON may be JSON5.

    ``session_key_path`` is a dot path to it in a larger document; ``id`` takes the place of its own. Nothing
    is resized. Raises `TransferError`, its `TransferTypeError`, `EventRejected`,
    `InvalidSessionId`, OSError.
    """
    world = World()
    state = load_document(path_or_text, _language(format), world, part=session_key_path, encoding=encoding)
    stored = agently.load_state(state, MemoryStore(), world, id)
    session = Session.__new__(Session)._attach(stored.origin, stored.stream, stored.view, stored.moment)
    session.saves = None
    return session


def _language(format: str) -> str:
    if not isinstance(format, str) or format not in _LANGUAGES:
        raise TransferError(f"unknown format '{format}' (known: {', '.join(_LANGUAGES)})")
    return _LANGUAGES[format]
