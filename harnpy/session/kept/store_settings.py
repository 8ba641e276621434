"""Where sessions are kept, as the environment and the project say. Spec: 10 §C6, §C9.

`$HARN_SESSION_STORE`, else ``[sessions] store`` of the project's `harn.toml`, else a file of the project's
state. A path in a variable counts from the working directory, one in a manifest from the manifest.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, NamedTuple

from harnpy.project import MANIFEST, STATE_VARIABLE, ManifestError, project_root, state_directory
from harnpy.reading.kinds import boolean, string
from harnpy.text.spell import nearest

if TYPE_CHECKING:
    from harnpy.reading.kinds import Kind
    from harnpy.world import World

VARIABLE = "HARN_SESSION_STORE"

#: Stores whose URL is a path.
_PATHS = ("sqlite", "jsonl")


class StoreSettings(NamedTuple):
    """``url`` is the default store's; with ``durable`` every session that is opened is kept there."""

    url: str
    durable: bool = False


def store_settings(world: World) -> StoreSettings:
    """Return what holds in the working directory. Raises `ManifestError` for an unusable manifest."""
    here = world.files.cwd()
    root = project_root(here, world.files)
    store, durable = (None, False) if root is None else _of_manifest(world, os.path.join(root, MANIFEST))
    variable = world.environment.get(VARIABLE)
    if variable:
        return StoreSettings(placed(variable, here), durable)
    if store is not None and root is not None:
        return StoreSettings(placed(store, root), durable)
    state = state_directory(root or here, world.environment.get(STATE_VARIABLE))
    return StoreSettings(f"sqlite:{os.path.join(state, 'sessions.db')}", durable)


def placed(url: str, directory: str) -> str:
    """Return the URL with a path that counts from ``directory`` made absolute."""
    scheme, _, path = url.partition(":")
    if scheme not in _PATHS or path.startswith(":"):
        return url
    return f"{scheme}:{os.path.join(directory, path)}"


def _of_manifest(world: World, path: str) -> tuple[str | None, bool]:
    """Return the store and whether sessions are durable, as the manifest at ``path`` says."""
    from harnpy.text.toml.reader import parse_toml

    try:
        text = world.files.read_text(path)
        section = parse_toml(text).get("sessions", {}) if "sessions" in text else {}
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ManifestError(f"failed to read where sessions are kept: {reason}", path) from None
    if not isinstance(section, dict):
        raise ManifestError("`sessions` must be a table", path)
    for key, value in section.items():
        _check(key, value, path)
    return section.get("store"), section.get("durable", False)


def _check(key: str, value: object, path: str) -> None:
    known: dict[str, tuple[Kind, str]] = {
        "store": (string, 'e.g. store = "sqlite:.harn/sessions.db"'),
        "durable": (boolean, "durable = true keeps every session that is opened"),
    }
    if key not in known:
        near = nearest(key, known, limit=3)
        hint = f"did you mean `{near}`?" if near else f"known are {', '.join(known)}"
        raise ManifestError(f"`[sessions]` has no key `{key}`", path, hint)
    kind, example = known[key]
    problem = kind(value)
    if problem is not None:
        raise ManifestError(f"`{key}` of `[sessions]` {problem}", path, example)
