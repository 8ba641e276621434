"""Where events are kept, as the environment and the project say. Spec: 10 §C22.

The ``HARN_EVENT_LOG_…`` variables, else ``[event_log] store`` of the project's `harn.toml`.
``HARN_EVENT_LOG_DIR`` alone says nothing: it is where sessions write their agent events (08 §1.7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.eventlog.contract import QUEUE_DEPTH
from harnpy.eventlog.opening import BACKEND, SQLITE, EventLogConfig
from harnpy.project import project_root
from harnpy.reading.kinds import string
from harnpy.storage.manifest import manifest_section, placed

if TYPE_CHECKING:
    from harnpy.world import World

_KNOWN = {"store": (string, 'e.g. store = "sqlite:.harn/events.sqlite"')}


class EventLogSettings(NamedTuple):
    """``url`` is the store's."""

    url: str
    queue_depth: int = QUEUE_DEPTH


def event_log_settings(world: World) -> EventLogSettings | None:
    """Return what is set for the working directory, None when nothing is.

    Raises `ManifestError` for an unusable manifest, `ConfigError` for an unknown backend.
    """
    root = project_root(world.files.cwd(), world.files)
    section = manifest_section(world.files, root, "event_log", _KNOWN, "where events are kept")
    if any(world.environment.get(name) for name in (BACKEND, SQLITE)):
        return usual_settings(world)
    if root is not None and "store" in section:
        return EventLogSettings(placed(section["store"], root))
    return None


def usual_settings(world: World) -> EventLogSettings:
    """Return where events are kept by default, for those who need to keep them."""
    here = world.files.cwd()
    config = EventLogConfig.for_base_dir(project_root(here, world.files) or here, world.environment)
    return EventLogSettings(config.url, config.queue_depth)
