"""What is below a directory of a project. Spec: 02 §29."""

from __future__ import annotations

import os.path
from stat import S_ISDIR
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.text.globs import glob_matches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.reading.dicts import Dict
    from harnpy.world.files import Files

_DEPTH = 5


class Scan(NamedTuple):
    """What a scan looks for; ``most`` directories deep, 0 is what is directly in the directory."""

    pattern: str | None
    dirs: bool
    files: bool
    hidden: bool
    most: int

    @classmethod
    def of(cls, options: Dict) -> Scan:
        """Return the scan that options ask for; those of another type are left at their defaults."""
        pattern, depth = options.get("pattern"), options.get("max_depth")
        return cls(
            pattern if isinstance(pattern, str) and pattern else None,
            options.get("include_dirs") is not False,
            options.get("include_files") is not False,
            options.get("include_hidden") is True,
            depth if type(depth) is int else _DEPTH,
        )

    def entries(self, files: Files, base: str, path: str) -> list[Any]:
        """Return what is found below ``path`` of ``base``: ``{path, size, modified, is_dir}``, by path."""
        top = os.path.normpath(os.path.join(base, path))
        return sorted(self._below(files, base, top, 0), key=lambda entry: entry["path"])

    def _below(self, files: Files, base: str, directory: str, depth: int) -> Iterator[Dict]:
        if depth > self.most:
            return
        try:
            found = files.entries(directory)
        except OSError:
            return
        for entry in found:
            if entry.name.startswith(".") and not self.hidden:
                continue
            place = os.path.join(directory, entry.name)
            try:
                status = files.status(place)
            except OSError:
                continue  # a link that leads nowhere, or what is gone by now
            is_dir = S_ISDIR(status.st_mode)
            shown = place.removeprefix(base.rstrip("/") + "/")
            if (self.dirs if is_dir else self.files) and self._matches(shown):
                yield {
                    "path": shown,
                    "size": status.st_size,
                    "modified": int(status.st_mtime),
                    "is_dir": is_dir,
                }
            if entry.is_dir:
                yield from self._below(files, base, place, depth + 1)

    def _matches(self, path: str) -> bool:
        """Whether a path matches: ``**`` crosses folders, ``*`` doesn't; without a star a part will do."""
        pattern = self.pattern
        if pattern is None:
            return True
        if "*" not in pattern:
            return pattern in path
        if "**" in pattern:
            return glob_matches(pattern.replace("**/", "*").replace("**", "*"), path)
        if "/" not in pattern:
            return glob_matches(pattern, path.rpartition("/")[2])
        return pattern.count("/") == path.count("/") and glob_matches(pattern, path)
