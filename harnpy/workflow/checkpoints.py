"""Checkpoints: values that a program finds again on its next run. Spec: 08 §11.

One JSON object in one file. A change is written as a whole or not at all, before it is visible.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.text.json.reader import parse_json
from harnpy.text.json.writer import stored_json

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.world import World


_DEFAULT, _REPL = "default", "repl"


class Checkpoints:
    """Those in the file ``path``."""

    def __init__(self, path: str, world: World) -> None:
        self.path = path
        self._files = world.files
        self._ids = world.ids
        self._loaded: Dict | None = None

    def set(self, key: str, value: Any) -> None:
        """Keep a value, as JSON represents it. Raise `MisuseError`."""
        self._write({**self._values, key: value})

    def get(self, key: str) -> Any:
        """Return the value under a key, None without one."""
        return self._values.get(key)

    def has(self, key: str) -> bool:
        return key in self._values

    def keys(self) -> list[str]:
        return sorted(self._values)

    def delete(self, key: str) -> None:
        """Remove a key; a missing one is fine. Raise `MisuseError`."""
        if key in self._values:
            self._write({name: value for name, value in self._values.items() if name != key})

    def clear(self) -> None:
        """Remove all keys and the file. Raise `MisuseError`."""
        try:
            self._files.delete_file(self.path, os.path.dirname(self.path))
        except OSError as error:
            raise _failure("clear", error) from error
        self._loaded = {}

    @property
    def _values(self) -> Dict:
        if self._loaded is None:
            self._loaded = self._read()
        return self._loaded

    def _read(self) -> Dict:
        """Return the contents of the file; an unreadable one counts as empty."""
        try:
            read = parse_json(self._files.read_text(self.path))
        except (OSError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}

    def _write(self, values: Dict) -> None:
        text = stored_json(values)
        try:
            self._files.make_directory(os.path.dirname(self.path))
        except OSError as error:
            raise _failure("mkdir", error) from error
        try:
            self._files.replace_text(self.path, text + "\n", f"{self.path}.{self._ids.new()}.partial")
        except OSError as error:
            raise _failure("write", error) from error
        self._loaded = parse_json(text)


def program_name(file: str | None) -> str:
    """Return the name for a program's checkpoints: its file name without the extension."""
    if file == "<repl>":
        return _REPL
    if file is None or file.startswith("<"):
        return _DEFAULT
    stem = os.path.splitext(os.path.basename(file))[0]
    return _DEFAULT if stem in ("", ".", "..") else stem


def _failure(step: str, error: OSError) -> MisuseError:
    return MisuseError(f"checkpoint {step} error: {error.strerror}: {error.filename}")
