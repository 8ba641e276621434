"""Where sessions are kept, as the environment and the project say. Spec: 10 §C6, §C9.

`$HARN_SESSION_STORE`, else ``[sessions] store`` of the project's `harn.toml`, else a file of the project's
state. A path in a variable counts from the working directory, one in a manifest from the manifest.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, NamedTuple

from harnpy.project import STATE_VARIABLE, project_root, state_directory
from harnpy.reading.kinds import boolean, string
from harnpy.storage.manifest import manifest_section, placed

if TYPE_CHECKING:
    from harnpy.world import World

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
    """Return what holds in the working directory. Raises `ManifestError` for an unusable manifest."""
    here = world.files.cwd()
    root = project_root(here, world.files)
    section = manifest_section(world.files, root, "sessions", _KNOWN, "where sessions are kept")
    store, durable = section.get("store"), section.get("durable", False)
    variable = world.environment.get(VARIABLE)
    if variable:
        return StoreSettings(placed(variable, here), durable)
    if store is not None and root is not None:
        return StoreSettings(placed(store, root), durable)
    state = state_directory(root or here, world.environment.get(STATE_VARIABLE))
    return StoreSettings(f"sqlite:{os.path.join(state, 'sessions.db')}", durable)
