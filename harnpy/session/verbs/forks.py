"""Forks: a session made of another one's past, and who descends from whom. Spec: 08 §1.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.reading.kinds import count
from harnpy.session.errors import InvalidArgument
from harnpy.session.kept.keeping import discard, is_kept
from harnpy.session.verbs.arguments import check, not_blank

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session.log import Session
    from harnpy.session.resident import Resident
    from harnpy.session.residents import Residents
    from harnpy.session.views import View


def fork(residents: Residents, src: str, dst: str | None = None) -> str:
    """Copy a session's transcript under a new id. Return that id."""
    not_blank("dst", dst)
    return _fork(residents, src, dst).session.id


def fork_at(residents: Residents, src: str, keep_first: int, dst: str | None = None) -> str:
    """Fork, keeping only the first messages on the child. Return its id."""
    check("keep_first", keep_first, count)
    not_blank("dst", dst)
    child = _fork(residents, src, dst).session
    window = child.view.window
    child.replace("fork_at", window.head(keep_first), branched_at=window.branch_index(keep_first))
    return child.id


def ancestry(residents: Residents, id: str) -> Dict | None:
    """Return ``{parent_id, child_ids, root_id}``, None when there is no such session."""
    resident = residents.current(id)
    if resident is None:
        return None
    root, seen = id, {id}
    while (parent := _parent_id(residents, root)) is not None and parent not in seen:
        root = parent
        seen.add(root)
    child_ids = list(resident.child_ids)
    return {"parent_id": resident.session.view.parent_id, "child_ids": child_ids, "root_id": root}


def _fork(residents: Residents, src: str, dst: str | None) -> Resident:
    source = residents.find(src)
    if dst == src:
        raise InvalidArgument("`dst` must differ from `src`", src)
    residents.touch(src)
    if dst is None:
        dst = residents.world.ids.new()
    elif dst not in residents.by_id and is_kept(source.session) and source.session.has_neighbour(dst):
        residents.open_resident(dst, source.session.store)
    child, view = residents.by_id.get(dst), source.session.view
    if child is None:
        made = _forked(residents, source.session, dst)
        child, view = residents.by_id.get(dst), made.view
        if child is None:
            child = residents.admit(made)
    if child.session.view is not view:  # it existed, or an eviction subscriber opened it
        _refork(residents, child.session, src, view)
    _link(residents, src, dst)
    return child


def _forked(residents: Residents, source: Session, dst: str) -> Session:
    """Fork, then make room. In this order: the source itself may be evicted, which adds to its log."""
    made = source.fork(dst, residents.store)
    try:
        residents.make_room(dst)
    except BaseException:  # an eviction subscriber was interrupted: the fork won't be admitted
        if dst not in residents.by_id:
            discard(made, residents.store)
        raise
    return made


def _refork(residents: Residents, child: Session, src: str, view: View) -> None:
    """Turn an existing session into a fork of ``src``, whose state is ``view``."""
    former = child.view.parent_id
    if former is not None and former != src and former in residents.by_id:
        residents.by_id[former].child_ids.pop(child.id, None)
    child.bring(src, view)


def _link(residents: Residents, parent_id: str, child_id: str) -> None:
    residents.touch(parent_id)
    residents.touch(child_id)
    parent = residents.by_id.get(parent_id)
    if parent is not None:
        parent.child_ids[child_id] = None


def _parent_id(residents: Residents, id: str) -> str | None:
    resident = residents.by_id.get(id)
    return None if resident is None else resident.session.view.parent_id
