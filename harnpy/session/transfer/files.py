"""One session out to a file, and in again. Spec: 10 §C17."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.errors import SessionExists
from harnpy.session.transfer import losses
from harnpy.session.transfer.documents import path_or_text_of
from harnpy.session.transfer.formats import AUTO, format_called, format_of
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.kept.stored import StoredSession
    from harnpy.session.log import Session
    from harnpy.session.transfer.formats import Json, Parsed
    from harnpy.session.transfer.losses import Loss
    from harnpy.storage import Store

#: What to do with a session whose id is taken.
ERROR, SKIP, RENAME = "error", "skip", "rename"


def export(session: Session, format: str = "jsonl", path: str | None = None, *, strict: bool = False) -> str:
    """Return a session as the text of a file, and write it to ``path``: as a whole or not at all.

    ``strict``: raise `TransferError` when the format can't hold everything of it; see `lost`.
    """
    chosen = format_called(format)
    if strict:
        losses.refuse(chosen.lost(session))
    text = chosen.dumps(session)
    if path is not None:
        session.origin.world.files.replace_text(path, text)
    return text


def lost(session: Session, format: str) -> Sequence[Loss]:
    """Return what of a session a file of that format doesn't hold."""
    return format_called(format).lost(session)


def import_(
    path_or_text: str,
    store: Store,
    format: str = AUTO,
    *,
    id: str | None = None,
    on_conflict: str = ERROR,
    strict: bool = False,
    world: World | None = None,
) -> StoredSession | None:
    """Make a session of a file, or of a text whose ``format`` is named; return None if it was skipped.

    ``id`` takes the place of its own. ``on_conflict`` says what happens when that is taken: `ERROR`, `SKIP`,
    or `RENAME`, a new id. Nothing is resized or run. Raises `TransferError`, `SessionExists` and OSError;
    nothing is stored then.
    """
    world = world or World()
    path_or_text = path_or_text_of(path_or_text)
    is_path = "\n" not in path_or_text and world.files.is_file(path_or_text)
    text = world.files.read_text(path_or_text) if is_path else path_or_text
    path = path_or_text if is_path else "the text"
    parsed = format_of(path, text, format).parse(text, None)
    if strict:
        losses.refuse(parsed.losses)
    return admitted(parsed, store, world, id, on_conflict)


def admitted(
    parsed: Parsed, store: Store, world: World, id: str | None, on_conflict: str
) -> StoredSession | None:
    """Store what was read; None when it was skipped. Raises `SessionExists`."""
    try:
        return parsed.load(store, world, id)
    except SessionExists:
        if on_conflict == ERROR:
            raise
        return None if on_conflict == SKIP else parsed.load(store, world, world.ids.new())


def parsed_file(path: str, world: World, format: str, records: dict[str, Json]) -> Parsed:
    """Read a file. ``records`` are those of an ancestry, by the name of the file that each is about."""
    text = world.files.read_text(path)
    record = records.get(path)
    if record is not None:
        format = "canto"
    return format_of(path, text, format).parse(text, record)
