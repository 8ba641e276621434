"""Every verb of a `SessionRegistry` does what the model does, over long random runs.

One step is one call, made in both: the same answer, or the same refusal and nothing changed. After it, all
that can be read from the store must be the model's. What goes in and what comes out is spoilt afterwards,
so that a value which the store shares with its caller shows.
"""

from __future__ import annotations

import copy
import json
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harnpy.session import SessionError, SessionRegistry
from harnpy.session.cuts import Cut
from harnpy.session.events import Event
from harnpy.session.view import View, replay
from tests.counts import COUNT
from tests.session.model import Json, Message, Model, ModelSession, Refused, cut_of, parted, result_ids
from tests.session.shapes import SHAPES
from tests.worlds import world_with

CWD = "/work/here"

IDS = "abcdefg"
KNOWN = st.runner().flatmap(lambda machine: st.sampled_from(sorted(machine.model.sessions)))
UNKNOWN = st.runner().flatmap(
    lambda machine: st.sampled_from(sorted(set(IDS + "z") - set(machine.model.sessions)))
)

COUNTS = st.integers(0, 6)
METADATA = st.sampled_from([None, {}, {"k": 1}, {"l": {"deep": [1, 2]}}])
FLAGS = st.sampled_from([None, True, False])
TEXTS = st.sampled_from([None, "why", ""])

Call = tuple[Any, ...]
"""The name of a verb, and its arguments behind the id."""


def options(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Json | None]:
    return st.none() | st.fixed_dictionaries({}, optional=keys)


def call(verb: str, *args: st.SearchStrategy[Any]) -> st.SearchStrategy[Call]:
    return st.tuples(st.just(verb), *args)


# Talk.

SAYINGS = st.lists(
    st.tuples(st.sampled_from(sorted(SHAPES)), st.sampled_from([9, 9, 1, 2])), min_size=1, max_size=8
)
"""Pieces of conversation, some of them broken off."""

# Life.

ENDS = st.one_of(
    call("reset"),
    call("close", st.sampled_from([None, "timeout", {}, {"reason": "done", "n": 1}])),
)
BRANCHES = st.one_of(
    call("trim", COUNTS | st.integers(5, 15)),
    call("fork", st.sampled_from(IDS)),
    call("fork_at", st.sampled_from([0, 1, 2, 3, 5, 8, 13, 99]), st.sampled_from(IDS)),
)

# Workspace and scratchpad.

PATHS = st.sampled_from(["/a", "/a/./b/..//", "c", "../here/c", "/"])
MODES = st.sampled_from(["read_only", "read_write", None])
POLICIES = st.sampled_from(["read_only", "read_write"]).map(lambda mode: {"default_mount_mode": mode})
ROOTS = st.lists(
    st.fixed_dictionaries({"path": st.sampled_from(["/r", "r/../r/s"])}, optional={"mount_mode": MODES}),
    max_size=2,
    unique_by=lambda root: root["path"],
)
ANCHORS = PATHS | st.fixed_dictionaries(
    {"primary": PATHS},
    optional={
        "additional_roots": ROOTS,
        "anchored_at": st.sampled_from([None, "2026-01-31T09:15:02.114Z"]),
    },
)
# One of the two: in which order their events come is nobody's promise.
OPENINGS = options(workspace_anchor=ANCHORS) | options(workspace_policy=POLICIES)
MOUNTS = st.sampled_from(["/r", "//r/", "/r/./t/..", "c", "/a", "/w/ä"])
WORKSPACE = st.one_of(
    call("add_root", MOUNTS, options(mount_mode=MODES)),
    call("remove_root", MOUNTS),
    call("set_workspace_anchor", ANCHORS),
    call("set_workspace_anchor", st.none()),
    call("set_workspace_policy", POLICIES),
)
WHY = options(source=TEXTS, reason=TEXTS, metadata=METADATA)
SCRATCHPADS = st.sampled_from([{}, {"plan": ["a", 1, 2.5, None, True]}, {"ä": {"b": {}}}])
SCRATCHPAD = call("set_scratchpad", SCRATCHPADS, WHY) | call("clear_scratchpad", WHY)

# Live clients.

CLIENTS = st.sampled_from(["web", "tui"])
RIGHTS = {"metadata": METADATA, "can_inject_prompt": FLAGS, "can_route_permission": FLAGS}
PROMPTS = st.sampled_from(["go on", [{"type": "text", "text": "look"}, {"type": "audio"}]])
REQUESTS = st.sampled_from([{}, {"tool": "rm", "arguments": {"path": "/"}}])
MODE = st.sampled_from(["controller", "controller", "observer", None])
LIVE = st.one_of(
    call("attach", CLIENTS, options(mode=MODE, takeover=FLAGS, **RIGHTS)),
    call("attach", CLIENTS, st.just({"mode": "controller"})),
    call("takeover", CLIENTS, options(**RIGHTS)),
    call("client_inject_prompt", CLIENTS, PROMPTS, options(metadata=METADATA)),
    call("route_permission", CLIENTS, REQUESTS, options(metadata=METADATA)),
    call("heartbeat", CLIENTS, options(metadata=METADATA)),
    call("detach", CLIENTS, options(reason=TEXTS, metadata=METADATA)),
)

# Compaction.


class Boom(Exception):
    """What a callback raises."""


def boom(_: Any) -> Any:
    raise Boom


def spoil(value: Any) -> None:
    """Change a value all through."""
    for part in list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        spoil(part)
    if isinstance(value, dict):
        value["spoilt"] = True
    elif isinstance(value, list):
        value.append("spoilt")


def told_by(value: Any) -> str:
    return f"{zlib.crc32(repr(value).encode())}"


CUSTOM = [
    told_by,
    lambda archived: {"summary": f"{len(archived)} said", "text": "not this"},
    lambda archived: {"text": archived[0].get("role")},
    lambda archived: {"count": len(archived), "of": ["b", {"a": 1}]},
    lambda archived: [len(archived)],
    lambda archived: None,
    lambda archived: " \n",
]
MASKS = [
    lambda archived: [told_by(message) for message in archived],
    lambda archived: [None, 3, "masked"] * 2,
    lambda archived: "masked",
]
COMPRESSORS = [told_by, lambda call: f"{call['tool_name']}/{call['max_chars']}", lambda call: "", boom]
SUMMARIZERS = st.sampled_from([told_by, lambda prompt: f"\n {told_by(prompt)}\n", lambda prompt: " \n"])

STRATEGIES = st.sampled_from(["llm", "truncate", "observation_mask", "custom"])
STRATEGY_OPTIONS = st.one_of(
    st.fixed_dictionaries({"compact_strategy": st.sampled_from(["llm", "truncate", None])}),
    st.fixed_dictionaries(
        {"custom_compactor": st.sampled_from(CUSTOM)},
        optional={"compact_strategy": STRATEGIES},
    ),
    st.fixed_dictionaries(
        {
            "mask_callback": st.sampled_from([None, *MASKS]),
            "compress_callback": st.sampled_from([None, *COMPRESSORS]),
            "tool_output_max_chars": st.sampled_from([600, 600, None, 16000]),
        }
    ),
)
COMMON_OPTIONS = st.fixed_dictionaries(
    {"keep_last": COUNTS | st.sampled_from([0, 1, 2, 12, None])},
    optional={
        "token_threshold": st.sampled_from([None, 0, 0, 20, 1000]),
        "hard_limit_tokens": st.sampled_from([None, 0, 20, 100, 10**6]),
        "hard_limit_strategy": STRATEGIES | st.none(),
    },
)


def compaction_options(common: Json, own: Json) -> Json:
    """All of them, and the callback that ``custom`` can't do without."""
    opts = {**common, **own}
    if "custom" in (opts.get("compact_strategy"), opts.get("hard_limit_strategy")):
        opts.setdefault("custom_compactor", told_by)
    return opts


COMPACT = call("compact", st.builds(compaction_options, COMMON_OPTIONS, STRATEGY_OPTIONS), SUMMARIZERS)

FAILING_COMPACTIONS: list[Json] = [
    {"custom_compactor": boom},
    {"compact_strategy": "llm"},
    {"compact_strategy": "truncate", "hard_limit_tokens": 0},
    {"compact_strategy": "truncate", "hard_limit_tokens": 0, "hard_limit_strategy": "llm"},
    {
        "compact_strategy": "truncate",
        "hard_limit_tokens": 0,
        "hard_limit_strategy": "custom",
        "custom_compactor": boom,
    },
    {"mask_callback": boom},
]

COMPACT_KEYS = (
    "keep_last, token_threshold, tool_output_max_chars, compact_strategy, hard_limit_tokens, "
    "hard_limit_strategy, custom_compactor, mask_callback, compress_callback"
)
SCRATCHPAD_KEYS = "source, reason, metadata"
ATTACH_KEYS = "mode, takeover, metadata, can_inject_prompt, can_route_permission"
RIGHTS_KEYS = "metadata, can_inject_prompt, can_route_permission"
ANCHOR_KEYS = "primary, additional_roots, anchored_at"
CONTENT = "`content` must be a non-empty string or list of content blocks"
STRATEGY_NAMES = "(expected one of: llm, truncate, custom, observation_mask)"
UNKNOWN_STRATEGY = "unknown `compact_strategy`"
NO_CUSTOM = "`compact_strategy` 'custom' needs the closure `custom_compactor`"
ROLES = "user|assistant|tool_result|system"


def unknown(keys: str, key: str = "a", what: str = "option", near: str | None = None) -> str:
    hint = "" if near is None else f"did you mean '{near}'? "
    return f"unknown {what} key '{key}' ({hint}expected one of: {keys})"


Wrong = tuple[str, tuple[Any, ...], str]

WRONG_AT_SIGHT: list[Wrong] = [
    ("open", ({"a": 1},), unknown("store, workspace_anchor, workspace_policy")),
    ("trim", (-1,), "`keep_last` must be >= 0"),
    ("fork", ("",), "`dst` must not be empty"),
    ("fork_at", (-1,), "`keep_first` must be >= 0"),
    ("fork_at", (1, " "), "`dst` must not be empty"),
    ("append_event", (3,), "event must be a dict"),
    ("close", (3,), "`status` must be a string, dict, or nil"),
    ("close", ({"reason": 1},), "`status.reason` must be a string"),
    ("attach", ("",), "`client_id` must not be empty"),
    ("takeover", (" ",), "`client_id` must not be empty"),
    ("detach", ("",), "`client_id` must not be empty"),
    ("heartbeat", ("\n",), "`client_id` must not be empty"),
    ("client_inject_prompt", ("", "go"), "`client_id` must not be empty"),
    ("route_permission", ("", {}), "`client_id` must not be empty"),
    ("attach", (1,), "`client_id` must be a string"),
    ("takeover", (None,), "`client_id` must be a string"),
    ("detach", ([],), "`client_id` must be a string"),
    ("heartbeat", (1.5,), "`client_id` must be a string"),
    ("client_inject_prompt", ("web", " \n"), CONTENT),
    ("client_inject_prompt", ("web", []), CONTENT),
    ("client_inject_prompt", ("web", {"type": "text", "text": "x"}), CONTENT),
    ("client_inject_prompt", ("web", None), CONTENT),
    ("route_permission", ("web", "rm"), "`request` must be a dict"),
    ("route_permission", ("web", None), "`request` must be a dict"),
    ("set_scratchpad", (None,), "`scratchpad` must be a dict"),
    ("set_scratchpad", ([],), "`scratchpad` must be a dict"),
    ("add_root", ("",), "`root` must be a non-empty string"),
    ("remove_root", ("",), "`root` must be a non-empty string"),
]
"""Refused whether the session is known or not."""

WRONG_OF_KNOWN: list[Wrong] = [
    ("inject", (None,), "`message` required"),
    ("inject", ("hi",), "message must be a dict"),
    ("inject", ({"role": 1},), f"message must have a string `role` ({ROLES})"),
    ("append_event", ({"text": "x"},), "event must have a string `kind`"),
    ("compact", ([],), "`opts` must be a dict or nil"),
    ("attach", ("web", []), "`opts` must be a dict or nil"),
    ("takeover", ("web", "x"), "`opts` must be a dict or nil"),
    ("detach", ("web", 1), "`opts` must be a dict or nil"),
    ("heartbeat", ("web", True), "`opts` must be a dict or nil"),
    ("client_inject_prompt", ("web", "go", []), "`opts` must be a dict or nil"),
    ("route_permission", ("web", {}, 1), "`opts` must be a dict or nil"),
    ("set_scratchpad", ({}, 1), "`opts` must be a dict or nil"),
    ("clear_scratchpad", ("x",), "`opts` must be a dict or nil"),
    ("history", ([],), "`opts` must be a dict or nil"),
    ("add_root", ("/r", 1), "`opts` must be a dict or nil"),
    ("compact", ({"b": 1, "a": 1, "keep_last": "x"},), unknown(COMPACT_KEYS)),
    ("compact", ({"keep_first": 1},), unknown(COMPACT_KEYS, "keep_first", near="keep_last")),
    ("compact", ({"keep_last": -1, "compact_strategy": "x"},), "`keep_last` must be >= 0"),
    ("compact", ({"keep_last": True},), "`keep_last` must be an int"),
    ("compact", ({"keep_last": 1.0},), "`keep_last` must be an int"),
    ("compact", ({"token_threshold": -1, "hard_limit_tokens": -1},), "`token_threshold` must be >= 0"),
    ("compact", ({"tool_output_max_chars": "x"},), "`tool_output_max_chars` must be an int"),
    ("compact", ({"compact_strategy": 1, "hard_limit_tokens": -1},), "`compact_strategy` must be a string"),
    ("compact", ({"hard_limit_tokens": -1, "hard_limit_strategy": 1},), "`hard_limit_tokens` must be >= 0"),
    ("compact", ({"hard_limit_strategy": {}},), "`hard_limit_strategy` must be a string"),
    ("compact", ({"custom_compactor": "x"},), "`custom_compactor` must be a closure"),
    ("compact", ({"mask_callback": [], "compress_callback": 1},), "`mask_callback` must be a closure"),
    (
        "compact",
        ({"compress_callback": 1, "compact_strategy": "x"},),
        "`compress_callback` must be a closure",
    ),
    ("history", ({"all": True},), unknown("include_reset", "all")),
    ("history", ({"include_reset": 1},), "`include_reset` must be a bool"),
    ("set_scratchpad", ({}, {"a": 1, "source": 1}), unknown(SCRATCHPAD_KEYS)),
    ("set_scratchpad", ({}, {"source": 1}), "`source` must be a string"),
    ("set_scratchpad", ({}, {"reason": []}), "`reason` must be a string"),
    ("set_scratchpad", ({}, {"metadata": "x"}), "`metadata` must be a dict"),
    ("set_scratchpad", ({"f": boom},), "`scratchpad` must be JSON-serializable"),
    ("set_scratchpad", ({"l": [float("nan")]},), "`scratchpad` must be JSON-serializable"),
    ("set_scratchpad", ({"x": "y" * 65529},), "scratchpad is too large (65537 bytes, limit 65536)"),
    ("clear_scratchpad", ({"b": 1},), unknown(SCRATCHPAD_KEYS, "b")),
    ("clear_scratchpad", ({"reason": 1},), "`reason` must be a string"),
    ("set_workspace_anchor", ({"primary": "/", "a": 1},), unknown(ANCHOR_KEYS, what="workspace anchor")),
    ("set_workspace_anchor", ({},), "`anchor.primary` must be a non-empty string"),
    ("set_workspace_anchor", ("",), "`anchor.primary` must be a non-empty string"),
    ("set_workspace_policy", ({"a": 1},), unknown("default_mount_mode", what="workspace policy")),
    (
        "set_workspace_policy",
        ({"default_mount_mode": "rw"},),
        "invalid mount mode 'rw' (expected one of: read_only, read_write)",
    ),
    ("set_workspace_policy", ({"default_mount_mode": 1},), "`default_mount_mode` must be a string"),
    ("add_root", ("/r", {"mode": "x"}), unknown("mount_mode", "mode")),
    ("add_root", ("/r", {"mount_mode": 1}), "`mount_mode` must be a string"),
    (
        "add_root",
        ("/r", {"mount_mode": ""}),
        "invalid mount mode '' (expected one of: read_only, read_write)",
    ),
    ("attach", ("web", {"a": 1}), unknown(ATTACH_KEYS)),
    ("attach", ("web", {"mode": "boss"}), "invalid mode 'boss' (expected one of: observer, controller)"),
    ("attach", ("web", {"takeover": 1}), "`takeover` must be a bool"),
    ("attach", ("web", {"metadata": []}), "`metadata` must be a dict"),
    ("attach", ("web", {"can_inject_prompt": "no"}), "`can_inject_prompt` must be a bool"),
    ("takeover", ("web", {"mode": "controller"}), unknown(RIGHTS_KEYS, "mode")),
    ("takeover", ("web", {"takeover": True}), unknown(RIGHTS_KEYS, "takeover")),
    ("takeover", ("web", {"can_route_permission": 0}), "`can_route_permission` must be a bool"),
    ("detach", ("web", {"a": 1}), unknown("reason, metadata")),
    ("detach", ("web", {"reason": 1}), "`reason` must be a string"),
    ("heartbeat", ("web", {"reason": "x"}), unknown("metadata", "reason")),
    ("heartbeat", ("web", {"metadata": 1}), "`metadata` must be a dict"),
    ("client_inject_prompt", ("web", "go", {"a": 1}), unknown("metadata")),
    ("route_permission", ("web", {}, {"metadata": 1}), "`metadata` must be a dict"),
]
"""Refused of a known session; an unknown one is the first thing wrong."""

NO_STRATEGIES: list[tuple[Json, str]] = [
    (
        {"compact_strategy": "x", "hard_limit_strategy": "y"},
        f"{UNKNOWN_STRATEGY} 'x' {STRATEGY_NAMES}",
    ),
    (
        {"compact_strategy": "", "custom_compactor": told_by},
        f"{UNKNOWN_STRATEGY} '' {STRATEGY_NAMES}",
    ),
    ({"hard_limit_strategy": "y"}, f"unknown `hard_limit_strategy` 'y' {STRATEGY_NAMES}"),
    ({"compact_strategy": "custom"}, NO_CUSTOM),
    ({"compact_strategy": "custom", "token_threshold": 10**9, "keep_last": 10**9}, NO_CUSTOM),
]
"""Options that no compaction can go by, however little there is to compact."""


Step = Callable[..., None]


def on_known(**draws: Any) -> Callable[[Step], Step]:
    """A step with one of the sessions that there are."""
    drawn: Callable[[Step], Step] = rule(id=KNOWN, **draws)
    possible: Callable[[Step], Step] = precondition(lambda machine: bool(machine.model.sessions))
    return lambda step: possible(drawn(step))


def noted(number: int) -> Json:
    """A lifecycle event as a program would append it."""
    aside = {"kind": "note", "role": "system", "visibility": "internal", "text": f"note {number}"}
    return {**aside, "metadata": {"n": number}}


class Sessions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = 1767225600.0
        self.store = SessionRegistry(world=world_with(now=lambda: self.clock, cwd=lambda: CWD))
        self.model = Model(lambda: self.clock, CWD)
        self.heard: list[Json] = []
        self.farewells: list[Json] = []
        """The last event of each session that was closed."""
        self.driven: list[tuple[str, AbstractContextManager[None]]] = []
        self.shown: dict[Any, str] = {}
        """The event id of each of the model's entries, from when it was first seen."""
        self.written = 0

    # One call in both.

    def do(self, verb: str, *args: Any) -> None:
        """Both give the same answer, or both refuse."""
        self.clock += 0.25
        try:
            expected = getattr(self.model, verb)(*args)
        except Refused as refusal:
            self.refuses(verb, args, str(refusal))
            return
        given = copy.deepcopy(args)
        answer = getattr(self.store, verb)(*given)
        assert answer == expected
        for value in (*given, answer):
            spoil(value)
        self.listen()

    def make(self, id: str, calls: list[Call]) -> None:
        for verb, *args in calls:
            self.do(verb, id, *args)

    def refuses(self, verb: str, args: tuple[Any, ...], text: str) -> None:
        before = self.standing()
        with pytest.raises(SessionError) as caught:
            getattr(self.store, verb)(*args)
        assert str(caught.value) == text
        assert self.standing() == before

    def standing(self) -> Any:
        """What moves with any change: order of use, versions, what was told."""
        sessions = [self.store.session(id) for id in self.store.ids()]
        return [(s.id, s.version) for s in sessions if s], len(self.heard)

    def listen(self) -> None:
        """Subscribe to each session that nobody listens to yet."""
        for id in self.store.ids():
            if not self.store.subscriber_count(id):
                self.store.subscribe(id, self.hear)

    def hear(self, event: Json) -> None:
        """Only listen: what a subscriber raises is swallowed."""
        self.heard.append(copy.deepcopy(event))
        if event["type"] == "agent_session_closed":
            snapshot = self.store.snapshot_value(event["session_id"])
            self.farewells += copy.deepcopy(list(map(visible, snapshot["events"][-1:]))) if snapshot else []
        spoil(event)

    # The steps.

    @initialize(cap=st.sampled_from([4, 4, 4, 2, 1]))
    def begin(self, cap: int) -> None:
        self.store.set_cap(cap)
        self.model.cap = cap
        self.do("open", "a")

    @rule(id=st.sampled_from(IDS), opts=OPENINGS)
    def open(self, id: str, opts: Json | None) -> None:
        self.do("open", id, opts)

    def say(self, id: str, sayings: list[tuple[str, int]]) -> None:
        for shape, count in sayings:
            self.written += 1
            for message in SHAPES[shape](str(self.written))[:count]:
                self.do("inject", id, message)
        self.do("append_event", id, noted(self.written))

    chat = on_known(sayings=SAYINGS)(say)

    @on_known(sayings=SAYINGS, call=COMPACT)
    def converse(self, id: str, sayings: list[tuple[str, int]], call: Call) -> None:
        """Talk and compaction in one step, as the one is little without the other."""
        self.say(id, sayings)
        self.shorten(id, call)

    @on_known(calls=st.lists(BRANCHES, min_size=1, max_size=4))
    def branch(self, id: str, calls: list[Call]) -> None:
        self.make(id, calls)

    @on_known(call=ENDS)
    def end(self, id: str, call: Call) -> None:
        self.make(id, [call])

    def tend(self, id: str, calls: list[Call]) -> None:
        self.make(id, calls)

    # Twice as often as the other steps.
    tend_to = tend_more = on_known(calls=st.lists(WORKSPACE | SCRATCHPAD | LIVE, min_size=2, max_size=10))(
        tend
    )

    @rule(id=st.sampled_from(IDS))
    def drive(self, id: str) -> None:
        context = self.store.enter(id)
        context.__enter__()
        self.driven.append((id, context))
        self.model.running.append(id)

    @precondition(lambda self: self.driven)
    @rule()
    def leave(self) -> None:
        _, context = self.driven.pop()
        context.__exit__(None, None, None)
        self.model.running.pop()

    def shorten(self, id: str, call: Call) -> None:
        before, told = self.store.messages(id), len(self.model.told)
        self.make(id, [call])
        if len(self.model.told) > told:
            whole(before, self.store.messages(id)[1:])

    compact = on_known(call=COMPACT)(shorten)

    # The calls that fail.

    @precondition(lambda self: any(cut_of(session.messages, 1) for session in self.model.sessions.values()))
    @rule(id=KNOWN)
    def compact_in_vain(self, id: str) -> None:
        if not cut_of(self.model.sessions[id].messages, 1):
            return
        before = self.standing()
        for opts in FAILING_COMPACTIONS:
            with pytest.raises(Boom):
                self.store.compact(id, {"keep_last": 1, **opts}, boom)
            assert self.standing() == before
        opts = {"keep_last": 1, "compact_strategy": "llm"}
        self.refuses("compact", (id, opts), "LLM transcript compaction requires active LLM call options")

    @rule(id=UNKNOWN, call=st.one_of(ENDS, BRANCHES, WORKSPACE, SCRATCHPAD, LIVE, COMPACT))
    def call_an_unknown_one(self, id: str, call: Call) -> None:
        self.make(id, [call])

    @on_known()
    def call_wrongly(self, id: str) -> None:
        for verb, args, problem in [*WRONG_AT_SIGHT, *WRONG_OF_KNOWN]:
            self.refuses(verb, (id, *args), f"agent_session_{verb}: {problem}")
        for opts, text in NO_STRATEGIES:
            self.refuses("compact", (id, opts), f"agent_session_compact: {text}")

    @rule(id=UNKNOWN)
    def call_an_unknown_one_wrongly(self, id: str) -> None:
        for verb, args, problem in WRONG_AT_SIGHT:
            self.refuses(verb, (id, *args), f"agent_session_{verb}: {problem}")
        for verb, args, _ in WRONG_OF_KNOWN:
            self.refuses(verb, (id, *args), f"agent_session_{verb}: unknown session id '{id}'")

    # What must hold after each step.

    @invariant()
    def the_registry_is_the_models(self) -> None:
        assert self.store.ids() == list(self.model.sessions)
        assert self.store.current_id() == (self.model.running[-1] if self.model.running else None)
        assert self.heard == self.model.told
        assert self.farewells == [farewell.event() for farewell in self.model.farewells]

    @invariant()
    def every_transcript_is_the_models(self) -> None:
        for id, model in self.model.sessions.items():
            snapshot = self.store.snapshot_value(id)
            assert snapshot
            assert snapshot["messages"] == self.store.messages(id) == model.messages
            assert snapshot["length"] == self.store.length(id) == len(model.messages)
            assert snapshot.get("summary") == model.summary
            assert list(map(visible, snapshot["events"])) == [entry.event() for entry in model.entries]
            parent = {"parent_session_id": model.parent} if model.shows_parent else None
            assert snapshot.get("metadata") == parent
            self.events_keep_their_ids(model, [event["id"] for event in snapshot["events"]])

    def events_keep_their_ids(self, model: ModelSession, ids: list[str]) -> None:
        assert len(set(ids)) == len(ids)
        for entry, id in zip(model.entries, ids, strict=True):
            assert self.shown.setdefault(entry, id) == id

    @invariant()
    def every_field_is_the_models(self) -> None:
        for id, model in self.model.sessions.items():
            snapshot = self.store.snapshot_value(id)
            assert snapshot
            clients = list(model.clients.values())
            assert snapshot["created_at"] == model.created_at
            assert snapshot["scratchpad"] == self.store.scratchpad(id) == model.scratchpad
            assert snapshot["scratchpad_version"] == model.scratchpad_version
            assert snapshot["live_clients"] == self.store.live_clients(id) == clients
            assert snapshot["live_controller_id"] == model.controller
            assert len([client for client in clients if client["mode"] == "controller"]) <= 1
            assert snapshot["workspace_anchor"] == self.store.workspace_anchor(id) == model.anchor
            assert snapshot["workspace_policy"] == self.store.workspace_policy(id) == model.policy
            assert self.store.list_roots(id) == self.model.list_roots(id)

    @invariant()
    def a_snapshot_has_it_all_and_is_the_readers(self) -> None:
        for id in self.store.ids()[-1:]:
            snapshot = dict(self.store.snapshot(id) or {})
            assert snapshot == self.store.snapshot_value(id)
            spoil(snapshot)

    @invariant()
    def the_links_are_the_models(self) -> None:
        for id, model in self.model.sessions.items():
            snapshot = self.store.snapshot_value(id)
            assert snapshot
            assert snapshot["parent_id"] == model.parent
            assert snapshot["child_ids"] == model.children
            assert snapshot["branched_at_event_index"] == model.branched_at
            assert self.store.ancestry(id) == {
                "parent_id": model.parent,
                "child_ids": model.children,
                "root_id": self.model.root(id),
            }

    @invariant()
    def links_go_both_ways_unless_an_end_was_closed(self) -> None:
        down = {
            (id, child) for id in self.store.ids() for child in (self.store.ancestry(id) or {})["child_ids"]
        }
        parents = {id: (self.store.ancestry(id) or {})["parent_id"] for id in self.store.ids()}
        up = {(parent, id) for id, parent in parents.items() if parent is not None}
        assert down ^ up <= self.model.dangling

    @invariant()
    def nothing_said_is_lost(self) -> None:
        for id, model in self.model.sessions.items():
            assert self.store.history(id) == model.history
            assert self.store.history(id, {"include_reset": False}) == model.history
            assert self.store.history(id, {"include_reset": True}) == model.ever

    @invariant()
    def every_view_follows_from_its_log(self) -> None:
        for id in self.model.sessions:
            session = self.store.session(id)
            assert session
            events = session.events()
            assert [event.seq for event in events] == list(range(1, session.version + 1))
            assert {event.session_id for event in events} == {id}
            same(session.view, replay(events), id)

    @invariant()
    def a_stored_log_has_the_same_view(self) -> None:
        for id in self.store.ids()[-1:]:
            session = self.store.session(id)
            assert session
            same(session.view, replay(map(reread, session.events())), id)

    def teardown(self) -> None:
        while self.driven:
            self.leave()


def same(live: View, again: View, id: str) -> None:
    assert again.transcript(id) == live.transcript(id)
    assert payloads(again.window.history()) == payloads(live.window.history())
    for name in VIEWED:
        assert getattr(again, name) == getattr(live, name)


VIEWED = ("registers", "created", "parent_id", "linked_at", "cleared_at", "branched_at", "clients")


def reread(event: Event) -> Event:
    """Return the event as a store would give it back: its cuts know what they keep by position only."""
    if not isinstance(event.body, Cut):
        return event
    stored = json.dumps(event.body.stored(event))
    again = copy.copy(event)
    again.body = Cut.restored(json.loads(stored))
    return again


def payloads(entries: list[Event]) -> list[Message]:
    return [entry.body for entry in entries]


def visible(event: Json) -> Json:
    return {key: event.get(key) for key in ("kind", "role", "visibility", "text", "metadata")}


def whole(before: list[Message], kept: list[Message]) -> None:
    """No call was parted from its result by the compaction, and no result stands first."""
    archived = before[: len(before) - len(kept)]
    assert before == archived + kept
    assert not (kept and result_ids(kept[0]))
    assert not parted(archived, kept)


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=COUNT.examples(12), stateful_step_count=100)
