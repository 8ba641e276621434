"""A support desk: customers write to an agent that knows the parcels, and people take over when it is stuck.

    python examples/support_desk.py                       # in memory, the mock model answers
    python examples/support_desk.py sqlite:desk.db openai/gpt-4o-mini     # kept in a file, a real model

Each customer has one session, each turn is saved atomically, and a token identifies the caller.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from harnpy import AgentDef, LoopFactory, tool
from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.bearer import BearerSessions, CreateSession
from harnpy.session import HookStack, InvalidTransition, SessionQuery, SessionRuntime, actions, hooks

PARCELS = {42: "at the station, arrives tomorrow", 43: "lost"}


@tool(read_only=True)
def parcel(number: int) -> str:
    """Where a parcel is.

    Args:
        number: The parcel's number.
    """
    return PARCELS.get(number, "unknown")


class Desk:
    """The service: what a web application would call with the token of each request."""

    def __init__(self, store: str, model: str) -> None:
        self.loops = LoopFactory(tools=[parcel])
        self.agent = AgentDef("desk", system_prompt="Answer in one sentence.", model=model, tools=("parcel",))
        self.runtime = SessionRuntime(
            store,
            agents=self.loops,
            hooks=HookStack().with_(hooks.require_active),  # while a person talks, the agent doesn't
            settings={"max_length": 20_000},  # what the model is sent; the history stays whole
        )
        self.tokens = BearerSessions(StoreEventLog(self.runtime.store))

    def sign_in(self, customer: str) -> str:
        """Return the token that the customer's requests bring along, for a day."""
        if not self.runtime.exists(customer):
            self.runtime.create(self.agent, id=customer)
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        return str(self.tokens.create(CreateSession(customer, tomorrow)).id)

    def write(self, token: str, text: str, request_id: str) -> str:
        """Answer a message of whom the token belongs to; once, however often the request arrives."""
        caller = self.tokens.get(token)
        if caller is None:
            raise PermissionError("sign in first")
        return self.runtime.send(caller.principal, text, idempotency_key=request_id).text

    def take_over(self, customer: str, person: str, answer: str) -> None:
        """Let a person answer instead of the agent, from now on until `give_back`."""

        def reply(session):
            session.set_status("suspended", f"{person} has it")
            session.add_history({"role": "assistant", "name": person, "content": answer})

        self.runtime.execute(customer, reply)

    def give_back(self, customer: str) -> None:
        self.runtime.execute(customer, actions.Resume())


def main(store: str = "memory:", model: str = "mock") -> None:
    desk = Desk(store, model)
    mock = desk.loops.mock  # with another model nobody asks it
    mock.add({"tool_calls": [{"name": "parcel", "arguments": {"number": 42}}]})
    mock.add({"text": "It arrives tomorrow, Ada."})
    mock.add({"tool_calls": [{"name": "parcel", "arguments": {"number": 43}}]})
    mock.add({"text": "I am afraid it is lost."})
    mock.add({"text": "You are welcome."})

    ada, bo = desk.sign_in("ada"), desk.sign_in("bo")
    with desk.runtime.get("bo").watch(types=["message_added"]) as screen:
        print("ada:", desk.write(ada, "Where is parcel 42?", "request 1"))
        print("ada:", desk.write(ada, "Where is parcel 42?", "request 1"), "(once more, not asked again)")
        print("bo: ", desk.write(bo, "Where is parcel 43?", "request 2"))

        desk.take_over("bo", "Carla", "We send you a new one today.")
        try:
            desk.write(bo, "Really?", "request 3")
        except InvalidTransition as refused:
            print("bo: ", refused)
        desk.give_back("bo")
        print("bo: ", desk.write(bo, "Thank you!", "request 4"))

        print("on the desk's screen:")
        while (event := screen.next(timeout=0)) is not None:
            print("  ", event.seq, event.data["role"], event.data.get("content") or "(a call)")

    for info in desk.runtime.list(SessionQuery(agent="desk", order="id")).items:
        print(info.id, info.status, f"revision {info.revision}, {info.seq} events")
    print('"lost" was said to:', *sorted({hit.name for hit in desk.runtime.search("lost")}))
    desk.runtime.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
