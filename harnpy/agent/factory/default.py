"""The runtime of the default store, with a loop for definitions. Spec: 10 §C2, §C6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.factory.loops import LoopFactory
from harnpy.session.errors import InvalidArgument
from harnpy.session.runtime import SessionRuntime
from harnpy.session.stores import store_settings
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.llm.providers import Provider


def runtime(
    url: str | None = None,
    *,
    agents: Any = None,
    providers: Mapping[str, Provider] | None = None,
    **options: Any,
) -> SessionRuntime:
    """Return the runtime of the store at ``url``.

    Without one it is `$HARN_SESSION_STORE`, else the project's, else ``sqlite:.harn/sessions.db``. ``agents``
    is by default a `LoopFactory` with these ``providers``. ``options``: as `SessionRuntime`'s.
    """
    if agents is not None and providers is not None:
        raise InvalidArgument("runtime: pass `providers` to the LoopFactory that is `agents`")
    loops = LoopFactory(providers=providers) if agents is None else agents
    return SessionRuntime(url or store_settings(World()).url, agents=loops, **options)
