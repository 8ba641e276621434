"""The files of an archive, and the names that they may have. Spec: 04 §22."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from harnpy.archives.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The permissions of a file that says nothing of them.
MODE = 0o644

_OUTSIDE = re.compile(r"[/\\]|[A-Za-z]:|(?:.*[/\\])?\.\.(?:[/\\]|\Z)", re.DOTALL)


class Entry(NamedTuple):
    path: str
    content: bytes
    mode: int = MODE


def check_path(number: int, path: str) -> None:
    """Raise DataError for a path that leads out of the directory into which an archive is unpacked.

    Both kinds of slashes count, and drive letters: an archive may be unpacked on another system.
    """
    if not path:
        raise DataError(f"entry {number} path must not be empty")
    if "\0" in path:
        raise DataError(f"entry {number} path contains a NUL: {path!r}")
    if _OUTSIDE.match(path):
        raise DataError(f"entry {number} path must lead to a file within the archive, got {path!r}")


def check_entries(entries: Iterable[Entry]) -> None:
    """Raise DataError when an archive of ``entries`` could not be unpacked to the same entries."""
    numbers: dict[str, int] = {}
    for number, (path, _, _) in enumerate(entries):
        check_path(number, path)
        if path.endswith("/"):
            raise DataError(f"entry {number} path is a directory's: {path!r}")
        if not path.isascii():
            _check_unicode(number, path)
        if numbers.setdefault(path, number) != number:
            raise DataError(f"entry {number} has the path of entry {numbers[path]}: {path!r}")


def _check_unicode(number: int, path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise DataError(f"entry {number} path is not valid Unicode: {path!r}") from None


def not_a_file(number: int, path: str, what: str) -> DataError:
    """Return the error for an entry that is ``what``, "a symbolic link"."""
    return DataError(f"entry {number} {path!r} is {what}; pass {{skip_special: true}} to leave it out")
