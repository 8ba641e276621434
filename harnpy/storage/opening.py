"""Opening a store by its URL, and what a project's `harn.toml` says about it. Spec: 10 §C6, §C22.

``memory:``, ``jsonl:<dir>``, ``sqlite:<file>``, ``postgresql://…``, each with options behind ``?``. A
store's module is imported when one is opened.
"""

from __future__ import annotations

import os.path
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.manifest import manifest_of
from harnpy.formats.suggestions import hint
from harnpy.project import IN_FILES, MANIFEST, ManifestError
from harnpy.storage.errors import StorageError
from harnpy.world.files import PRIVATE, SHARED, plain_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.formats.dicts import Kind
    from harnpy.storage.contract import Store
    from harnpy.storage.leases import Machine
    from harnpy.world import World

    Opener = Callable[["StoreUrl", Machine], Store]

_PASSWORD = re.compile(r"(://[^/@:\s]*:)[^/@\s]*@")
DURABILITIES = ("full", "relaxed", "async")


class StoreUrl(NamedTuple):
    """A URL taken apart; what stands behind ``?`` and isn't for harnpy stays in ``target``."""

    scheme: str
    target: str
    #: ``full``: each append is on the medium when it returns; ``relaxed``: a power cut may take the last
    #: ones; ``async``: appends are acknowledged from memory.
    durability: str = "full"
    #: Seconds to wait for a lock.
    timeout: float = 5.0
    #: Whether session ids are letters, digits, ``_`` and ``-`` only.
    strict_ids: bool = False
    #: Whether the user's group may read and write what the store makes.
    group: bool = False
    #: Whether a database may be given what the user keeps for it: variables, password files, services, keys.
    ambient: bool = True
    #: Whether a pooler sends the statements of a connection to any process of the server; None: we ask it.
    pooler: bool | None = None

    @property
    def modes(self) -> tuple[int, int]:
        """The rights of files and directories that the store makes."""
        return SHARED if self.group else PRIVATE

    def __str__(self) -> str:
        """The URL for people: without a password."""
        return shown(f"{self.scheme}:{self.target}")


def open_store(url: str, *, durability: str | None = None, machine: Machine | None = None) -> Store:
    """Open the store at ``url``, creating it when there is none. ``machine`` is for tests.

    ``durability`` takes the place of what the URL says of it: ``full``, ``relaxed`` or ``async``. Raises
    `StorageError` for a scheme or an option that doesn't exist, and whatever keeps the store from being
    opened.
    """
    from harnpy.storage.leases import Machine

    parsed = parse_url(url)
    if durability is not None:
        parsed = parsed._replace(durability=_durability("durability", durability))
    store = _OPENERS[parsed.scheme](parsed, Machine() if machine is None else machine)
    return deferred(store) if parsed.durability == "async" else store


def is_there(url: str) -> bool:
    """Return whether opening the store creates no file. Raises `StorageError`."""
    parsed = parse_url(url)
    return parsed.scheme not in IN_FILES or os.path.exists(parsed.target)


def deferred(store: Store) -> Store:
    """Return a store that acknowledges from memory what a thread writes to ``store``."""
    from harnpy.storage.deferred import DeferredStore

    return DeferredStore(store)


def register_store(scheme: str, opener: Opener) -> None:
    """Make `open_store` know one more scheme: ``opener(url, machine)`` opens a store of it."""
    _OPENERS[scheme] = opener


def parse_url(url: str) -> StoreUrl:
    """Take a store's URL apart. Raises `StorageError`."""
    scheme, colon, target = url.partition(":")
    scheme = "postgresql" if scheme == "postgres" else scheme
    if not colon or scheme not in _OPENERS:
        known = ", ".join(f"{name}:" for name in _OPENERS)
        raise StorageError(f"no store is called `{shown(url)}`: a store's URL begins with one of {known}")
    if "\0" in target:
        raise StorageError(f"no store is called `{shown(url)}`: a path or an address has no NUL character")
    target, _, query = target.partition("?")
    if not query:
        return StoreUrl(scheme, target)
    from urllib.parse import parse_qsl, urlencode

    options: list[tuple[str, str]] = []
    foreign: list[tuple[str, str]] = []
    for pair in parse_qsl(query, keep_blank_values=True):
        (options if pair[0] in _OPTIONS else foreign).append(pair)
    if foreign and scheme != "postgresql":
        name = foreign[0][0]
        raise StorageError(f"a store's URL has no option `{name}`: {hint(name, _OPTIONS)}")
    if foreign:
        target = f"{target}?{urlencode(foreign)}"
    return StoreUrl(scheme, target, **{name: _OPTIONS[name](name, text) for name, text in options})


def shown(url: str) -> str:
    """Return the URL without a password, wherever it holds one."""
    from harnpy.formats.secrets.masking import mask_secrets

    return mask_secrets(_PASSWORD.sub(r"\1***@", url))


def _durability(name: str, text: str) -> str:
    if text in DURABILITIES:
        return text
    raise StorageError(f"`{name}` of a store's URL is one of {', '.join(DURABILITIES)}, not `{text}`")


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise StorageError(f"`{name}` of a store's URL is a number of seconds, not `{text}`")
    return seconds


def _flag(name: str, text: str) -> bool:
    if text in ("0", "1"):
        return text == "1"
    raise StorageError(f"`{name}` of a store's URL is 0 or 1, not `{text}`")


_OPTIONS: dict[str, Callable[[str, str], Any]] = {
    "durability": _durability,
    "timeout": _seconds,
    "strict_ids": _flag,
    "group": _flag,
    "ambient": _flag,
    "pooler": _flag,
}


def _opener(module: str, name: str) -> Opener:
    """An opener of ours, whose module is imported by the first store of its kind."""

    def opened(url: StoreUrl, machine: Machine) -> Store:
        opener: Opener = getattr(import_module(f"harnpy.storage.{module}"), name)
        return opener(url, machine)

    return opened


#: The schemes that `open_store` knows. The one table of the process that `register_store` adds to.
_OPENERS: dict[str, Opener] = {
    "memory": _opener("memory", "MemoryStore"),
    "jsonl": _opener("jsonl.store", "JsonlStore"),
    "sqlite": _opener("sqlite", "SqliteStore"),
    "postgresql": _opener("postgres", "open_postgres"),
}


def placed(url: str, directory: str) -> str:
    """Return the URL with a path that counts from ``directory`` made absolute."""
    scheme, _, path = url.partition(":")
    if scheme not in IN_FILES or path.partition("?")[0] == ":memory:":
        return url
    return f"{scheme}:{os.path.join(directory, path)}"


def manifest_section(
    world: World, root: str | None, name: str, known: Mapping[str, tuple[Kind, str]], what: str
) -> tuple[dict[str, Any], ManifestError | None]:
    """Return the section ``name`` of the manifest in ``root``, {} without one, and why a part is missing.

    ``known`` are its keys, each with the kind of its value and an example. Raises `ManifestError`, which
    says that ``what`` can't be read, or which key is wrong. The one returned is for whoever needs the part
    that nobody trusts.
    """
    if root is None:
        return {}, None
    path = os.path.join(root, MANIFEST)
    try:
        if name not in world.files.read_text(path):
            return {}, None
        manifest = manifest_of(world, root)
    except (OSError, ValueError) as error:
        reason = plain_reason(error)
        raise ManifestError(f"failed to read {what}: {reason}", path) from None
    section = manifest.tables.get(name, {})
    if not isinstance(section, dict):
        raise ManifestError(f"`{name}` must be a table", path)
    for key, value in section.items():
        if key not in known:
            raise ManifestError(f"`[{name}]` has no key `{key}`", path, hint(key, known))
        kind, example = known[key]
        problem = kind(value)
        if problem is not None:
            raise ManifestError(f"`{key}` of `[{name}]` {problem}", path, example)
    return section, manifest.refusal(name)


def without_ambient(url: str) -> str:
    """Return the URL, for a database that gets no credentials but those in it, whatever it says itself."""
    if url.partition(":")[0] not in ("postgresql", "postgres"):
        return url
    return f"{url}{'&' if '?' in url else '?'}ambient=0"
