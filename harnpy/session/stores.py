"""The stores that one Vm's sessions are kept in, as its rules and the project say.

Spec: 10 §C6, §C9; 07 §8.5.
"""

from __future__ import annotations

import os.path
import sys
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from weakref import finalize

from harnpy.formats.dicts import boolean, string
from harnpy.formats.manifest import require_state
from harnpy.project import IN_FILES, STATE_VARIABLE, project_root, state_directory
from harnpy.session.errors import InvalidArgument
from harnpy.storage.opening import manifest_section, placed, without_ambient
from harnpy.world.effects import NETWORK, STATE, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.storage.contract import Store
    from harnpy.world import World

# Where sessions are kept, as the environment and the project say. Spec: 10 §C6, §C9.
#
# `$HARN_SESSION_STORE`, else ``[sessions] store`` of the project's `harn.toml`, else a file of the project's
# state. A path in a variable counts from the working directory, one in a manifest from the manifest.


VARIABLE = "HARN_SESSION_STORE"

_KNOWN = {
    "store": (string, 'e.g. store = "sqlite:.harn/sessions.db"'),
    "durable": (boolean, "durable = true keeps every session that is opened"),
}


class StoreSettings(NamedTuple):
    """``url`` is the default store's; with ``durable`` every session that is opened is kept there."""

    url: str
    durable: bool = False


def store_settings(world: World) -> StoreSettings:
    """Return what holds in the working directory.

    Raises `ManifestError` for an unusable manifest, and for a place that nobody trusts.
    """
    here = world.files.cwd()
    root = project_root(here, world.files)
    section, refusal = manifest_section(world, root, "sessions", _KNOWN, "where sessions are kept")
    store, durable = section.get("store"), section.get("durable", False)
    variable = world.environment.get(VARIABLE)
    if variable:
        return StoreSettings(placed(variable, here), durable)
    if refusal is not None:
        raise refusal
    if store is not None and root is not None:
        return StoreSettings(placed(without_ambient(store), root), durable)
    override = world.environment.get(STATE_VARIABLE)
    if not override:
        require_state(world, root or here)
    return StoreSettings(
        f"sqlite:{os.path.join(state_directory(root or here, override), 'sessions.db')}", durable
    )


# The stores that one Vm's sessions are kept in. Spec: 10 §C6, §C9; rules of the Vm: 07 §8.5.


class Stores:
    """Each store is opened when a session first needs it, and stays open."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._open: dict[str, Store] = {}
        self.open: Callable[[str], Store] = _open_store
        #: Called with the URL of a database whenever a session needs it; raises where it may not be reached.
        self.reach: Callable[[str], object] = lambda url: None
        self._lent: Store | None = None
        #: At the latest when the process ends: a store may have acknowledged what isn't written yet.
        self.close = finalize(self, _close, self._open)

    @cached_property
    def settings(self) -> StoreSettings:
        """Return the settings of where sessions are stored by default, and whether all of them are."""
        return store_settings(self._world.unguarded)

    def lend(self, store: Store) -> None:
        """Keep every session in ``store``, which is somebody else's to close, unless it names another one."""
        self._lent = store
        self.settings = StoreSettings(store.url, durable=True)

    def usual(self) -> Store | None:
        """The store of a session that is opened without the option; None when it isn't kept."""
        return self.of(True) if self.settings.durable else None

    def of(self, option: Store | bool | str | None) -> Store | None:
        """The store that the option ``store`` of `agent_session_open` means; None: the session isn't kept."""
        if option is None:
            return self.usual()
        if option is False:
            return None
        if option is True and self._lent is not None:
            return self._lent
        if option is True:
            url = self.settings.url
            self._require(url, by_default=True)
        elif isinstance(option, str):
            url = placed(option, self._world.unguarded.files.cwd())
            bare = without_ambient(url)
            if bare != url and not self._world.environment.all():
                url = bare  # a database gets no variables that the program doesn't
            self._require(url, by_default=False)
        elif isinstance(option, int | float | list | dict):
            raise InvalidArgument("`store` must be a bool or a string")
        else:
            return option
        return self._opened(url)

    def _opened(self, url: str) -> Store:
        if self._lent is not None and url == self._lent.url:
            return self._lent
        if url not in self._open:
            self._open[url] = self.open(url)
        return self._open[url]

    def _require(self, url: str, *, by_default: bool) -> None:
        """Ask the rules whether a program may keep something there."""
        scheme, _, target = url.partition(":")
        path = target.partition("?")[0]
        if scheme == "memory" or path == ":memory:":
            return
        if scheme not in IN_FILES:
            from harnpy.storage.opening import shown

            self._world.require(NETWORK, shown(url))
            self.reach(url)
        elif by_default:
            self._world.require(STATE, path)
        else:
            self._world.require_place(WRITE, path)


def _open_store(url: str) -> Store:
    from harnpy.storage.opening import open_store

    return open_store(url)


def _close(stores: dict[str, Store]) -> None:
    for store in stores.values():
        if "harnpy.session.live" in sys.modules:  # else it has no leases
            from harnpy.session.live import release_leases

            release_leases(store)
        store.close()
    stores.clear()
