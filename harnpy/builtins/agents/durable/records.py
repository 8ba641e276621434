"""What runs were: run logs and episodes. Spec: 10 §A1.16, §C9, §C10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.durable.errors import invalid
from harnpy.builtins.bridge.durable.verbs import builtin
from harnpy.session.trajectory.episode import distill
from harnpy.session.trajectory.run_log import export_run
from harnpy.session.trajectory.run_tree import export_run_tree

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call

    Dict = dict[str, Any]


@builtin("__session_run_log(id: string, opts?: dict) -> dict", "tree?: bool")
def run_log(call: Call, id: str, opts: Dict) -> Dict:
    """What a session did, answer by answer; with `tree` its children, too."""
    session = call.session(id)
    run = export_run_tree(session, call.runtime.get) if opts.get("tree") else export_run(session)
    return run.data()


@builtin("__session_episode(id: string, opts?: dict) -> dict", "save?: bool")
def episode(call: Call, id: str, opts: Dict) -> Dict:
    """The episode of a session's run, which is kept if that is asked for."""
    found = distill(export_run(call.session(id)), ids=call.vm.world.ids)
    if opts.get("save"):
        call.runtime.save_episode(found)
    return found.data()


@builtin("__session_episodes(id: string, opts?: dict) -> list")
def episodes(call: Call, id: str, opts: Dict) -> list[Dict]:
    """The episodes of a session that were kept, oldest first."""
    call.session(id)  # there is one
    return [episode.data() for episode in call.runtime.episodes(id)]


@builtin("__session_search_episodes(query: string, limit?: int, opts?: dict) -> list")
def search_episodes(call: Call, query: str, limit: int | None, opts: Dict) -> list[Dict]:
    """The episodes that say every term of a query, the newest run first."""
    if limit is not None and limit < 1:
        raise invalid(f"{call.name}: `limit` must be at least 1")
    found = call.runtime.search_episodes(query, 50 if limit is None else limit)
    return [episode.data() for episode in found]
