"""The root of a project: where the nearest `harn.toml` is. On the start-up path: imports nothing heavy."""

from __future__ import annotations

import os.path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.world.files import Files

MANIFEST = "harn.toml"

STATE_VARIABLE = "HARN_STATE_DIR"
_STATE = ".harn"

#: What is below these isn't written by harnpy itself.
_NOT_KEPT = tuple(os.path.join(_STATE, name) for name in ("packages", "skills", "worktrees"))

RUNS_VARIABLE = "HARN_RUN_DIR"
_RUNS = ".harn-runs"

#: Stands for links out of these two places where tables of a manifest are named.
STATE = "state"

#: The tables of a manifest that a program may use.
PROGRAM_TABLES = ("mcp", "hooks", "exports", "llm", "sessions", "event_log", "skills", "skill", STATE)

WORKTREES_VARIABLE = "HARN_WORKTREE_DIR"

#: The schemes of stores in files, whose URL is a path; all others but `memory` are reached over the network.
IN_FILES = ("sqlite", "jsonl")


class ManifestError(Exception):
    """The manifest at ``path`` asks for something that can't be done; ``help`` is what to do about it."""

    def __init__(self, message: str, path: str, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.help = help


def upwards(directory: str) -> Iterator[str]:
    """``directory`` and those above it."""
    yield directory
    while (parent := os.path.dirname(directory)) != directory:
        directory = parent
        yield directory


def project_root(directory: str, files: Files) -> str | None:
    """The nearest directory upwards that has a manifest, None when none has."""
    found = (place for place in upwards(directory) if files.is_file(os.path.join(place, MANIFEST)))
    return next(found, None)


def state_directory(base: str, override: str | None) -> str:
    """Return where lasting state is kept below ``base``, or the place that the environment names."""
    return os.path.join(base, (override or "").strip() or _STATE)


def runs_directory(base: str, override: str | None) -> str:
    """Return where the records of runs are kept below ``base``, or the place that the environment names."""
    return os.path.join(base, (override or "").strip() or _RUNS)


def leads_out(files: Files, root: str, path: str) -> bool:
    """Return True if a path that counts from ``root``, a real one, leads to somewhere outside it."""
    try:
        real = files.real_path(os.path.join(root, path))
    except ValueError:  # a path that nothing can have
        return True
    return real != root and not real.startswith(f"{root.rstrip('/')}/")


def linked_state(files: Files, base: str) -> dict[str, str]:
    """Return the links by which the places of state and records in ``base`` lead out of its project.

    Each is given by its path from ``base``, with where it leads to.
    """
    found = {}
    for name in (_STATE, _RUNS):
        if not files.exists(os.path.join(base, name)):
            continue
        root = files.real_path(project_root(base, files) or base)
        inside = _links(files, base, name) if files.is_dir(os.path.join(base, name)) else ()
        for link in (name, *inside):
            place = os.path.join(files.real_path(base), link)
            if leads_out(files, root, place):
                found[link] = files.real_path(place)
    return found


def _links(files: Files, base: str, directory: str) -> Iterator[str]:
    """Return the paths from ``base`` of what is neither file nor directory in a directory and below it."""
    for each in files.entries(os.path.join(base, directory)):
        path = os.path.join(directory, each.name)
        if not each.is_dir:
            yield from () if each.is_file else (path,)
        elif path not in _NOT_KEPT:
            yield from _links(files, base, path)


def skill_places(
    env: Callable[[str], str | None], here: str, root: str | None, directories: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Return where skills may be, the highest layer first: layers and their directories (07 §13.1).

    ``directories`` come before all others; ``root`` is the project's, or the program's.
    """
    for directory in directories:
        yield "cli", os.path.normpath(os.path.join(here, directory))
    for directory in (env("HARN_SKILLS_PATH") or "").split(":"):
        if directory:
            yield "env", os.path.normpath(os.path.join(here, directory))
    if root:
        yield "project", os.path.join(root, ".harn/skills")
        yield "package", os.path.join(root, ".harn/packages")
    home = env("HOME")
    if home:
        yield "user", os.path.join(home, ".harn/skills")
    config = env("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else None)
    if config:
        yield "system", os.path.join(config, "harn/skills")
    yield "system", "/etc/harn/skills"
