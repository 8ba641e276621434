"""Where an import path leads: bundled modules, files, installed packages. Spec: 06 §3.

Only package manifests are read here; the world knows what exists. Bundled modules are part of the
interpreter, like the grammar, and no world can hide them.
"""

from __future__ import annotations

import os.path

from harnpy import shipped
from harnpy.project import MANIFEST, upwards
from harnpy.world.files import RealFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.world.files import Files

BUNDLED = "std/"
EXTENSION = ".harn"
_PACKAGES = os.path.join(".harn", "packages")
_ENTRANCE = "lib" + EXTENSION


class Place:
    """Where a module is. ``name`` is its identity, and what messages call it; ``path`` the file to read."""

    __slots__ = ("bundled", "name", "path")

    def __init__(self, name: str, path: str, bundled: bool = False) -> None:
        self.name = name
        self.path = path
        self.bundled = bundled

    @property
    def directory(self) -> str:
        return os.path.dirname(self.path)


def find(files: Files, path: str, directory: str) -> Place | None:
    """The module that ``import "path"`` means in a file of ``directory``; None when nothing is there."""
    if path.startswith(BUNDLED):
        return _bundled(path)
    for candidate in (os.path.join(directory, path), expected(path, directory)):
        if files.exists(candidate):
            return _file(files, candidate)
    return _installed(files, path, directory)


def expected(path: str, directory: str) -> str:
    """The file that an import would have needed, when nothing is there."""
    return _with_extension(os.path.join(directory, path))


def _with_extension(path: str) -> str:
    return path if os.path.splitext(path)[1] else path + EXTENSION


def _file(files: Files, path: str) -> Place:
    canonical = files.real_path(path)
    return Place(canonical, canonical)


def bundled_names() -> list[str]:
    """What `import "std/…"` may name, sorted."""
    top = shipped.directory("stdlib")
    files = (file.removeprefix(top).lstrip("/") for file in RealFiles().files_under(top))
    return sorted(BUNDLED + file.removesuffix(EXTENSION) for file in files if file.endswith(EXTENSION))


def unknown_module(path: str) -> str:
    """Return the message for a bundled module that isn't there."""
    return f"Unknown stdlib module: {path}"


def _bundled(path: str) -> Place | None:
    parts = path.removeprefix(BUNDLED).split("/")
    if not all(part.isidentifier() for part in parts):
        return None
    file = os.path.join(shipped.directory("stdlib"), *parts) + EXTENSION
    return Place(f"<stdlib>/{'/'.join(parts)}{EXTENSION}", file, True) if RealFiles().is_file(file) else None


# --- installed packages -----------------------------------------------------------------------------


def _installed(files: Files, path: str, directory: str) -> Place | None:
    """What the packages of this directory or one above offer; the search ends at a repository's root."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or os.path.isabs(path) or "\\" in path or ".." in parts:
        return None
    for above in upwards(directory):
        found = _in_packages(files, os.path.join(above, _PACKAGES), parts)
        if found is not None:
            return _file(files, found)
        if files.exists(os.path.join(above, ".git")):
            return None
    return None


def _in_packages(files: Files, packages: str, parts: list[str]) -> str | None:
    package = os.path.join(packages, parts[0])
    found = _target(files, os.path.join(packages, *parts))
    if found is None and len(parts) > 1 and (export := _exports(files, package).get("/".join(parts[1:]))):
        found = _target(files, os.path.join(package, export))
    inside = package if files.is_dir(package) else packages
    return found if found is not None and _is_below(files, found, inside) else None


def _target(files: Files, path: str) -> str | None:
    """The file at ``path``: a directory stands for its `lib.harn`, if there is one."""
    if files.is_dir(path):
        entrance = os.path.join(path, _ENTRANCE)
        return entrance if files.is_file(entrance) else path
    return next((each for each in (path, _with_extension(path)) if files.is_file(each)), None)


def _exports(files: Files, package: str) -> dict[str, str]:
    """The `[exports]` of a package's manifest; one that can't be understood has none."""
    manifest = os.path.join(package, MANIFEST)
    if not files.is_file(manifest):
        return {}
    from harnpy.text.toml.reader import parse_toml

    try:
        exports = parse_toml(files.read_text(manifest)).get("exports")
    except (OSError, ValueError):
        return {}
    given = exports if isinstance(exports, dict) else {}
    return {name: target for name, target in given.items() if isinstance(target, str)}


def _is_below(files: Files, path: str, directory: str) -> bool:
    real, above = files.real_path(path), files.real_path(directory)
    return real == above or real.startswith(above + os.path.sep)
