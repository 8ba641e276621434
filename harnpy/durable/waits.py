"""How a program whose run is durable waits for what happens outside: waitpoints, people's answers.

Such a wait is an effect: what it came to is recorded, and however often anybody looked is not. It stands in
the event log, where it keeps the deadline that it had at first. Spec: 10 §C18, §C19.1.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from harnpy.agent.people import ESCALATION, QUESTION, HumanCancelled
from harnpy.builtins.agents.waitpoints import LATEST
from harnpy.builtins.bridge.live_event_log import SOON
from harnpy.durable.journal import WAIT
from harnpy.eventlog.topics import StoreEventLog
from harnpy.eventlog.waitpoints import COMPLETED, Waitpoints
from harnpy.vm.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.durable.journal import Journal
    from harnpy.eventlog.waitpoints import Waiting, WaitResult
    from harnpy.storage.contract import Store
    from harnpy.vm.run.scheduler import Scheduler
    from harnpy.world import World

#: The reviewer of an answer that came without a name.
UNNAMED = "waitpoint"
#: What an answer is, if it is no record of one.
_ANSWERS = {QUESTION: "answer", ESCALATION: "accepted"}


class OutlastingWaits:
    """Waits on the event log in ``store``, which is None where the program's log goes with the process."""

    def __init__(
        self, journal: Journal, tasks: Scheduler, world: World, run_id: str, store: Callable[[], Store | None]
    ) -> None:
        self._journal = journal
        self._tasks = tasks
        self._world = world
        self._run_id = run_id
        self._store = store
        #: Called when a wait begins: with the waitpoints' ids, and what a request to people has there.
        self.told: Callable[[Sequence[str], dict[str, Any]], object] = lambda ids, metadata: None

    @property
    def last(self) -> bool:
        """Whether waits outlast the process."""
        return self._store() is not None

    def wait(self, waiting: Waiting) -> WaitResult | None:
        """Wait until it is over; None where that can't outlast the process."""
        store = self._store()
        if store is None:
            return None

        async def until_over() -> WaitResult:
            points = self._waitpoints(store)
            entered = points.enter(waiting.ids, wait_id=waiting.wait_id, all=waiting.all)
            return await self._over(entered, {})

        try:
            result: WaitResult = self._tasks.await_coroutine(self._journal.waited(WAIT, until_over))
        except Interrupted:
            if not self._tasks.current.cancel_requested:
                raise
            return waiting.interrupted()
        return result

    async def answer(self, request: dict[str, Any]) -> Any:
        """Wait until somebody answers a request: by completing the waitpoint of its id, with a number behind
        it where another has answered before. Raises `HumanCancelled`."""
        store = self._store()
        if store is None:
            return None
        before = len(request.get("approved_by") or ())
        id = f"{request['request_id']}-{before + 1}" if before else request["request_id"]
        points = self._waitpoints(store)
        of_tool = {"tool": request["tool"]} if request.get("tool") else {}
        metadata = {"kind": request["kind"], "request": request["payload"], **of_tool}
        points.create(id, metadata)
        wait = points.enter(id, wait_id=f"{self._run_id}:{id}", run_id=self._run_id)
        result = await self._over(wait, metadata)
        point = result.waitpoints[0]
        if result.status != COMPLETED:
            raise HumanCancelled(point.reason or "")
        if isinstance(point.value, list):
            return point.value
        # Without a name an approval wouldn't count, and the run would wait for ever.
        by = point.completed_by or UNNAMED
        if isinstance(point.value, dict):
            return {**point.value, "reviewer": point.value.get("reviewer") or by}
        named = _ANSWERS.get(request["kind"], "approved")
        return {named: point.value, "reviewer": by}

    def _waitpoints(self, store: Store) -> Waitpoints:
        now, new_id = self._world.clock.now, self._world.ids.new
        return Waitpoints(StoreEventLog(store, now=now), now=now, new_id=new_id)

    async def _over(self, waiting: Waiting, metadata: dict[str, Any]) -> WaitResult:
        begin, is_told = self._world.clock.monotonic(), False
        while (result := waiting.look()) is None:
            if not is_told:
                is_told = True
                self.told(waiting.ids, metadata)
            passed = self._world.clock.monotonic() - begin
            left = waiting.seconds_left()
            pause = min(max(SOON, passed / 10), LATEST)
            await asyncio.sleep(pause if left is None else min(pause, left))
        return result
