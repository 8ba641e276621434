"""Durable runs: an engine keeps each step of a job as it ends, so that the next process goes on there.

`open_engine` opens one; `contract` says what all of them do, `errors` how they fail. Spec: 10 §C19.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harnpy.formats.suggestions import hint
from harnpy.workflow.engines.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.storage.contract import Store
    from harnpy.workflow.engines.contract import Body, Engine

#: The module of each engine, which is imported when one is opened.
ENGINES = {"local": "LocalEngine", "dbos": "DbosEngine"}


def open_engine(
    name: str, store: str | Store, *, bodies: Mapping[str, Body] | None = None, **options: Any
) -> Engine:
    """Open the engine ``local`` or ``dbos`` on a store, given as its URL or opened.

    ``bodies`` do the jobs, by their kind; None: `harnpy.durable.bodies`, for graphs and programs. ``options``
    are the engine's own. Raises `RunError` for a name that isn't an engine's and for a missing extra,
    `StorageError` when the store can't be opened. Spec: 10 §C19.1.
    """
    if name not in ENGINES:
        raise RunError(f"unknown engine '{name}': {hint(name, ENGINES)}")
    if bodies is None:
        # What runs graphs and programs stands above this room, so it is looked up when somebody asks for it.
        url = store if isinstance(store, str) else store.url
        bodies = import_module("harnpy.durable").bodies(url)
    engine = getattr(import_module(f"{__name__}.{name}"), ENGINES[name])
    opened: Engine = engine(store, bodies, **options)
    return opened
