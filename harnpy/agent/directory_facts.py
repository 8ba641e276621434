"""Facts about directories, in namespaces, inherited downwards; and what is below a directory. Spec: 02 §29.

    <state root>/metadata/<namespace>/entries.json    {version, namespace, backend, generatedAt, entries}
    <state root>/metadata/root.json                   all namespaces, in the former format

Facts are read at first use and changed in memory; `save` writes the changes over what others have saved.
"""

from __future__ import annotations

import os.path
import re
from stat import S_ISDIR
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError, paced, watched
from harnpy.formats.globs import glob_matches
from harnpy.formats.json import parse_json, stored_json
from harnpy.formats.paths import normalized
from harnpy.world.clock import rfc3339
from harnpy.world.files import take_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.formats.dicts import Dict
    from harnpy.world import World
    from harnpy.world.files import Files

    #: The facts of a namespace, by directory.
    Entries = dict[str, Dict]

# Fingerprints of directories: what is directly in one, as one number. Spec: 02 §29.


_BASIS, _PRIME = 0xCBF29CE484222325, 0x100000001B3


def structure_hash(files: Files, directory: str) -> str:
    """Return the hash of the names and sizes in a directory; of a missing one it is that of an empty one."""
    return _hash(files, directory, with_times=False)


def content_hash(files: Files, directory: str) -> str:
    """Return the hash of the names, sizes and times of change, in seconds."""
    return _hash(files, directory, with_times=True)


def _hash(files: Files, directory: str, with_times: bool) -> str:
    try:
        names = [entry.name for entry in files.entries(directory)]
    except OSError:
        names = []
    lines = []
    for name in watched(names):
        try:
            status = files.status(os.path.join(directory, name))
        except OSError:
            continue  # a link that leads nowhere, or what is gone by now
        time = f":{int(status.st_mtime)}" if with_times else ""
        lines.append(f"{name}:{status.st_size}{time}")
    return _fnv("|".join(sorted(lines)))


def _fnv(text: str) -> str:
    """FNV-1a with 64 bits."""
    value = _BASIS
    for byte in paced(text.encode("utf-8", "surrogateescape")):
        value = (value ^ byte) * _PRIME & 0xFFFFFFFFFFFFFFFF
    return f"{value:x}"


_FILE, _OLD_FILE = "entries.json", "root.json"
#: The namespace of hashes, and their fields.
HASHES = "classification"
STRUCTURE, CONTENT = "structureHash", "contentHash"


class DirectoryFacts:
    """Those kept below ``root``, about directories relative to ``base``.

    ``wait(seconds)`` lets other tasks run.
    """

    def __init__(self, root: str, base: str, world: World, wait: Callable[[float], object]) -> None:
        self._root = root
        self._base = base
        self._world = world
        self._files = world.state_files
        self._wait = wait
        self._loaded: dict[str, Entries] | None = None
        self._changes: list[tuple[str, str, Dict]] = []

    def set(self, directory: str, namespace: str, fields: Dict) -> None:
        """Merge fields into those of a directory."""
        place = path_of(directory)
        _merge(self._facts, namespace, place, fields)
        self._changes.append((namespace, place, fields))

    def fields(self, directory: str, namespace: str) -> Dict | None:
        """Return the fields that hold for a directory; None when no level has the namespace."""
        entries = self._facts.get(namespace, {})
        longest = max(map(len, entries), default=0)
        levels = [entries[level] for level in _levels(path_of(directory), longest) if level in entries]
        return {name: value for level in levels for name, value in level.items()} if levels else None

    def all_fields(self, directory: str) -> dict[str, Dict]:
        """Return the fields that hold for a directory, by namespace."""
        found = ((namespace, self.fields(directory, namespace)) for namespace in self.namespaces())
        return {namespace: fields for namespace, fields in found if fields is not None}

    def own_fields(self, directory: str, namespace: str) -> Dict | None:
        """Return the fields that a directory itself has."""
        return self._facts.get(namespace, {}).get(directory)

    def namespaces(self) -> list[str]:
        return sorted(self._facts)

    def directories(self, namespace: str | None = None) -> list[str]:
        """Return the directories that have an entry, in any namespace or in one; ``.`` comes first."""
        wanted = self._facts.values() if namespace is None else [self._facts.get(namespace, {})]
        return sorted(
            {place for entries in wanted for place in entries}, key=lambda place: (place != ".", place)
        )

    def save(self) -> None:
        """Write what has changed. Raises `MisuseError`."""
        changed = {namespace for namespace, _, _ in self._changes}
        for namespace in [name for name in self.namespaces() if name in changed or not self._has_file(name)]:
            self._save(namespace)
        self._changes = []

    # Hashes.

    def hash_of_structure(self, directory: str) -> str:
        return structure_hash(self._world.files, self._place(directory))

    def hash_of_content(self, directory: str) -> str:
        return content_hash(self._world.files, self._place(directory))

    def refresh_hashes(self) -> None:
        """Keep the present structure hash of every known directory."""
        for directory in self.directories():
            self.set(directory, HASHES, {STRUCTURE: self.hash_of_structure(directory)})

    def stale(self) -> tuple[list[str], list[str]]:
        """Return the directories of another structure than was kept, and those with other contents alone."""
        structure, content = [], []
        for directory in self.directories():
            kept = self.own_fields(directory, HASHES) or {}
            if kept.get(STRUCTURE) not in (None, self.hash_of_structure(directory)):
                structure.append(directory)
            elif kept.get(CONTENT) not in (None, self.hash_of_content(directory)):
                content.append(directory)
        return structure, content

    def missing_hash(self, field: str, namespace: str | None) -> list[str]:
        """Return the directories that are there, but have no hash of that kind."""
        return [
            directory
            for directory in self.directories(namespace)
            if not any(
                field in (self.own_fields(directory, name) or {}) for name in (namespace or HASHES, HASHES)
            )
            and self._world.files.is_dir(self._place(directory))
        ]

    def _place(self, directory: str) -> str:
        return os.path.normpath(os.path.join(self._base, path_of(directory)))

    # Files.

    @property
    def _facts(self) -> dict[str, Entries]:
        if self._loaded is None:
            self._loaded = dict(self._read())
        return self._loaded

    def _read(self) -> Iterator[tuple[str, Entries]]:
        facts: dict[str, Entries] = {}
        old = self._document(os.path.join(self._root, _OLD_FILE))
        for directory, kept in _dicts(old.get("entries")):
            for namespace, fields in _dicts(kept.get("namespaces")):
                _merge(facts, namespace, directory, fields)
        try:
            folders = [entry.name for entry in self._files.entries(self._root) if entry.is_dir]
        except OSError:
            folders = []
        for name in folders:
            document = self._document(os.path.join(self._root, name, _FILE))
            known = document.get("namespace")
            if isinstance(known, str):
                for directory, fields in _dicts(document.get("entries")):
                    _merge(facts, known, directory, fields)
        yield from facts.items()

    def _document(self, path: str) -> Dict:
        try:
            read = parse_json(self._files.read_text(path))
        except (OSError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}

    def _file_of(self, namespace: str) -> str:
        return os.path.join(self._root, folder_of(namespace), _FILE)

    def _has_file(self, namespace: str) -> bool:
        return self._files.is_file(self._file_of(namespace))

    def _save(self, namespace: str) -> None:
        path = self._file_of(namespace)
        try:
            self._files.make_directory(os.path.dirname(path))
            release = take_lock(f"{path}.lock", self._files, self._wait)
        except OSError as error:
            raise MisuseError(f"metadata mkdir: {error.strerror}: {os.path.dirname(path)}") from error
        try:
            self._files.replace_text(path, stored_json(self._document_of(namespace, path)) + "\n")
        except OSError as error:
            raise MisuseError(f"metadata write: {error.strerror}: {path}") from error
        finally:
            release()

    def _document_of(self, namespace: str, path: str) -> Dict:
        """Return what to write: what others have saved meanwhile, with the changes of this program."""
        kept = {namespace: dict(_dicts(self._document(path).get("entries")))}
        if not kept[namespace]:
            kept = {namespace: self._facts[namespace]}
        for changed, directory, fields in self._changes:
            if changed == namespace:
                _merge(kept, namespace, directory, fields)
        self._facts[namespace] = kept[namespace]
        return {
            "version": 1,
            "namespace": namespace,
            "backend": "filesystem",
            "generatedAt": rfc3339(self._world.clock.now()),
            "entries": kept[namespace],
        }


def path_of(directory: str) -> str:
    """Return a directory as it is kept: relative, with ``/``; a blank one is ``.``."""
    return normalized(directory.strip()) or "."


def folder_of(namespace: str) -> str:
    """Return the name of a namespace's folder."""
    return re.sub(r"[^A-Za-z0-9._-]", lambda found: f"_{ord(found.group()):x}", namespace)


def _levels(directory: str, longest: int) -> Iterator[str]:
    """Yield ``.`` and each directory on the way to one, and itself, up to a name of that length."""
    yield "."
    if directory == ".":
        return
    names = directory.split("/")
    for count in range(1, len(names) + 1):
        level = "/".join(names[:count])
        if len(level) > longest:
            return
        yield level


def _merge(facts: dict[str, Entries], namespace: str, directory: str, fields: Dict) -> None:
    entries = facts.setdefault(namespace, {})
    entries[directory] = {**entries.get(directory, {}), **fields}


def _dicts(value: Any) -> Iterable[tuple[str, Dict]]:
    return (
        [(key, item) for key, item in paced([*value.items()]) if isinstance(item, dict)]
        if isinstance(value, dict)
        else []
    )


_DEPTH = 5


class Scan(NamedTuple):
    """The settings of a scan; ``most`` directories deep, 0 is what is directly in the directory."""

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
        for entry in watched(found):
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
        """Return True if a path matches: ``**`` crosses folders, ``*`` doesn't; without one, a part does."""
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
