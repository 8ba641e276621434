"""Cognesy's own files of sessions in a store's directory: ``<id>.json``. Spec: 10 §A3.7, §C17."""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING, Any

from harnpy.session.errors import SessionError, SessionExists
from harnpy.session.faces.cognesy.errors import InvalidSessionFileException
from harnpy.session.transfer.cognesy import load_file
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.storage.contract import Store

_SUFFIX = ".json"


class CognesyFiles:
    """The files of one directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._world = World()

    def ids(self) -> Iterator[str]:
        """Return the ids that files are named by, in order."""
        names = (entry.name for entry in self._world.files.entries(self._directory) if entry.is_file)
        return (name.removesuffix(_SUFFIX) for name in sorted(names) if name.endswith(_SUFFIX))

    def admit(self, id: str, store: Store) -> None:
        """Store the session of the file of that id, if there is one, as it stands there.

        Raises `InvalidSessionFileException`; nothing is stored then.
        """
        path = self._path(id)
        if not self._world.files.is_file(path):
            return
        try:
            load_file(_value(path, self._read(path)), store, self._world, id)
        except SessionExists:
            return  # somebody was faster
        except SessionError as error:
            known = error.message.startswith("Missing or invalid")
            reason = error.message if known else f"Deserialization failed: {error.message}"
            raise InvalidSessionFileException(path, reason) from error

    def remove(self, id: str) -> None:
        """Remove the file of that id, if there is one."""
        if self._world.files.is_file(self._path(id)):
            self._world.files.remove(self._path(id))

    def _path(self, id: str) -> str:
        return posixpath.join(self._directory, f"{id}{_SUFFIX}")

    def _read(self, path: str) -> str:
        try:
            return self._world.files.read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidSessionFileException(path, "Failed to read file") from error


def _value(path: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidSessionFileException(path, "Invalid JSON") from error
