"""A sub-agent as a worker's job. Spec: 07 §10.2, §11.2; 08 §13.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.subagents import CALLER, NAME, make_sub_agent, new_session_id
from harnpy.agent.workers.carry import FORK, RESET, carried_policies, forked, read_carry
from harnpy.agent.workers.requested import read_execution, read_request
from harnpy.agent.workers.worker import SUB_AGENT, Outcome

if TYPE_CHECKING:
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.subagents import SubAgent
    from harnpy.agent.workers.worker import Worker
    from harnpy.agent.workers.workers import Workers


def delegate(runtime: Runtime, workers: Workers, task: str, given: Any) -> Worker:
    """Start a worker that does what `sub_agent_run` with the options ``given`` would.

    Raises `MisuseError` and `OptionError` for options that make no sub-agent or no worker.
    """
    options = runtime.models.options(given)
    carry = options.value("carry")
    return workers.spawn(
        SUB_AGENT,
        task,
        name=options.string("name", NAME) or NAME,
        config={"task": task, "options": given},
        request=read_request(task, options.string("system"), options.given),
        carry=read_carry(carry, CALLER),
        policies=carried_policies(carry, CALLER),
        execution=read_execution(options.value("execution"), CALLER),
        audit=options.value("audit"),
        caller=CALLER,
    )


class SubAgentJob:
    """The first task's child is made with the job, so that it sees its parent as it is now."""

    def __init__(self, runtime: Runtime, worker: Worker) -> None:
        self._runtime = runtime
        self._options: Any = worker.config.get("options")
        self._first: SubAgent | None = None
        if worker.session_id is None:
            self._first = make_sub_agent(runtime, worker.task, self._options)
            self.session_id = self._first.session_id
        else:
            self.session_id = worker.session_id

    def run(self, worker: Worker) -> Outcome:
        former = self.session_id
        envelope = self._child(worker).run()
        transcript, artifacts = envelope["transcript"], envelope["artifacts"]
        if transcript is not None and self.session_id != former and worker.carry.transcript_mode == FORK:
            transcript = forked({**transcript, "id": former}, self.session_id)
            envelope = {**envelope, "transcript": transcript}
        return Outcome(envelope, transcript, artifacts)

    def _child(self, worker: Worker) -> SubAgent:
        child, self._first = self._first, None
        if child is None or worker.restarted:
            self._continue(worker)
            options = {**(self._options or {}), "session_id": self.session_id}
            child = make_sub_agent(self._runtime, worker.task, options)
        child.detached = True
        return child

    def _continue(self, worker: Worker) -> None:
        """Make sure that the session exists which the next child continues."""
        sessions, mode = self._runtime.sessions, worker.carry.transcript_mode
        former = self.session_id
        if mode != RESET and not sessions.exists(former):
            sessions.open(former)
            if worker.transcript is not None:
                sessions.store_transcript(former, worker.transcript)
        if mode in (FORK, RESET):
            self.session_id = new_session_id(self._runtime)
        if mode == FORK:
            sessions.fork(former, self.session_id)
        elif mode == RESET:
            sessions.open(self.session_id)
