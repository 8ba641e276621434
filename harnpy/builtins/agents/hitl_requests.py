"""One request to a person, from its first record to its answer as a value. Spec: 07 §14.6, "Exact rules".

It is recorded in the event log. Then a mock answers, or the host's `human`; otherwise the task waits.
"""

from __future__ import annotations

from harnpy.agent.people import (
    CANCELLED,
    KINDS,
    QUESTION,
    TIMED_OUT,
    Cancelled,
    HumanCancelled,
    Outcome,
    Request,
    TimedOut,
    approvals,
    history_entry,
    outcome,
    response_from,
)
from harnpy.agent.rules import permissions
from harnpy.builtins.bridge.contexts import context_of
from harnpy.builtins.bridge.live_event_log import log_of
from harnpy.builtins.language.host import HostMocks
from harnpy.builtins.language.schemas import HarnValues
from harnpy.builtins.language.types import to_float, to_int
from harnpy.eventlog.contract import LogEvent
from harnpy.faults import Fault
from harnpy.formats.json import as_data
from harnpy.formats.schema_checks import check
from harnpy.vm.errors import Interrupted, RuntimeFault, Thrown
from harnpy.vm.run.embedders import PASSING, close_unbegun, error_of
from harnpy.vm.run.tasks import is_cancelled
from harnpy.vm.values import Duration, display, type_name
from harnpy.vm.values.given import given
from harnpy.world.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harnpy.agent.runtime import Runtime
    from harnpy.formats.dicts import Dict
    from harnpy.formats.schemas import Schema
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# A person's answer as the value that the program asked for. Spec: 07 §14.6.


_BOOLS = {"true": True, "false": False}


def expected(vm: Vm, answer: Value, schema: Schema) -> Value:
    """Fill in the defaults of a canonical schema. Throws what is wrong with the answer."""
    value, errors = check(answer, schema, HarnValues(vm), defaults=True)
    if errors:
        raise Thrown("; ".join(errors))
    return value


def coerced(vm: Vm, answer: Value, default: Value) -> Value:
    """Return ``answer`` as a value of ``default``'s type, or the default itself if it doesn't fit."""
    kind = type_name(default)
    if kind in _CONVERSIONS:
        value = _CONVERSIONS[kind](vm, answer)
    else:
        value = answer if type_name(answer) == kind else None
    return default if value is None else value


def _int(vm: Vm, answer: Value) -> int | None:
    return None if type(answer) is bool else to_int(vm, answer)


def _float(vm: Vm, answer: Value) -> float | None:
    return to_float(vm, answer)


def _bool(vm: Vm, answer: Value) -> bool | None:
    if type(answer) is str:
        return _BOOLS.get(answer.lower())
    return answer if type(answer) is bool else None


def _string(vm: Vm, answer: Value) -> str:
    return display(answer)


def _duration(vm: Vm, answer: Value) -> Duration | None:
    if type(answer) is int:
        return Duration(answer)
    return answer if type(answer) is Duration else None


_CONVERSIONS: dict[str, Callable[[Vm, Value], Value]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "string": _string,
    "duration": _duration,
}


#: Seconds that a request stays open by default.
LONGEST = 24 * 60 * 60.0


def ask(
    vm: Vm,
    runtime: Runtime,
    kind: str,
    payload: Dict,
    seconds: float | None = LONGEST,
    tool: str | None = None,
) -> Value:
    """Send a request to a person and wait. Return the outcome's value. Raises `HitlError`.

    ``tool`` is the tool whose call it is about, if it is.
    """
    request = Request(
        f"hitl_{kind}_{vm.world.ids.new()}",
        kind,
        f"trace_{vm.world.ids.new()}",
        rfc3339(vm.world.clock.now()),
        as_data(payload),
    )
    return _Inquiry(vm, runtime, request, seconds, tool).run()


def _of_workflow(vm: Vm, request: Request) -> Dict:
    """Return what a request's record says about its workflow run, which also records a question."""
    workflow = context_of(vm).workflow
    if workflow is None:
        return {}
    if request.kind == QUESTION:
        workflow.asked(
            {
                "request_id": request.id,
                "prompt": request.prompt or "",
                "agent": request.agent,
                "trace_id": request.trace_id,
                "asked_at": request.requested_at,
            }
        )
    return {"run_id": workflow.run_id}


class _Inquiry:
    """``seconds`` is how long it may take, None for no limit."""

    def __init__(
        self, vm: Vm, runtime: Runtime, request: Request, seconds: float | None, tool: str | None
    ) -> None:
        self.vm = vm
        self.runtime = runtime
        self.tool = tool
        self.session_id = runtime.sessions.current_id()
        self.request = request
        self.is_patient = seconds in (None, LONGEST)
        self.until = None if seconds is None else vm.world.clock.monotonic() + seconds
        self.responses: list[Dict] = []

    def run(self) -> Value:
        record = self.request.record() | _of_workflow(self.vm, self.request)
        self.record(KINDS[self.request.kind].asked, record)
        self.keep()
        self.tell(permissions.request_facts(self.request, self.session_id or "", self.tool))
        try:
            ending = self.ending()
        except TimedOut:
            self.record(TIMED_OUT, {})
            self.keep(TIMED_OUT)
            self.tell(permissions.cancellation_facts(self.request, self.tool, "timed out"))
            raise
        except BaseException as error:
            # Also when the task is aborted: nobody would receive the answer.
            self.record(CANCELLED, {})
            self.keep(CANCELLED)
            self.tell(permissions.cancellation_facts(self.request, self.tool, str(error) or "cancelled"))
            if isinstance(error, HumanCancelled):
                raise Cancelled(self.request, str(error) or None) from None
            if isinstance(error, Interrupted) and is_cancelled(self.vm.tasks):
                raise Cancelled(self.request, None) from error
            raise
        self.keep()
        if ending.error:
            self.tell(permissions.denial_facts(self.request, str(ending.error), self.responses))
            raise ending.error
        self.tell(permissions.answer_facts(self.request, as_data(ending.value), self.responses))
        return ending.value

    def ending(self) -> Outcome:
        self.use_mock()
        ending = outcome(self.request, self.responses)
        while ending is None and self.ask_host():
            ending = outcome(self.request, self.responses)
        while ending is None:
            self.wait()
        return ending

    # Answers.

    def use_mock(self) -> None:
        params = {**self.request.payload, "request_id": self.request.id}
        mocked = self.vm.state(HostMocks).answer("hitl", self.request.kind, params)
        if mocked:
            self.take(mocked[0], f"mocked HITL {self.request.kind} response")

    def ask_host(self) -> bool:
        """Ask the host's person. Return whether that advanced the request."""
        human = self.vm.world.people.ask
        if human is None:
            return False
        before = approvals(self.request, self.responses)
        approved_by = [response["reviewer"] for response in before]
        try:
            of_tool = {} if self.tool is None else {"tool": self.tool}
            answer = human({**self.request.record(), "approved_by": approved_by, **of_tool})
            if hasattr(answer, "__await__"):
                said = answer
                try:
                    answer = self.vm.tasks.await_coroutine(self.in_time(said))
                finally:
                    close_unbegun(said)
            answer = given(answer, "the result of `people.ask`")
        except (HumanCancelled, Fault, *PASSING):
            raise
        except Exception as error:
            raise error_of(error, "people.ask") from error
        if answer is None:
            return False
        self.take(answer, f"the host's HITL {self.request.kind} response")
        ended = outcome(self.request, self.responses) is not None
        return ended or len(approvals(self.request, self.responses)) > len(before)

    async def in_time(self, answer: Awaitable[Value]) -> Value:
        import asyncio

        try:
            return await asyncio.wait_for(answer, self.seconds_left())
        except TimeoutError:
            raise TimedOut(self.request) from None

    def take(self, given: Value, what: str) -> None:
        """Record responses: one, or a list of them."""
        responses = given if type(given) is list else [given]
        if not all(isinstance(response, dict) for response in responses):
            raise RuntimeFault(f"{what} must be a dict or list<dict>")
        for response in responses:
            taken = response_from(response, rfc3339(self.vm.world.clock.now()))
            self.responses.append(taken)
            self.record(KINDS[self.request.kind].answered, taken)

    # Waiting.

    def wait(self) -> None:
        """Suspend the task until its time is over: nobody answers."""
        left = self.seconds_left()
        if left is not None and left <= 0:
            raise TimedOut(self.request)
        if left is not None and not self.is_patient:
            self.vm.tasks.sleep(left)
            return
        kind, prompt = self.request.kind, self.request.prompt
        what = f"{kind} {self.request.id}" + (f' "{prompt}"' if prompt else "")
        remedy = f'Run with `harnpy run --attended`, or mock the answer: host_mock("hitl", "{kind}", …)'
        self.vm.tasks.wait_outside(what, remedy, self.until)

    def seconds_left(self) -> float | None:
        return None if self.until is None else self.until - self.vm.world.clock.monotonic()

    def keep(self, end: str | None = None) -> None:
        """Keep the request as it stands in the record of the run that asks, if one does."""
        workflow = context_of(self.vm).workflow
        if workflow is not None:
            workflow.hitl(history_entry(self.request, self.responses, end))

    def tell(self, facts: permissions.Facts) -> None:
        """Record facts in the log of the session that asks, if one does."""
        if self.session_id is not None:
            self.runtime.record(self.session_id, facts)

    def record(self, name: str, payload: Dict) -> None:
        request = self.request
        headers = {"request_id": request.id, "trace_id": request.trace_id}
        data = as_data({"request_id": request.id, **payload})
        log_of(self.vm).append(KINDS[request.kind].topic, LogEvent(name, data, headers))
