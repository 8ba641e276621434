"""Hypothesis strategies for run records as executors write them, and ways to put a text everywhere in one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Dict = dict[str, Any]
Strategy = st.SearchStrategy[Any]

#: What says which kind of thing something is, or which one: not what anybody wrote.
NAMES = frozenset(
    "_type id kind role type visibility status outcome branch node_id tool_name tool_use_id args_hash model "
    "models workflow_id workflow_name worker_id worker_name stage_id request_id trace_id agent session_id "
    "parent_run_id root_run_id run_id run_path snapshot_path parent_stage_id parent_session_id "
    "started_at finished_at asked_at timestamp created_at source_run_id eval_kind expected_status "
    "expected_outcome expected_branch required_artifact_kinds name span_id parent_id cwd "
    "mutation_scope".split()
)
TOOL = "search"
#: Dicts below these have keys that a program or a model has chosen.
FREE = frozenset("arguments result data metadata request provenance verification".split())

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["", "fix the parser", "déjà vu", "line one\nline two", 'she said "no"', "a/b", "100 %", "x" * 40_000]
)
KEYS = st.sampled_from(["path", "query", "n", "notes", "~odd/key", "", "Größe"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    WORDS | SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(KEYS, JSON, max_size=2)


def _event(kind: str, role: str, visibility: str, metadata: Strategy | None = None) -> Strategy:
    fields = {
        "id": st.uuids().map(str),
        "kind": st.just(kind),
        "role": st.just(role),
        "visibility": st.just(visibility),
        "text": WORDS,
        "blocks": WORDS.map(lambda text: [{"type": "text", "text": text, "visibility": visibility}]),
    }
    return st.fixed_dictionaries(fields if metadata is None else {**fields, "metadata": metadata})


def _call() -> Strategy:
    """The two events of a tool call."""

    def events(id: str, intent: Dict, execution: Dict, arguments: Dict) -> list[Dict]:
        intent = {**intent, "text": TOOL, "metadata": {"arguments": arguments, "tool_use_id": id}}
        metadata = {"tool_name": TOOL, "tool_use_id": id, "rejected": False}
        return [intent, {**execution, "metadata": metadata}]

    return st.builds(
        events,
        st.uuids().map(str),
        _event("tool_intent", "assistant", "internal"),
        _event("tool_execution", "tool", "internal"),
        ARGUMENTS,
    )


EVENTS = st.lists(
    st.one_of(
        _event("message", "user", "public").map(lambda event: [event]),
        _event("message", "assistant", "public").map(lambda event: [event]),
        _event("private_reasoning", "assistant", "private").map(lambda event: [event]),
        _event("PermissionDeny", "tool", "internal", st.fixed_dictionaries({"reason": WORDS})).map(
            lambda e: [e]
        ),
        _event(
            "provider_payload",
            "assistant",
            "internal",
            st.fixed_dictionaries(
                {"model": st.just("mock"), "input_tokens": st.integers(0, 99), "tool_calls": JSON}
            ),
        ).map(lambda event: [event]),
        _call(),
    ),
    max_size=4,
).map(lambda groups: [event for group in groups for event in group])
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant"]), "content": WORDS | st.lists(ARGUMENTS)}
    ),
    max_size=2,
)
ASSETS = st.lists(
    st.fixed_dictionaries({"id": st.uuids().map(str), "kind": st.just("image"), "data": JSON}), max_size=1
)
TRANSCRIPTS = st.none() | st.fixed_dictionaries(
    {
        "_type": st.just("transcript"),
        "version": st.just(2),
        "id": st.uuids().map(str),
        "messages": MESSAGES,
        "events": EVENTS,
        "assets": ASSETS,
        "metadata": ARGUMENTS,
    }
)
ARTIFACTS = st.lists(
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["summary", "diff", "handoff"]), "text": WORDS, "data": JSON}
    ),
    max_size=2,
)


def _stage(number: int) -> Strategy:
    return st.fixed_dictionaries(
        {
            "id": st.just(f"run_1:node{number}:{number}"),
            "node_id": st.just(f"node{number}"),
            "kind": st.sampled_from(["stage", "verify"]),
            "status": st.sampled_from(["completed", "failed"]),
            "outcome": st.just("success"),
            "branch": st.none() | st.just("success"),
            "visible_text": st.none() | WORDS,
            "private_reasoning": st.none() | WORDS,
            "transcript": TRANSCRIPTS,
            "verification": st.none() | st.fixed_dictionaries({"ok": st.booleans(), "kind": st.just("none")}),
            "artifacts": ARTIFACTS,
            "metadata": ARGUMENTS,
        }
    )


def _with_fixture(run: Dict) -> Dict:
    assertions = [
        {"node_id": stage["node_id"], "visible_text_contains": (stage["visible_text"] or "")[:80] or None}
        for stage in run["stages"]
    ]
    return {**run, "replay_fixture": {"id": "fixture_1", "stage_assertions": assertions}}


def _with_recordings(run: Dict) -> Dict:
    """The first stage's calls are recorded too, as an executor does."""
    stage = run["stages"][0] if run["stages"] else {}
    events = (stage.get("transcript") or {}).get("events", [])
    calls = [event for event in events if event["kind"] == "tool_execution"]
    recordings = [
        {
            "tool_name": TOOL,
            "tool_use_id": event["metadata"]["tool_use_id"],
            "args_hash": "0123456789abcdef",
            "result": event["text"],
            "duration_ms": 3,
            "iteration": 1,
            "timestamp": "2026-01-31T09:15:02.114Z",
        }
        for event in reversed(calls)
    ]
    return {**run, "tool_recordings": recordings}


#: What a run's metadata has of an approval.
HITL = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {
            "request_id": st.just("hitl_approval_1"),
            "kind": st.just("approval"),
            "prompt": WORDS,
            "payload": st.fixed_dictionaries({"args": ARGUMENTS}),
            "status": st.sampled_from(["approved", "denied", "pending"]),
            "responses": st.lists(st.fixed_dictionaries({"reason": WORDS, "answer": JSON}), max_size=2),
        }
    ).map(lambda request: {"hitl": [request]}),
)

RUNS = (
    st.fixed_dictionaries(
        {
            "_type": st.just("run_record"),
            "id": st.just("run_1"),
            "workflow_id": st.just("review"),
            "task": WORDS,
            "status": st.just("completed"),
            "stages": st.integers(0, 3)
            .flatmap(lambda count: st.tuples(*map(_stage, range(1, count + 1))))
            .map(list),
            "artifacts": ARTIFACTS,
            "transcript": TRANSCRIPTS,
            "trace_spans": st.lists(
                st.fixed_dictionaries(
                    {
                        "span_id": st.integers(1, 9),
                        "kind": st.just("tool"),
                        "name": st.just(TOOL),
                        "metadata": ARGUMENTS,
                    }
                ),
                max_size=1,
            ),
            "hitl_questions": st.lists(
                st.fixed_dictionaries({"request_id": st.just("hitl_question_1"), "prompt": WORDS}), max_size=1
            ),
            "child_runs": st.lists(
                st.fixed_dictionaries(
                    {"worker_id": st.just("w1"), "task": WORDS, "request": JSON, "provenance": JSON}
                ),
                max_size=1,
            ),
            "metadata": st.builds(lambda given, hitl: {**given, **hitl}, ARGUMENTS, HITL),
        }
    )
    .map(_with_fixture)
    .map(_with_recordings)
)
SIDECARS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["message", "system_prompt", "provider_call_response"]),
            "content": WORDS,
            "thinking": WORDS,
        }
    ),
    max_size=2,
)


def planted(value: Any, text: str, *, names: bool = True, free: bool = False, key: str = "") -> Any:
    """``value`` with ``text`` at the end of every string, and of every key that somebody chose freely.

    Strings that are `NAMES` stay as they are unless ``names``.
    """
    if isinstance(value, str):
        name = (key in NAMES or value == TOOL) and not free
        return value if name and not names else f"{value} {text}"
    if isinstance(value, list):
        return [planted(item, text, names=names, free=free, key=key) for item in value]
    if isinstance(value, dict):
        return {
            f"{name} {text}" if free else name: planted(
                item, text, names=names, free=free or name in FREE - {"metadata"}, key=name
            )
            for name, item in value.items()
        }
    return value


def strings(value: Any) -> Iterator[str]:
    """All strings and keys of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from strings(item)


def differences(left: Any, right: Any, place: str = "") -> Iterator[str]:
    """JSON pointers of the values that differ."""
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        for key in left:
            yield from differences(
                left[key], right[key], f"{place}/{key.replace('~', '~0').replace('/', '~1')}"
            )
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for at, (before, after) in enumerate(zip(left, right, strict=True)):
            yield from differences(before, after, f"{place}/{at}")
    elif json.dumps(left) != json.dumps(right):
        yield place
