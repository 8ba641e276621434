"""Values that a program finds again on its next run. Spec: 04 §26, 08 §11.

One JSON object in one file, which several processes may share. A change takes the file's lock, reads what
others have written meanwhile, and is written as a whole or not at all, before it is visible.
"""

from __future__ import annotations

import os.path
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from harnpy.faults import MisuseError
from harnpy.text.json.reader import parse_json
from harnpy.text.json.writer import stored_json
from harnpy.world.files import take_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.reading.dicts import Dict
    from harnpy.world.files import Files

    Wait = Callable[[float], object]


T = TypeVar("T")

_UNREADABLE = ".unreadable"


class KeptValues:
    """Those in the file ``path``, as of the first use or the last change. ``wait(seconds)`` lets other tasks
    run."""

    #: What errors call them.
    kind: ClassVar[str]

    def __init__(self, path: str, files: Files, wait: Wait) -> None:
        self.path = path
        self._files = files
        self._wait = wait
        self._text: str | None = None
        self._loaded: Dict | None = None

    def set(self, key: str, value: Any) -> None:
        """Keep a value, as JSON represents it. Raise `MisuseError`."""
        with self._alone():
            self._write({**self._read(), key: value})

    def get(self, key: str) -> Any:
        """Return the value under a key, None without one."""
        return self._values.get(key)

    def has(self, key: str) -> bool:
        return key in self._values

    def keys(self) -> list[str]:
        return sorted(self._values)

    def delete(self, key: str) -> None:
        """Remove a key; a missing one is fine. Raise `MisuseError`."""
        if not self._files.exists(self.path):
            return
        with self._alone():
            values = self._read()
            if key in values:
                self._write({name: value for name, value in values.items() if name != key})

    def save(self) -> None:
        """Write the file even if nothing has changed. Raise `MisuseError`."""
        with self._alone():
            self._write(self._read())

    def clear(self) -> None:
        """Remove all keys and the file. Raise `MisuseError`."""
        if self._files.exists(self.path):
            with self._alone():
                self._try("clear", lambda: self._files.delete_file(self.path, os.path.dirname(self.path)))
        self._loaded, self._text = {}, None

    @property
    def _values(self) -> Dict:
        return self._read() if self._loaded is None else self._loaded

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other writers out of the block."""
        self._try("mkdir", lambda: self._files.make_directory(os.path.dirname(self.path)))
        release = self._try("lock", lambda: take_lock(f"{self.path}.lock", self._files, self._wait))
        try:
            yield
        finally:
            release()

    def _read(self) -> Dict:
        """Return what the file holds now; an unreadable one counts as empty."""
        try:
            text = self._files.read_text(self.path)
            if self._loaded is None or text != self._text:
                self._keep(text)
        except (OSError, ValueError):
            self._loaded, self._text = {}, None
        return self._loaded or {}

    def _write(self, values: Dict) -> None:
        """Write the values; a file that could not be read is kept beside them."""
        text = stored_json(values) + "\n"
        if self._text is None and self._files.is_file(self.path):
            self._try("write", lambda: self._files.rename(self.path, self.path + _UNREADABLE))
        self._try("write", lambda: self._files.replace_text(self.path, text))
        self._keep(text)

    def _keep(self, text: str) -> None:
        read = parse_json(text)
        self._loaded, self._text = (read, text) if isinstance(read, dict) else ({}, None)

    def _try(self, step: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except OSError as error:
            raise MisuseError(f"{self.kind} {step} error: {error.strerror or error}: {self.path}") from error


class Checkpoints(KeptValues):
    """The values of one program."""

    kind = "checkpoint"


class KeyValueStore(KeptValues):
    """The values that the programs of a project share."""

    kind = "store"
