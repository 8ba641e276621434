"""The runtime of the default store, with a loop for definitions. Spec: 10 §C2, §C6."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harnpy.agent.factory.loops import LoopFactory
from harnpy.session.errors import InvalidArgument
from harnpy.session.runtime import SessionRuntime
from harnpy.session.stores import store_settings
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from harnpy.llm.providers import Provider


def runtime(
    url: str | None = None,
    *,
    agents: Any = None,
    providers: Mapping[str, Provider] | None = None,
    record: str | PathLike[str] | None = None,
    replay: str | PathLike[str] | None = None,
    **options: Any,
) -> SessionRuntime:
    """Return the runtime of the store at ``url``.

    Without one it is `$HARN_SESSION_STORE`, else the project's, else ``sqlite:.harn/sessions.db``. ``agents``
    is by default a `LoopFactory` with these ``providers``. ``options``: as `SessionRuntime`'s.

    ``record`` is a tape for what the runtime sees of the outside until it is closed, ``replay`` one that it
    sees again: no model is called then, no tool run, and no store opened (13 §4). Raises `InvalidArgument`
    for both, and for agents that are no `LoopFactory`; `TapeError` for what isn't a tape.
    """
    if agents is not None and providers is not None:
        raise InvalidArgument("runtime: pass `providers` to the LoopFactory that is `agents`")
    loops = LoopFactory(providers=providers) if agents is None else agents
    if record is None and replay is None:
        return SessionRuntime(url or store_settings(World()).url, agents=loops, **options)
    if record is not None and replay is not None:
        raise InvalidArgument("runtime: a run is recorded or replayed: pass `record` or `replay`")
    if not isinstance(loops, LoopFactory):
        raise InvalidArgument("runtime: a tape needs a LoopFactory as `agents`")
    taped_runtime = import_module("harnpy.tape.runtimes").taped_runtime  # it stands on all of harnpy
    made: SessionRuntime = taped_runtime(url, loops, record, replay, options)
    return made
