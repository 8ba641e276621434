"""The cache on disk of what is computed from source text: trees and compiled units.

An entry is a marshalled (maker, key, value) behind a checksum, in ``$XDG_CACHE_HOME/harnpy`` or
``~/.cache/harnpy``. The key is any text, usually the whole source: it is compared on loading, so a
colliding file name costs a miss and never runs another program. An entry that is corrupt, foreign or
out of date is none; a directory that cannot be written keeps nothing. ``HARNPY_NO_CACHE=1`` turns all
of it off; with ``HARNPY_NO_CACHE=writes`` entries are read, and none is written.

On the start-up path: imports nothing that is not already there.
"""

from __future__ import annotations

import marshal
import os
import sys
from _imp import source_hash  # what .pyc files are checked with; hashlib would cost a third of a start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

VARIABLE = "HARNPY_NO_CACHE"
_NO_WRITES = "writes"
#: Entries per kind; the older half goes when there are more.
MAX_ENTRIES = 1024
_SEED = 0x6861726E
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
#: The rooms whose code decides what a tree or a unit is, and what in them does not: how a program runs, and
#: what only `lint` and `explain` say. Import contracts hold that.
_COMPILING = {
    "syntax": frozenset[str](),
    "check": frozenset(["explanations", "lint"]),
    "vm": frozenset(["run", "values", "walk"]),
}
_CHECKSUM_SIZE = 8


def load(kind: str, key: str) -> Any | None:
    """Return what `store` kept under this kind and key, or None."""
    path = _path(kind, key)
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            data = file.read()
        payload = data[_CHECKSUM_SIZE:]
        if data[:_CHECKSUM_SIZE] != source_hash(_SEED, payload):
            return None
        made_by, known, value = marshal.loads(payload)
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return value if known == key and made_by == _stamp() else None


def store(kind: str, key: str, value: Any) -> None:
    """Keep a marshallable value; one that is not, or nests too deep, is not kept."""
    path = _path(kind, key)
    if not path or os.environ.get(VARIABLE) == _NO_WRITES:
        return
    partial = f"{path}.{os.getpid()}.{id(value):x}"
    try:
        payload = marshal.dumps((_stamp(), key, value))
        try:
            _write(partial, source_hash(_SEED, payload) + payload)
        except FileNotFoundError:
            _make_directories(path)
            _write(partial, source_hash(_SEED, payload) + payload)
        os.replace(partial, path)
        _prune(os.path.dirname(path))
    except (OSError, ValueError):
        # The program runs as well without its entry.
        return
    finally:
        _remove(partial)


def _make_directories(path: str) -> None:
    """Make those that an entry is in."""
    directory = os.path.dirname(path)
    above = os.path.dirname(directory)
    for each in (os.path.dirname(above), above, directory):  # the mode is that of the last one only
        os.makedirs(each, mode=0o700, exist_ok=True)


def _write(path: str, data: bytes) -> None:
    with open(path, "wb", opener=_open_private) as file:
        file.write(data)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _remove(partial: str) -> None:
    """Remove what a full disk or a signal has left of an entry; usually nothing."""
    try:
        os.unlink(partial)
    except OSError:
        return


def _path(kind: str, key: str) -> str:
    """The entry's file; ``""`` when nothing is to be cached."""
    place = directory()
    if not place:
        return ""
    name = source_hash(_SEED, key.encode("utf-8", "surrogatepass")).hex()
    return os.path.join(place, f"{kind}-{sys.implementation.cache_tag}", name)


def directory() -> str:
    """Return where entries are kept; ``""`` when none are."""
    if os.environ.get(VARIABLE, "") not in ("", "0", _NO_WRITES):
        return ""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "harnpy")


class _Stamp:
    """The name of this process's code; it won't change while the process runs."""

    text = ""


def _stamp() -> str:
    """Return what names the code that computes the values: the state of its files.

    A version would not do: in a checkout the code changes and its version does not.
    """
    if not _Stamp.text:
        _Stamp.text = _read_stamp()
    return _Stamp.text


def _read_stamp() -> str:
    rooms = [state_of_code(os.path.join(_PACKAGE, room), without) for room, without in _COMPILING.items()]
    return " ".join(rooms)


def is_installed() -> bool:
    """Return True if an installer has written the package, which then has what a checkout keeps elsewhere."""
    return os.path.isdir(os.path.join(_PACKAGE, "grammar"))


def state_of_code(directory: str, without: Collection[str] = ()) -> str:
    """Return a text that changes whenever a Python file below ``directory`` does, or one comes or goes.

    Folders with a name in ``without`` are left out. In an installed package no file changes alone: installing
    writes all of them, this one too.
    """
    if is_installed():
        return f"{os.stat(__file__).st_mtime_ns:x}-{os.stat(_PACKAGE).st_mtime_ns:x}"
    latest, size = _newest(directory, without)
    return f"{latest:x}-{size:x}"


def _newest(directory: str, without: Collection[str]) -> tuple[int, int]:
    """Return the latest change below ``directory`` and the size of all Python files in it.

    Part of every start, hence a plain loop; a folder's own change tells of files that came or went.
    """
    latest, size = os.stat(directory).st_mtime_ns, 0
    for entry in os.scandir(directory):
        name = entry.name
        if name.endswith(".py"):
            state = entry.stat()
            changed, more = state.st_mtime_ns, state.st_size
        elif "." not in name and name != "__pycache__" and name not in without:
            changed, more = _newest(entry.path, without)
        else:
            continue
        size += more
        if changed > latest:
            latest = changed
    return latest, size


def _prune(directory: str) -> None:
    # Names alone are a tenth of the time of entries, and usually there is nothing to do.
    if len(os.listdir(directory)) <= MAX_ENTRIES:
        return
    entries = [entry for entry in os.scandir(directory) if entry.is_file()]
    entries.sort(key=lambda entry: entry.stat().st_mtime_ns)
    for entry in entries[: MAX_ENTRIES // 2]:
        os.unlink(entry.path)
