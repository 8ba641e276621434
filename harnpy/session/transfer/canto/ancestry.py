"""Records of where sessions stand whose logs are elsewhere. Spec: 10 §A1.11."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harnpy.session.errors import InvalidArgument, SessionExists
from harnpy.session.transfer.canto.reading import read_log
from harnpy.session.transfer.logs import load_rows

if TYPE_CHECKING:
    from harnpy.storage import Store
    from harnpy.world import World

_TEXTS: Final = ("created_at", "parent_session_id", "fork_point_event_id", "branch_label", "fork_reason")


def save_ancestry(record: dict[str, Any], store: Store, world: World) -> bool:
    """Make a session of a record of Canto's ancestry: it has no messages, and the place that the record says.

    Return False if there is one of that id: it stays as it is. Raises `InvalidArgument`, `TransferError`.
    """
    if not isinstance(record, dict):
        raise InvalidArgument(f"a record of the ancestry is a dict, got {type(record).__name__}")
    id = record.get("session_id")
    if not isinstance(id, str) or not id.strip():
        raise InvalidArgument("session ancestry missing session id")
    if not record.get("created_at"):
        raise InvalidArgument(f'session ancestry "{id}" missing created_at')
    for key in _TEXTS:
        if not isinstance(record.get(key, ""), str):
            kind = type(record[key]).__name__
            raise InvalidArgument(f'session ancestry "{id}": `{key}` must be text, got {kind}')
    try:
        load_rows(read_log((), record).rows, store, world, None)
    except SessionExists:
        return False
    return True
