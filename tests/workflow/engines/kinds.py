"""The engines that the contract is tested on, and how they are opened. Processes of tests import it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harnpy.workflow.engines import open_engine as opened
from harnpy.workflow.engines.contract import Body, Engine
from tests.workflow.engines.bodies import BODIES


class Kind(NamedTuple):
    """An engine on a store. ``url`` has a place for the directory of the test, or for the server."""

    engine: str
    url: str
    #: Options of an engine whose leases end soon, for workers that stand still.
    hasty: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}


KINDS = {
    "local-sqlite": Kind("local", "sqlite:{directory}/runs.db?durability=relaxed", {"ttl": 0.5}),
    "local-postgres": Kind("local", "{postgres}", {"ttl": 0.5}),
    "dbos-postgres": Kind("dbos", "{postgres}", {"ttl": 0.5}, {"poll": 0.05}),
    "dbos-sqlite": Kind(
        "dbos", "sqlite:{directory}/runs.db?durability=relaxed", {"ttl": 0.5}, {"poll": 0.05}
    ),
}


def open_engine(
    kind: str, url: str, bodies: Mapping[str, Body] = BODIES, *, hasty: bool = False, **options: Any
) -> Engine:
    """Open an engine of that kind on the store at ``url``."""
    found = KINDS[kind]
    more = {**found.options, **(found.hasty if hasty else {}), **options}
    return opened(found.engine, url, bodies=bodies, **more)
