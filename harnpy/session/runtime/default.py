"""The runtime of the default store. Spec: 10 §C2, §C6."""

from __future__ import annotations

from typing import Any

from harnpy.session.kept.store_settings import store_settings
from harnpy.session.runtime.runtime import SessionRuntime
from harnpy.world import World


def runtime(url: str | None = None, **options: Any) -> SessionRuntime:
    """Return the runtime of the store at ``url``.

    Without one it is `$HARN_SESSION_STORE`, else the project's, else ``sqlite:.harn/sessions.db``.
    ``options``: as `SessionRuntime`'s.
    """
    return SessionRuntime(url or store_settings(World()).url, **options)
