"""Writing a log anew: without records that are dropped, with those that a branch shared, or as a stem.

The new file replaces the old one in one step; readers that have the old one open read on in it. An append
stays in the file as long as any record of it does, as its records may refer to each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import msgspec

from harnpy.storage.jsonl.lines import Facts, written
from harnpy.storage.jsonl.log import SUFFIX, appends
from harnpy.storage.jsonl.writing import new_uid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.storage.contract import Row
    from harnpy.storage.jsonl.folders import Folder
    from harnpy.storage.jsonl.lines import Origin
    from harnpy.storage.jsonl.log import Log
    from harnpy.storage.jsonl.logs import Logs
    from harnpy.storage.jsonl.state import State

    Appends = Iterable[list[Row]]


def drop(logs: Logs, kind: str, log: Log, until: int) -> int:
    """Forget the records up to ``until`` of a log whose lock is held; return how many went."""
    opened = log.open()
    if opened is None:
        return 0
    file, state = opened
    with file:
        until = min(until, state.version)
        gone = until - state.dropped
        if gone <= 0:
            return 0
        facts = _facts(state)
        if _keep_shared(logs, kind, log, file, state):
            facts.uid = new_uid()  # what the branches point to is the stem from now on
        facts.dropped = until
        own = 0 if state.points is None else state.points.at
        if until >= own:
            facts.branch = _copied(state)
        kept = list(appends(log, file, state, max(until, own), state.version))
        facts.version = state.version
        _replace(log, facts, kept)
    return gone


def delete(logs: Logs, kind: str, log: Log) -> bool:
    """Remove a log whose lock is held; what its branches read stays as a stem."""
    opened = log.open()
    if opened is None:
        return False
    file, state = opened
    with file:
        _keep_shared(logs, kind, log, file, state)
    log.remove()
    return state.version > 0


def settle(log: Log, state: State, kept: Appends) -> None:
    """Give a branch, whose lock is held, all of its records as its own."""
    facts = _facts(state)
    facts.branch = _copied(state)
    _replace(log, facts, [rows for rows in kept if rows])


def _keep_shared(logs: Logs, kind: str, log: Log, file: BinaryIO, state: State) -> bool:
    """Write what the branches of a log read into a stem. Return False when there are no branches."""
    until = min(logs.shared(kind, state.uid), state.version)
    if not until:
        return False
    before = max(state.dropped, 1 if state.points is None else state.points.at)
    kept = list(appends(log, file, state, before, until))
    facts = Facts(uid=state.uid, branch=state.branch, dropped=max(1, state.dropped))
    facts.version = before
    _write(logs.stems, state.uid, facts, kept)
    return True


def _copied(state: State) -> Origin | None:
    """The origin of a branch that reads nothing from there any more."""
    return None if state.branch is None else msgspec.structs.replace(state.branch, uid="")


def _facts(state: State) -> Facts:
    """What a new first line says of a log."""
    return Facts(
        name=state.name,
        uid=state.uid,
        branch=state.branch,
        dropped=state.dropped,
        created=state.created,
        updated=state.updated,
        head=state.head,
    )


def replace(log: Log, state: State, rows: list[Row]) -> None:
    """Give a log, whose lock is held, other lines: ``state`` says what it is."""
    facts = _facts(state)
    appended: list[list[Row]] = []
    for row in rows:
        if not appended or not appended[-1][-1].more:
            appended.append([])
        appended[-1].append(row)
    _replace(log, facts, appended)


def _replace(log: Log, facts: Facts, kept: Appends) -> None:
    _write(log.folder, log.file, facts, kept)


def _write(folder: Folder, file: str, facts: Facts, kept: Appends) -> None:
    """Write a log whose first line has the facts: that of a branch's own first record, or one without."""
    content: list[bytes] = []
    for rows in kept:
        if not content:
            if facts.branch is not None and facts.branch.uid and rows[0].seq == 1:
                facts.version = facts.branch.at
                content.append(written(rows, facts))
                continue
            facts.version = rows[0].seq - 1
            content.append(written([], facts))
        content.append(written(rows))
    folder.replace(file + SUFFIX, b"".join(content) or written([], facts))
