"""The tables of `harn.toml` for `check`, `lint`, `fmt` and `--workspace`. Spec: 09 §12."""

from __future__ import annotations

import os.path
from itertools import islice

from harnpy.cli.console import complain
from harnpy.project import MANIFEST, upwards
from harnpy.text.toml.reader import parse_toml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: How far up the search for a manifest goes, in directories.
_LEVELS = 16


def nearest_manifest(path: str) -> str | None:
    """The `harn.toml` for a file or directory: the nearest one upwards, not beyond the repository."""
    start = os.path.abspath(path)
    for directory in islice(upwards(start if os.path.isdir(start) else os.path.dirname(start)), _LEVELS):
        manifest = os.path.join(directory, MANIFEST)
        if os.path.isfile(manifest):
            return manifest
        if os.path.exists(os.path.join(directory, ".git")):
            return None
    return None


class Manifests:
    """The manifests that one command has met; each is read once, and complained of once."""

    def __init__(self) -> None:
        self._read: dict[str, dict[str, Any]] = {}

    def table(self, name: str, path: str) -> dict[str, Any]:
        """The table ``[name]`` that holds for a file or directory, its keys in snake case; often empty."""
        manifest = nearest_manifest(path)
        if manifest is None:
            return {}
        if manifest not in self._read:
            self._read[manifest] = _tables(manifest)
        table = self._read[manifest].get(name)
        return (
            {key.replace("-", "_"): value for key, value in table.items()} if isinstance(table, dict) else {}
        )


def _tables(manifest: str) -> dict[str, Any]:
    """All tables of a manifest; none, and a warning, when it can't be read."""
    try:
        with open(manifest, encoding="utf-8") as file:
            return parse_toml(file.read())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        complain(f"warning: failed to parse {manifest}: {reason}")
        return {}
