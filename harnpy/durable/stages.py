"""The stages of workflows in a durable run: each is a step, and its loop a turn of a stored session.

A step's output refers to transcripts: `{"$transcript": {session_id, turn, seq, end, state, visibility?}}` is
the one that the turn which began at event ``turn`` had at event ``seq``.

A call of a tool that a person has to approve waits for a waitpoint, where the host has nobody to ask: the
stage is left as it is (`Awaited`), and entered again when the run has what it waited for. Spec: 10 §C16.5,
§C19.1.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from harnpy.agent.factory.loops import asker
from harnpy.builtins.agents.agent_runtime import runtime_of, runtime_on
from harnpy.builtins.agents.tool_runtime import hooks_of
from harnpy.builtins.sessions.program_loops import sessions_of_turn
from harnpy.builtins.sessions.service import durable_of
from harnpy.session import events as kinds
from harnpy.session.agent_turn import Turn
from harnpy.session.conversation import AGENT
from harnpy.session.errors import LaneTimeout
from harnpy.session.lifecycle import TranscriptOrder, lifecycle_value
from harnpy.session.transcript import transcript
from harnpy.session.turn_conversation import TurnConversation
from harnpy.storage.errors import StorageError
from harnpy.workflow.execution.changes import digest
from harnpy.workflow.execution.stage import visible
from harnpy.workflow.records.record_shapes import plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from harnpy.agent.runtime import Runtime
    from harnpy.session.conversation import Conversation
    from harnpy.session.live import LiveSession
    from harnpy.session.open_sessions import Registry
    from harnpy.session.runtime import SessionRuntime
    from harnpy.session.transaction import Txn
    from harnpy.vm.vm import Vm

    Dict = dict[str, Any]
    Act = Callable[[Runtime, Turn, Conversation], Any]

_PLACE: Final = "$transcript"
_TRANSCRIPT: Final = "transcript"


class VmStages:
    """The stages of the workflows that a Vm runs: a `harnpy.agent.runtime.Stages`.

    ``step(key, work)`` is that of the run, ``url`` the store of the sessions. ``waits`` are the waits that
    have ended, by their waitpoints; None: people are asked as the host does. ``checked`` is called once a
    graph was compared with what has run.
    """

    def __init__(
        self,
        vm: Vm,
        step: Callable[[str, Callable[[], Any]], Any],
        url: str | None = None,
        *,
        run_id: str | None = None,
        recorded: Sequence[tuple[str, Dict]] = (),
        accepted: Collection[str] = (),
        waits: Mapping[str, Dict] | None = None,
        checked: Callable[[], None] | None = None,
    ) -> None:
        self.run_id = run_id
        self.recorded = recorded
        self.accepted = accepted
        self._vm = vm
        self._step = step
        self._url = url
        self.checked = checked
        self._waits = waits
        self._is_left = False
        #: How many stages work on a session, or wait for it.
        self._busy: Counter[str] = Counter()
        self._last: tuple[Any, Dict] | None = None
        #: Where the transcripts are that this process has made, by their sessions; the last one last.
        self._places: dict[str, list[Dict]] = {}

    @property
    def _sessions(self) -> SessionRuntime:
        return durable_of(self._vm).runtime(self._url)

    def step(self, key: str, work: Callable[[], Dict]) -> Dict:
        made = []

        def packed() -> Any:
            made.append(plain_json(work()))
            return self._packed(made[-1])

        try:
            output = self._step(key, packed)
        except _StoreFailed as failed:
            raise failed.error from None
        found: Dict = made[-1] if made else self._unpacked(output)
        return found

    def turn(self, session_id: str, key: str, act: Act) -> Any:
        action = _StageTurn(self, act)
        try:
            self._open(session_id)
            live = self._taken(session_id, action, key)
        except StorageError as error:
            raise _StoreFailed(error) from error
        for place in self._places.get(session_id, ())[-1:]:
            place["end"] = live.version
        return action.result

    def _taken(self, session_id: str, action: _StageTurn, key: str) -> LiveSession:
        """Take the turn. Branches of a map may share a session: each waits for the others, however long."""
        while True:
            caller = durable_of(self._vm).caller()
            try:
                self._busy[session_id] += 1
                return self._sessions.take_turn(session_id, action, key, caller=caller)
            except LaneTimeout:
                if action.has_begun or self._busy[session_id] < 2:
                    raise
            finally:
                self._busy[session_id] -= 1

    def prepare(self, session_id: str) -> None:
        registry = runtime_of(self._vm).sessions
        if not registry.exists(session_id) and self._sessions.exists(session_id):
            registry.get_or_open(session_id, self._sessions.store)

    def act(self, act: Act, txn: Txn) -> Any:
        """Do what a stage does, as a turn of a session."""
        vm, turn = self._vm, Turn(txn, AGENT)
        txn.resizing = None  # stages compact as their nodes say
        turn.begin([], txn.key, is_looped=True)
        registry = sessions_of_turn(vm, txn)
        conversation = _StageConversation(turn, registry, self._places.setdefault(txn.id, []))
        txn.on_appended = conversation.on_appended
        runtime = runtime_on(vm, registry, hooks_of(vm))
        if self._waits is not None and txn.key is not None:
            runtime.ask = asker(runtime, txn, vm.world.people.ask or self._person(txn.key))
        try:
            result = act(runtime, turn, conversation)
        except BaseException as error:
            txn.stays_open = self._is_left or isinstance(error, StorageError)
            raise
        finally:
            txn.on_appended = None
        txn.stays_open = True  # it has only to be saved
        turn.finish()
        return result

    def _person(self, key: str) -> Callable[[Dict], Dict]:
        """Return what answers the requests of a turn with what their waitpoints were completed with."""
        asked: Counter[str] = Counter()

        def answer(request: Dict) -> Dict:
            details = digest(request["payload"])
            asked[details] += 1
            point = f"{key}:{request['kind']}:{details}:{asked[details]}".replace(":", ".")
            assert self._waits is not None
            if point not in self._waits:
                self._is_left = True
                raise Awaited(point)
            return _response(self._waits[point])

        return answer

    # Sessions of a run that was forked go on from where those of the former run stood.

    def _open(self, id: str) -> None:
        sessions = self._sessions
        former = None if sessions.exists(id) else self._former(id)
        if former is None:
            sessions.open(id, create=True)
        else:
            sessions.get(former["session_id"]).fork(id, at=former["end"], reason="the run was forked")

    def _former(self, id: str) -> Dict | None:
        """Return where a stage of the run that this one was forked from has left its session."""
        if self.run_id is None or self.run_id not in id:
            return None
        own = id.replace(self.run_id, "")
        for _, output in reversed(self.recorded):
            place = output["stage"]["transcript"] if "stage" in output else None
            place = place and place.get(_PLACE)
            if place and (run := _run_of(output)) and place["session_id"].replace(run, "") == own:
                found: Dict = place
                return found
        return None

    # Outputs of steps, with references for transcripts.

    def _packed(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._packed(item) for item in value]
        if not isinstance(value, dict):
            return value
        place = self._place_of(value) if value.get("_type") == _TRANSCRIPT else None
        if place is not None:
            return {_PLACE: place}
        return {key: self._packed(item) for key, item in value.items()}

    def _place_of(self, shown: Dict) -> Dict | None:
        for place in reversed(self._places.get(shown["id"], ())):
            whole = self._at(place)
            if shown == whole:
                return place
            seen = {event.get("visibility") for event in shown["events"]}
            for visibility in seen if len(seen) == 1 else ():
                if visibility is not None and shown == plain_json(visible(whole, visibility)):
                    return {**place, "visibility": visibility}
        return None

    def _unpacked(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._unpacked(item) for item in value]
        if not isinstance(value, dict):
            return value
        place = value.get(_PLACE)
        if place is None:
            return {key: self._unpacked(item) for key, item in value.items()}
        whole = self._at(place)
        return plain_json(visible(whole, place["visibility"])) if "visibility" in place else whole

    def _at(self, place: Dict) -> Dict:
        """Return a whole transcript; the last one is asked for several times."""
        key = place["session_id"], place["turn"], place["seq"], place["state"]
        if self._last is None or self._last[0] != key:
            made: Dict = plain_json(_transcript_at(self._sessions.get(place["session_id"]), place))
            self._last = key, made
        return self._last[1]


class Awaited(BaseException):
    """A stage can't go on before a waitpoint is completed. Nobody in it handles that."""

    def __init__(self, waitpoint: str) -> None:
        super().__init__(f"waits for waitpoint {waitpoint}")
        self.waitpoint = waitpoint


class _StoreFailed(BaseException):
    """The store has failed, and so has the run, not the stage: it goes on when the store does."""

    def __init__(self, error: StorageError) -> None:
        super().__init__(str(error))
        self.error = error


def _response(wait: Dict) -> Dict:
    """Return a person's response from the result of a wait: what the waitpoint was completed with is a bool,
    or a response, `{approved, reviewer?, reason?}`."""
    points = wait.get("waitpoints") or [{}]
    value, by = points[0].get("value"), points[0].get("by") or "waitpoint"
    if wait["status"] != "completed":
        return {"approved": False, "reason": points[0].get("reason") or wait["status"]}
    return (
        {"reviewer": by, **value} if isinstance(value, dict) else {"reviewer": by, "approved": value is True}
    )


def _run_of(output: Dict) -> str:
    """Return the id of the run that a stage is of."""
    stage = output["stage"]
    return str(stage["id"]).partition(f":{stage['node_id']}:")[0]


class _StageTurn:
    """The action of a session that a stage is."""

    name: ClassVar[str] = "stage"
    mode: ClassVar[str] = "stream"

    def __init__(self, stages: VmStages, act: Act) -> None:
        self._stages = stages
        self._act = act
        self.result: Any = None
        self.has_begun = False

    def __call__(self, txn: Txn) -> None:
        self.has_begun = True
        self.result = self._stages.act(self._act, txn)


class _StageConversation(TurnConversation):
    """The conversation of a stage. It notes in ``places`` where its transcripts are."""

    can_shrink = False

    def __init__(self, turn: Turn, sessions: Registry, places: list[Dict]) -> None:
        super().__init__(turn, sessions)
        self._places = places

    def make_room(self) -> None:
        """Do nothing: the node says when."""

    def _store_end(self) -> None:
        self.store()  # its transcript is read from the log

    def transcript(self, state: str) -> Dict:
        self.store()
        session = self._turn.session
        place = {"session_id": session.id, "turn": self._turn.events[0].seq, "seq": session.version}
        self._places.append({**place, "end": session.version, "state": state})
        return _transcript_at(session.live, self._places[-1])


def _transcript_at(session: LiveSession, place: Dict) -> Dict:
    """Return the transcript of a turn as a loop's result has it, from the log alone."""
    turn, seq = place["turn"], place["seq"]
    with session.lock:
        window = session.view.at(seq).window
        log = session.read(after=turn - 1, until=seq)
    order: TranscriptOrder[Any] = TranscriptOrder()
    noted: list[Any] = []
    for event in log:
        is_own = event.seq == turn or (event.turn is not None and event.turn.seq == turn)
        if is_own and event.type != kinds.MESSAGE_ADDED:
            noted += order.add(event.type, event.body, event)
    messages, events = window.plain()
    events = [*events, *window.live_events(), *map(lifecycle_value, noted)]
    return transcript(session.id, messages, events, [], summary=window.summary, state=place["state"])
