"""A project's `harn.toml`, and which of its parts take effect only when a person trusts them.

`PARTS` lists every key. `Manifest.tables` holds what may take effect, and nothing else reads the file: what
isn't trusted reaches nobody. The decision is a digest of the parts that need one, in the user's
configuration: changed parts need another. Spec: 09 §12.1.
"""

from __future__ import annotations

import os.path
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import read_toml
from harnpy.formats.json import compact_json
from harnpy.project import (
    IN_FILES,
    MANIFEST,
    STATE,
    ManifestError,
    leads_out,
    linked_state,
    project_root,
    upwards,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.world import World
    from harnpy.world.files import Files

    Path = tuple[str, ...]

VARIABLE = "HARN_TRUST"

#: Takes effect; takes effect once trusted; takes effect, unless its paths, or the URL of a store, lead out of
#: the project: then once trusted.
FREE, TRUST, PATHS, STORE = "free", "trust", "paths", "store"

#: By key, what it takes to have an effect; a row holds for all keys below it that have none. What has no row
#: has no effect without trust, whoever may read it one day.
PARTS = {
    "package": FREE,
    "package.evals": PATHS,
    "dependencies": TRUST,
    "exports": PATHS,
    "asset_roots": FREE,  # whoever reads them refuses those that lead out
    "check": FREE,
    "check.host_capabilities_path": PATHS,
    "check.host_capabilities_file": PATHS,
    "check.bundle_root": PATHS,
    "workspace": TRUST,
    "workspace.pipelines": PATHS,
    "fmt": FREE,
    "lint": FREE,
    "skills": FREE,
    "skills.paths": PATHS,
    "skills.signer_registry_url": TRUST,
    "skill": TRUST,
    "skill.source": PATHS,
    "mcp": TRUST,
    "hooks": TRUST,
    "llm": TRUST,
    "llm.providers": TRUST,
    "llm.default_provider": FREE,
    "llm.aliases": FREE,
    "llm.models": FREE,
    "llm.qc_defaults": FREE,
    "llm.inference": FREE,
    "llm.tiers": FREE,
    "llm.model_defaults": FREE,
    "capabilities": FREE,
    "agents": TRUST,
    "sessions": FREE,
    "sessions.store": STORE,
    "event_log": FREE,
    "event_log.store": STORE,
    "triggers": TRUST,
    "providers": TRUST,
    "personas": TRUST,
    "orchestrator": TRUST,
    "registry": TRUST,
    "connector_contract": TRUST,
}

#: What paths of a store's files and of its artifacts end in, behind the one in its URL.
_OF_STORES = ("", "-wal", "-shm", "-journal", "-artifacts", "/artifacts")

_YES = ("1", "true", "yes", "on")

IN_CI = f"in CI, set {VARIABLE}=1 or pass --trust"


class Manifest:
    """The manifest in ``root``, if there is one, and the links that lead the project's state out of it.

    Without ``env``, the variables of the user, nothing is trusted. Raises OSError and ValueError for a file
    that can't be read.
    """

    def __init__(self, files: Files, root: str, env: Callable[[str], str | None] = lambda name: None) -> None:
        self.root = files.real_path(root)
        self.path = os.path.join(root, MANIFEST)
        self._files = files
        self._env = env
        self._everything_is = (env(VARIABLE) or "").strip().lower() in _YES
        #: The parts that need trust, by the keys that lead to them.
        self.held: dict[Path, Any] = {}
        #: Where links lead that paths among them name, by these paths.
        self._led: dict[str, str] = {}
        # A pipe of that name would keep its reader waiting.
        text = files.read_text(self.path) if files.is_file(self.path) else ""
        self._read: dict[str, Any] = read_toml(text)
        self._free: dict[str, Any] = self._freed((), self._read, None)

    @cached_property
    def _links(self) -> dict[str, str]:
        return linked_state(self._files, self.root)

    @cached_property
    def parts(self) -> dict[Path, Any]:
        """What needs trust: `held`, and links by their paths."""
        return {**self.held, **{(path,): target for path, target in {**self._led, **self._links}.items()}}

    @cached_property
    def is_trusted(self) -> bool:
        """Whether the person has decided so, for this process or for these parts."""
        if self._everything_is:
            return True
        directory = decisions(self._env)
        if directory is None:
            return False
        try:
            text = self._files.read_text(os.path.join(directory, decision_name(self.root)))
        except (OSError, UnicodeDecodeError):
            return False
        return text == self.decision()

    @property
    def tables(self) -> dict[str, Any]:
        """What may take effect, as JSON would hold it."""
        return self._read if self.held and self.is_trusted else self._free

    def untrusted(self, *tables: str) -> list[str]:
        """Return which parts of some tables, or of all, have no effect because nobody trusts them.

        Links of the project's state count as the table `STATE`.
        """
        if self._everything_is:
            return []
        found = [path for path in self.held if not tables or path[0] in tables]
        if not tables or STATE in tables:
            found += [(path,) for path in self._links]
        return [] if not found or self.is_trusted else list(dict.fromkeys(map(_shown, found)))

    def refusal(self, *tables: str) -> ManifestError | None:
        """Return the error of a command that needs a part that isn't trusted, None if it needs none."""
        keys = self.untrusted(*tables)
        if not keys:
            return None
        from shlex import quote

        path = self.path if keys[0] not in self._links else os.path.join(self.root, keys[0])
        here = self._files.cwd()
        is_here = self._files.real_path(project_root(here, self._files) or here) == self.root
        command = "harnpy trust" if is_here else f"harnpy trust {quote(self.root)}"
        return ManifestError(f"{needs_trust(keys)}: look at {path}, and run `{command}`; {IN_CI}", path)

    def decision(self) -> str:
        """Return the text by which the user's configuration holds that these parts are trusted."""
        from hashlib import sha256

        text = compact_json([[list(path), value] for path, value in self.parts.items()])
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return compact_json({"project": self.root, "digest": digest}) + "\n"

    def _freed(self, path: Path, value: Any, kind: str | None) -> Any:
        """Return the part of a value that needs no trust, None if there is none; note the rest."""
        row = _row(path)
        kind = PARTS.get(row, kind)
        if isinstance(value, dict) and (not path or any(each.startswith(f"{row}.") for each in PARTS)):
            left = {name: self._freed((*path, name), item, kind) for name, item in value.items()}
            return {name: item for name, item in left.items() if item is not None}
        if kind == PATHS:
            return self._inside(path, value)
        if (kind == TRUST and value not in ({}, [])) or (kind == STORE and self._is_elsewhere(value)):
            self.held[path] = value
            return None
        return None if kind is None else value

    def _inside(self, path: Path, value: Any) -> Any:
        """Return a path, or the entries of a list or table of them, that stay in the project."""
        if isinstance(value, list):
            return [item for number, item in enumerate(value) if self._is_inside((*path, str(number)), item)]
        if isinstance(value, dict):
            return {name: item for name, item in value.items() if self._is_inside((*path, name), item)}
        return value if self._is_inside(path, value) else None

    def _is_inside(self, path: Path, value: Any) -> bool:
        place = value.get("path") if isinstance(value, dict) else value
        if isinstance(place, str) and self._leads_out(place):
            self.held[path] = value
            return False
        return True

    def _leads_out(self, place: str) -> bool:
        """Return True for a path out of the project; note where it leads if a link says so."""
        if not leads_out(self._files, self.root, place):
            return False
        path = os.path.join(self.root, place)
        if "\0" not in path and os.path.dirname(place) not in self._led:
            real = self._files.real_path(path)
            if real != os.path.normpath(path):
                self._led[place] = real
        return True

    def _is_elsewhere(self, url: Any) -> bool:
        """Return True for the URL of a store that is neither in memory nor in files of the project."""
        scheme, _, rest = str(url).partition(":")
        path = rest.partition("?")[0]
        if not isinstance(url, str) or scheme == "memory" or path == ":memory:":
            return False
        if scheme not in IN_FILES:
            return True
        leading = [suffix for suffix in _OF_STORES if self._leads_out(path + suffix)]
        return bool(leading)


def _row(path: Path) -> str:
    return ".".join(path).replace("-", "_")


def _shown(path: Path) -> str:
    """Return the row of `PARTS` that a part belongs to, or a link's path."""
    return ".".join(path[:2]) if _row(path[:2]) in PARTS else path[0]


def needs_trust(keys: list[str]) -> str:
    """Return what is said of parts that aren't trusted."""
    listed = ", ".join(keys[:6]) + (f" and {len(keys) - 6} more" if len(keys) > 6 else "")
    return f"{listed} {'take' if len(keys) > 1 else 'takes'} effect only once you trust the project"


def manifest_of(world: World, root: str) -> Manifest:
    """Return the manifest of a project as the user of the world trusts it."""
    return Manifest(world.files, root, world.environment.get)


#: How far up the search for a manifest goes, in directories.
_LEVELS = 16


def nearest_manifest(files: Files, path: str) -> str | None:
    """Return the manifest for a file or directory: the nearest one upwards, not beyond the repository."""
    start = os.path.normpath(os.path.join(files.cwd(), path))
    for directory in islice(upwards(start if files.is_dir(start) else os.path.dirname(start)), _LEVELS):
        manifest = os.path.join(directory, MANIFEST)
        if files.is_file(manifest):
            return manifest
        if files.exists(os.path.join(directory, ".git")):
            return None
    return None


class Manifests:
    """The manifests that somebody has met who looks for the nearest ones; each is read once.

    ``warn`` is called once with each problem of theirs.
    """

    def __init__(self, world: World, warn: Callable[[str], None]) -> None:
        self._world = world
        self._warn = warn
        self._warned: set[str] = set()
        self._read: dict[str, Manifest | None] = {}

    def table(self, name: str, path: str, required: bool = False) -> dict[str, Any]:
        """Return the table ``[name]`` that holds for a file or directory, its keys in snake case.

        It is often empty. Raises `ManifestError` if a ``required`` one isn't trusted.
        """
        nearest = nearest_manifest(self._world.files, path)
        if nearest is None:
            return {}
        if nearest not in self._read:
            self._read[nearest] = self._manifest(nearest)
        manifest = self._read[nearest]
        refusal = None if manifest is None or not required else manifest.refusal(name)
        if refusal is not None:
            raise refusal
        table = {} if manifest is None else manifest.tables.get(name)
        return (
            {key.replace("-", "_"): value for key, value in table.items()} if isinstance(table, dict) else {}
        )

    def warn(self, message: str) -> None:
        """Report a problem once, however many files it holds for."""
        if message not in self._warned:
            self._warned.add(message)
            self._warn(message)

    def _manifest(self, path: str) -> Manifest | None:
        """Return a manifest; None, and a warning, when it can't be read."""
        from harnpy.world.files import plain_reason

        try:
            return manifest_of(self._world, os.path.dirname(path))
        except (OSError, ValueError) as error:
            self.warn(f"failed to parse {path}: {plain_reason(error)}")
            return None


def require_state(world: World, base: str) -> None:
    """Raise `ManifestError` if a link that nobody trusts leads state out of ``base``."""
    refusal = manifest_of(world, base).refusal(STATE) if linked_state(world.files, base) else None
    if refusal is not None:
        raise refusal


def require_inside(world: World, base: str, path: str) -> str:
    """Return the path of what is kept for the project around ``base``.

    Raises `ManifestError` if a link that nobody trusts leads it out of the project.
    """
    root = project_root(base, world.files) or base
    try:
        is_outside = leads_out(world.files, world.files.real_path(root), path)
    except (OSError, ValueError):  # no file can be called so: whoever opens it says so
        return path
    if is_outside and "\0" not in path:
        for place in dict.fromkeys((root, base)):
            require_state(world, place)
    return path


def decisions(env: Callable[[str], str | None]) -> str | None:
    """Return the directory of what the user trusts, None for a user without a home."""
    places = (env("XDG_CONFIG_HOME") or "", os.path.join(env("HOME") or env("USERPROFILE") or "", ".config"))
    # A relative one would be the project's.
    absolute = filter(os.path.isabs, places)
    return next((os.path.join(place, "harn", "trust") for place in absolute), None)


def decision_name(root: str) -> str:
    """Return the name of the file of the decision on a project."""
    from hashlib import sha256

    return f"{sha256(root.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.json"
