"""Masking where a run happened: home directories, and absolute paths outside the workspace. Pure.

A home directory becomes ``~`` everywhere, so that the rest of the path stays readable; any other absolute
path outside the workspaces becomes ``<path:HASH8>``, the same for the same path. Spec: 08 §17, `sanitized`.
"""

from __future__ import annotations

import re
from hashlib import sha256
from posixpath import normpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: A name of a directory or file; blanks and quotes end it.
_PART = r"""[^\s/"'`<>|:;,?*\\(){}\[\]]+"""
#: A slash that begins a path: at the start of a word, behind an escape, a flag such as -I, or `file://`.
#: It looks behind after the slash: a pattern that begins with a character is searched fast.
_ROOT = r"/(?:(?<![\w.~/*)}-]/)|(?<=\\[nrt]/)|(?<=[\s\"'=,]-[A-Za-z]/)|(?<=file:///))"

_HOME = re.compile(rf"{_ROOT}(?:(?:home|Users)/{_PART}|root(?![\w.-]))")
_WINDOWS_HOME = re.compile(r"""(?<![A-Za-z])[A-Za-z]:[\\/]+Users[\\/]+[^\s\\/"'`<>|:;,?*]+""", re.IGNORECASE)
_PATH = re.compile(rf"{_ROOT}{_PART}(?:/{_PART})*/?")
_WINDOWS_PATH = re.compile(r"""(?<![A-Za-z])[A-Za-z]:(?:\\+[^\s\\/"'`<>|:;,?*]+)+""")

#: Names that make a single word behind a slash a directory, not a command or part of a URL.
_TOP = frozenset(
    "bin boot data dev etc home lib lib64 media mnt nix opt private proc root run sbin snap srv sys tmp usr "
    "var work workspace Applications Library System Users Volumes".split()
)


class Places:
    """The workspaces, whose paths may be shown, and the home directory of the user."""

    def __init__(self, workspaces: Iterable[str] = (), home: str | None = None) -> None:
        home = (home or "").rstrip("/")
        # A home such as /root may be any word; the patterns recognise it where it is a path.
        self._home = re.compile(re.escape(home) + r"(?![\w-])") if home.count("/") > 1 else None
        directories = {normpath(directory) for directory in workspaces if directory.startswith("/")}
        self._workspaces = tuple(sorted(directories - {"/", "//", home}))

    def without_home(self, text: str) -> str:
        if self._home is not None:
            text = self._home.sub("~", text)
        return _WINDOWS_HOME.sub("~", _HOME.sub("~", text)) if "/" in text or "\\" in text else text

    def without_paths(self, text: str) -> str:
        """Return ``text`` with absolute paths outside the workspaces hashed."""
        if "/" in text:
            text = _PATH.sub(self._hashed, text)
        return _WINDOWS_PATH.sub(lambda found: _hash(found[0]), text) if ":\\" in text else text

    def _hashed(self, found: re.Match[str]) -> str:
        path = _absolute(found)
        if path is None:
            return found[0]
        plain = normpath(path)
        if any(plain == root or plain.startswith(f"{root}/") for root in self._workspaces):
            return found[0]
        return _hash(plain) + found[0][len(path) :]


def paths_in(text: str) -> Iterator[str]:
    """Yield the absolute paths in a text."""
    found = (_absolute(match) for match in _PATH.finditer(text))
    return (normpath(path) for path in found if path is not None)


def _absolute(found: re.Match[str]) -> str | None:
    """Return the path found, without the full stop of a sentence; None if it only looks like a path."""
    path = found[0].rstrip(".!")
    parts = path.strip("/").split("/")
    closing_tag = found.string.startswith("<", found.start() - 1) if found.start() else False
    return None if len(parts) == 1 and (closing_tag or parts[0] not in _TOP) else path


def _hash(path: str) -> str:
    return f"<path:{sha256(path.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}>"
