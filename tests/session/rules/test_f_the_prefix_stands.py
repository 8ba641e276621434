"""Rule f: without its tail, each request begins with the whole request before it. Spec: 10 §C12.1.

Random conversations with a recording provider. What the log says of every step is what the provider saw, and
two steps share their prefix unless something between them says why not.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harnpy.agent.loop.loop import run_loop
from harnpy.agent.loop.transcript_entries import request_of, steps_of
from harnpy.agent.runtime import Runtime
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.session import Session, SessionRegistry
from harnpy.session.errors import SessionError
from harnpy.session.events import Event
from harnpy.session.prompt import CONTRACT, chained, prefix_hash, tool_schema_hash
from tests.counts import COUNT
from tests.worlds import models_with

Dict = dict[str, Any]

#: How many conversations a part of the test has on a store, and in memory.
KEPT, LIVE = COUNT.conversations_kept, COUNT.conversations_live
TURNS = 6

#: Names of tools → what the description of the tool says; two agents have different ones.
TOOLS = (("work", "meddle"), ("work", "meddle", "nest"))
SKILLS = [
    {"name": "deploy", "description": "deploy services", "prompt": "Ship it."},
    {"name": "review", "description": "review code diffs", "prompt": "Read the diff twice."},
]


class Seen:
    """A request as the provider got it."""

    def __init__(self, request: Request) -> None:
        self.model, self.system, self.tools = request.model, request.system, request.tools
        self.messages = list(request.messages)


class Recorder:
    """A provider that replies at random and keeps what it was asked."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.seen: list[Seen] = []
        self.names: tuple[str, ...] = ()

    def complete(self, request: Request) -> Reply:
        self.seen.append(Seen(request))
        random, number = self.random, len(self.seen)
        calls = []
        if self.names and random.random() < 0.5:
            count = random.randint(1, 3)
            names = [random.choice((*self.names, "denied")) for _ in range(count)]
            calls = [{"id": f"c{number}-{n}", "name": name, "arguments": {}} for n, name in enumerate(names)]
        return Reply(
            text=random.choice(("", "well", "a longer answer " * 20)) if calls else f"answer {number}",
            model=request.model, provider="recorder", requested_model=request.model,
            input_tokens=1, output_tokens=1, tool_calls=calls,
        )  # fmt: skip


class Conversation:
    """Turns of agents on a session, and what others do to it meanwhile."""

    def __init__(self, seed: int, url: str) -> None:
        self.random = Random(seed)
        self.provider = Recorder(self.random)
        self.models = models_with({}, provided={"recorder": self.provider})
        self.sessions = SessionRegistry()
        self.id = f"s{seed}"
        self.sessions.open(self.id, {"store": False if url == "memory:" else url})
        self.runtime = Runtime(self.models, self.sessions)
        self.depth = 0
        #: What an agent is, most of the time.
        self.usual = {
            "names": self.random.choice((*TOOLS, ())),
            "model": self.random.choice(("small", "large")),
            "format": self.random.choice(("native", "native", "text")),
            "system": self.random.choice(("be brief", "be wise", None)),
        }

    @property
    def session(self) -> Session:
        session = self.sessions.session(self.id)
        assert session is not None
        return session

    def run(self) -> None:
        for _ in range(TURNS):
            for _ in range(self.random.randint(0, 2)):
                self.meddle()
            self.turn()

    def turn(self) -> None:
        random = self.random
        agent = dict(self.usual)
        if random.random() < 0.2:
            agent |= {"names": random.choice((*TOOLS, ())), "model": random.choice(("small", "large"))}
            agent["system"] = random.choice(("be brief", "be wise", None))
        names: Any = agent["names"]
        outer, self.provider.names = self.provider.names, names
        options: Dict = {
            "provider": "recorder",
            "model": agent["model"],
            "session_id": self.id,
            "tools": self.tools(names),
            "tool_format": agent["format"],
            "policy": {"tools": list(names)},
            "max_iterations": random.randint(1, 5),
            "persistent": random.random() < 0.2,
        }
        if random.random() < 0.3:
            options |= {"skills": SKILLS, "skill_match": {"sticky": random.random() < 0.5}}
        if random.random() < 0.3:
            options |= {"compaction": {"strategy": random.choice(("truncate", "llm")), "keep_last": 4}}
            options["compact_threshold"] = random.choice((0, 50))
        else:
            options["compaction"] = False
        if random.random() < 0.3:
            options["deliverables"] = ["a thing"]
        prompt = random.choice(("go", "deploy the services", "review these diffs"))
        self.depth += 1
        run_loop(self.runtime, prompt, agent["system"], options)
        self.depth -= 1
        self.provider.names = outer

    def tools(self, names: tuple[str, ...]) -> Dict:
        handlers = {"work": lambda _: "done", "meddle": self.meddle, "nest": self.nest}
        tools = [
            {"name": name, "description": name, "parameters": {}, "handler": handlers[name]} for name in names
        ]
        return {"_type": "tool_registry", "tools": tools}

    def nest(self, _: Any) -> str:
        if self.depth < 2:
            self.turn()
        return "nested"

    def meddle(self, _: Any = None) -> str:
        """Do something to the session that isn't a turn."""
        random, session = self.random, self.session
        what = random.choice(
            ("say",) * 6 + ("tell", "memo", "memo", "note", "pin", "trim", "compact", "rewind", "context")
        )
        try:
            if what in ("say", "tell"):
                role = "user" if what == "say" else random.choice(("assistant", "system", "tool", "odd"))
                self.sessions.inject(self.id, {"role": role, "content": f"{role} {random.random()}"})
            elif what == "memo":
                session.set_memo(random.choice(("a fact", {"b": [2], "a": 1}, None)))
            elif what == "note":
                self.sessions.append_event(self.id, {"kind": "note"})
            elif what == "pin":
                ids = [entry.event_id for entry in session.entries() if entry.event_type == "message_added"]
                if ids:
                    session.pin(random.choice(ids))
            elif what == "trim":
                self.sessions.trim(self.id, random.randint(1, 6))
            elif what == "compact":
                self.sessions.compact(self.id, {"keep_last": 3, "compact_strategy": "truncate"})
            elif what == "rewind":
                session.rewind()
            else:
                kind = random.choice(("bootstrap", "generic"))
                session.record("context_added", {"kind": kind, "content": f"context {random.random()}"})
        except SessionError:
            return "refused"
        return what


def same(seen: Seen) -> tuple[Any, ...]:
    return seen.model, seen.system, seen.tools


def breaks(event: Event) -> bool:
    """Whether an event is a reason for a request not to begin with the one before."""
    if event.type in ("history_replaced", "compaction_triggered", "leaf_moved"):
        return True
    if event.type == "context_added":
        return event.data["kind"] == "bootstrap"
    return event.type == "register_set" and event.data["key"] == "pins"


def check(conversation: Conversation) -> int:
    """Check every step. Return how many pairs of steps had to share their prefix."""
    session = conversation.session
    asked = [event for event in session.events() if event.type == "step_started"]
    seen = dict(zip((event.seq for event in asked), conversation.provider.seen, strict=True))
    stable: dict[int, list[Dict]] = {}
    for number, event in enumerate(steps_of(session), 1):
        stable[event.seq] = check_step(session, number, seen[event.seq])
    shared = 0
    for before, event in zip(steps_of(session), steps_of(session)[1:], strict=False):
        between = session.events(before.seq, event.seq)
        if any(map(breaks, between)) or same(seen[before.seq]) != same(seen[event.seq]):
            continue
        if len(open_turns(session, before.seq)) > 1 or len(open_turns(session, event.seq)) > 1:
            continue
        shared += 1
        former, later = stable[before.seq], stable[event.seq]
        assert later[: len(former)] == former
        cache = event.data["prompt_cache"]
        assert cache["prefix_hash"] == before.data["prompt_cache"]["prefix_hash"]
        hashes = chain(cache["prefix_hash"], later)
        assert hashes[len(former)] == before.data["prompt_cache"]["stable_hash"]
    return shared


def check_step(session: Session, number: int, seen: Seen) -> list[Dict]:
    """Check that the log says of a step what the provider saw. Return its stable messages."""
    request = request_of(session, number)
    assert (request["model"], request["system"], request["tools"]) == same(seen)
    messages, tail = request["messages"], request["tail"]
    assert seen.messages[: len(messages)] == messages
    rest = seen.messages[len(messages) :]
    assert rest[: len(tail)] == tail
    assert all('kind="task_ledger"' in message["content"] for message in rest[len(tail) :])
    view = session.view.at(request["seq"])
    contract = view.register(CONTRACT)
    tools = tool_schema_hash(
        seen.tools or (contract if view.register("settings.tool_format") == "text" else None)
    )
    if contract is not None:
        assert seen.system is not None
        assert contract in seen.system
    cache = request["prompt_cache"]
    assert cache.get("tool_schema_hash") == tools
    prefix = sum(entry.is_prefix for entry in view.entries(lambda after, before: ()))
    assert cache["prefix_hash"] == prefix_hash(seen.model, seen.system, tools, messages[:prefix])
    assert cache["stable_messages"] == len(messages)
    assert cache["stable_hash"] == chain(cache["prefix_hash"], messages)[-1]
    return list(messages)


def chain(prefix: str, messages: list[Dict]) -> list[str]:
    hashes = [prefix]
    for message in messages:
        hashes.append(chained(hashes[-1], message))
    return hashes


def open_turns(session: Session, seq: int) -> set[str | None]:
    found: set[str | None] = set()
    for event in session.events(until=seq):
        if event.type == "turn_started":
            found.add(event.id)
        elif event.type == "turn_completed":
            found.discard(event.turn_id)
    return found


@pytest.mark.parametrize("part", range(4))
def test_f_the_prefix_stands(url: str, part: int) -> None:
    shared, size = 0, LIVE if url == "memory:" else KEPT
    for number in range(size):
        conversation = Conversation(part * size + number, url)
        conversation.run()
        shared += check(conversation)
        conversation.sessions.close(conversation.id)
    assert shared >= size
