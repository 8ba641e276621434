"""Session bundles by example: what goes in, what is masked, what is refused. Spec: 08 §17."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from harnpy.faults import MisuseError
from harnpy.formats.secrets.masking import mask_secrets
from harnpy.formats.secrets.secret_names import is_secret_name
from harnpy.workflow.bundle import BundleError, export_run, import_bundle, validate_bundle, without_secrets
from harnpy.workflow.bundle.redactor import Environment, Places
from harnpy.workflow.bundle.sections import sealed
from tests.counts import COUNT
from tests.worlds import world_with

Dict = dict[str, Any]

WORLD = world_with(now=lambda: 1767225600.0, new=lambda: "0197b0a0-0000-7000-8000-000000000000")
KEY = "sk-proj-4fTq9LxB72"
NOW = "2026-01-01T00:00:00.000Z"
#: An approval as a record has it.
APPROVED = {
    "request_id": "h1",
    "kind": "approval",
    "prompt": "push",
    "payload": {"action": "push", "args": {"to": "main"}},
    "agent": "",
    "trace_id": "t1",
    "requested_at": NOW,
    "status": "approved",
    "responses": [
        {"reviewer": "ann", "reason": "fine", "approved": True, "responded_at": NOW, "signature": "s"}
    ],
}


def event(kind: str, text: str = "", role: str = "system", **metadata: Any) -> Dict:
    return {
        "id": f"e-{kind}-{text[:9]}",
        "kind": kind,
        "role": role,
        "visibility": "internal",
        "text": text,
        "metadata": metadata,
    }


def call(id: str, arguments: Dict, result: str) -> list[Dict]:
    return [
        event("tool_intent", "read", "assistant", arguments=arguments, tool_use_id=id),
        event("tool_execution", result, "tool", tool_name="read", tool_use_id=id, rejected=False),
    ]


def stage(node: str, *events: Dict, **fields: Any) -> Dict:
    transcript = {
        "_type": "transcript",
        "version": 2,
        "id": f"s-{node}",
        "messages": [],
        "events": [*events],
        "assets": [],
    }
    return {
        "id": f"r:{node}:1",
        "node_id": node,
        "status": "completed",
        "outcome": "success",
        "transcript": transcript,
        **fields,
    }


def run(*stages: Dict, **fields: Any) -> Dict:
    return {
        "id": "r",
        "workflow_id": "w",
        "task": "review",
        "status": "completed",
        "stages": [*stages],
        **fields,
    }


def export(record: Dict, mode: str = "sanitized", **options: Any) -> Dict:
    return export_run(record, mode, world=WORLD, **options)


def entry(bundle: Dict, path: str) -> Dict:
    return next(entry for entry in bundle["redactions"] if entry["path"] == path)


def test_the_envelope() -> None:
    bundle = export(run())
    assert list(bundle) == sorted(
        "_type schema_version bundle_id mode created_at producer run transcripts tool_calls permissions hitl "
        "replay trace_spans usage child_runs redactions integrity".split()
    )
    assert bundle["_type"] == "harn_session_bundle"
    assert (bundle["schema_version"], bundle["mode"]) == (1, "sanitized")
    assert bundle["bundle_id"] == "bundle_0197b0a0-0000-7000-8000-000000000000"
    assert bundle["created_at"] == "2026-01-01T00:00:00.000Z"
    assert bundle["producer"]["name"] == "harnpy"
    assert bundle["run"] == {
        "id": "r", "workflow_id": "w", "workflow_name": None, "task": "review", "status": "completed",
        "started_at": "", "finished_at": None, "parent_run_id": None, "root_run_id": None,
    }  # fmt: skip
    assert validate_bundle(bundle) == []


def test_the_digest_is_that_of_the_canonical_json_without_integrity() -> None:
    import json

    bundle = export(run(stage("a", event("message", "für dich"))))
    rest = {key: value for key, value in bundle.items() if key != "integrity"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert bundle["integrity"] == {"algorithm": "sha256", "digest": sha256(text.encode()).hexdigest()}


def test_sections_of_transcripts() -> None:
    rows = [{"type": "message", "session_id": None}, {"type": "message", "session_id": "s9", "content": "hi"}]
    record = run(stage("a"), stage("b", transcript=None), transcript={"id": "s0", "messages": []})
    bundle = export(record, sidecar=rows)
    assert [(part["section"], part["session_id"]) for part in bundle["transcripts"]] == [
        ("run", "s0"), ("stage:r:a:1", "s-a"), ("sidecar", "s9"),
    ]  # fmt: skip
    assert bundle["transcripts"][2]["transcript"] == {"rows": rows}


def test_tool_calls_are_recordings_with_what_transcripts_know() -> None:
    recording = {
        "tool_name": "read",
        "tool_use_id": "c2",
        "args_hash": "ab",
        "result": "two",
        "duration_ms": 5,
    }
    rejected = event(
        "tool_execution", "no", "tool", tool_name="rm", tool_use_id="c3", rejected=True, arguments={"p": 1}
    )
    record = run(
        stage("a", *call("c1", {"n": 1}, "one"), *call("c2", {"n": 2}, "zwei")),
        stage("b", *call("c1", {"n": 1}, "one"), rejected),  # the second stage continues the first's session
        tool_recordings=[recording],
    )
    calls = export(record)["tool_calls"]
    assert [(call["tool_use_id"], call["result"], call["arguments"], call["stage_id"]) for call in calls] == [
        ("c2", "two", {"n": 2}, "r:a:1"), ("c1", "one", {"n": 1}, "r:a:1"), ("c3", "no", {"p": 1}, "r:b:1"),
    ]  # fmt: skip
    assert [(call["args_hash"], call["is_rejected"]) for call in calls] == [
        ("ab", False),
        (sha256(b'{"n":1}').hexdigest()[:16], False),
        (sha256(b'{"p":1}').hexdigest()[:16], True),
    ]  # fmt: skip


def test_a_recording_that_no_transcript_knows_has_no_arguments() -> None:
    bundle = export(run(tool_recordings=[{"tool_name": "read", "tool_use_id": "c1", "result": "x"}]))
    assert "arguments" not in bundle["tool_calls"][0]
    assert bundle["tool_calls"][0]["stage_id"] is None


def test_decisions_come_with_their_stage_once() -> None:
    deny = event("PermissionDeny", "no", tool_name="rm", arguments={"p": "/"}, reason="no")
    route = event(
        "live_session_permission_route", "r", client_id="web", request={"tool": "push"}, routed_at=NOW
    )
    ask, end = event("PermissionEscalation", "well"), event("tool_execution", "x", approval="host_granted")
    record = run(stage("a", deny, event("message", "m")), stage("b", deny, route, ask, end, *commands()))
    decisions = export(record)["permissions"]
    assert [(item["stage_id"], item["kind"], item["decision"], item["by"]) for item in decisions] == [
        ("r:a:1", "PermissionDeny", "denied", None),
        ("r:b:1", "PermissionEscalation", "routed", None),
        ("r:b:1", "tool_execution", "granted", "host"),
        ("r:b:1", "command_policy", "denied", "deny_patterns"),
        ("r:b:1", "command_policy", "granted", None),
        ("r:b:1", "live_session_permission_route", "routed", "web"),
    ]
    assert {**decisions[0], "at": None} == {
        "kind": "PermissionDeny", "at": None, "stage_id": "r:a:1", "tool_name": "rm",
        "arguments": {"p": "/"}, "decision": "denied", "reason": "no", "by": None,
    }  # fmt: skip
    assert (decisions[3]["arguments"], decisions[3]["reason"]) == ({"command": "rm x"}, "no rm")
    assert (decisions[5]["at"], decisions[5]["tool_name"]) == (NOW, "push")


def commands() -> list[Dict]:
    """A command that wasn't run, and one of which nothing is told but that it was."""
    denied = {"source": "deny_patterns", "reason": "no rm"}
    return [
        event("command_policy", "no rm", command="rm x", status="blocked", decisions=[{}, denied]),
        event("command_policy", "", status="allowed", decisions=None),
    ]


def test_what_people_were_asked_and_what_they_decided() -> None:
    questions = [{"request_id": "q", "prompt": "ok?", "asked_at": "1"}]
    bundle = export(run(hitl_questions=questions, metadata={"hitl": [APPROVED]}))
    approval, question = bundle["hitl"]
    assert approval == APPROVED
    assert question == {
        "request_id": "q", "kind": "question", "prompt": "ok?", "payload": {}, "agent": "", "trace_id": None,
        "requested_at": "1", "status": "pending", "responses": [],
    }  # fmt: skip
    assert bundle["permissions"] == [
        {"kind": "approval", "at": NOW, "stage_id": None, "tool_name": None, "arguments": {"to": "main"},
         "decision": "granted", "reason": "fine", "by": ["ann"], "request_id": "h1", "signatures": ["s"]},
    ]  # fmt: skip
    imported = import_bundle(bundle)
    assert imported["metadata"]["hitl"] == bundle["hitl"]
    assert [each["request_id"] for each in imported["hitl_questions"]] == ["q"]


def test_replay_only_keeps_who_typed_and_who_decided() -> None:
    typed = event("message", "hello", "user", live_session={"client_id": "web", "mode": "controller"})
    bundle = export(run(stage("a", typed), metadata={"hitl": [APPROVED]}), "replay_only")
    shown = bundle["transcripts"][0]["transcript"]["events"][0]
    assert shown["live_session"] == {"client_id": "web"}
    (request,), (decision,) = bundle["hitl"], bundle["permissions"]
    assert request["prompt"] == {"bytes": 4, "sha256": sha256(b"push").hexdigest()}
    (response,) = request["responses"]
    assert (response["reviewer"], response["approved"], response["signature"]) == ("ann", True, "s")
    assert response["reason"] == decision["reason"] == {"bytes": 4, "sha256": sha256(b"fine").hexdigest()}
    assert (decision["decision"], decision["by"], decision["request_id"]) == ("granted", ["ann"], "h1")
    assert validate_bundle(bundle) == []
    again = import_bundle(bundle, needs_transcripts=False)
    assert export(again, "replay_only")["hitl"] == bundle["hitl"]


def test_the_replay_section() -> None:
    record = run(
        stage("a", branch="success", artifacts=[{"kind": "diff"}, {"kind": " file "}]),
        stage("b", status="failed", outcome="verification_failed", verification={"kind": "x", "pass": False}),
        replay_fixture={"id": "fixture_1", "expected_status": "completed"},
    )
    replay = export(record)["replay"]
    assert replay["fixture"]["expected_status"] == "completed"
    assert replay["stages"] == [
        {"stage_id": "r:a:1", "node_id": "a", "status": "completed", "outcome": "success",
         "branch": "success", "artifact_kinds": ["diff", "workspace_file"], "verification_ok": None},
        {"stage_id": "r:b:1", "node_id": "b", "status": "failed", "outcome": "verification_failed",
         "branch": None, "artifact_kinds": [], "verification_ok": False},
    ]  # fmt: skip


# --- what is masked -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "API_KEY",
        "apiKey",
        "x-api-key",
        "db_password",
        "Authorization",
        "set-cookie",
        "PRIVATE_KEY",
        "accessToken",
        "clientSecret",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)
    assert without_secrets({name: "x", "n": [{name: 1}]}) == {name: "[redacted:secret]", "n": [{name: 1}]}


@pytest.mark.parametrize(
    "name", ["input_tokens", "tokens", "secretary", "password_hint", "keytoken", "cookies", "inputTokens"]
)
def test_names_of_no_secrets(name: str) -> None:
    assert not is_secret_name(name)
    assert without_secrets({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    "text",
    [
        "a risk-averse task-5f2a9c1e plan", "the bearer of bad news", "Use a bearer token.", "bearer tokens",
        "sk-", 'set {"input_tokens": "12"}', "AKIA", "ghp_", "flask-login and disk-usage", "-----BEGIN-----",
        "password: none", "next_token = parse2(x)", "Client(token=token, password=None)",
        "authorization: token based", "max_tokens=100000", "token=123456", "http://host1:8080/a@b",
        "secret: see RFC7515",
    ],
)  # fmt: skip
def test_prose_stays(text: str) -> None:
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"key={KEY}, ok", "key=[redacted:secret], ok"),
        ("Authorization: Bearer a.b-c", "Authorization: Bearer [redacted:secret]"),
        ("Authorization: Basic dXNlcjpwdw==", "Authorization: Basic [redacted:secret]"),
        ('{"password": "a\\"b", "n": 1}', '{"password": "[redacted:secret]", "n": 1}'),
        ("{'api_key': 'x'}", "{'api_key': '[redacted:secret]'}"),
        ("k -----BEGIN X KEY-----\nMII\n-----END X KEY----- z", "k [redacted:secret] z"),
        ("url?k=1%20ghp_abcdef", "url?k=1%20[redacted:secret]"),
        ("url?api_key=hunter2&n=1", "url?api_key=[redacted:secret]&n=1"),
        ("export DB_PASSWORD='hunter2!'", "export DB_PASSWORD='[redacted:secret]'"),
        (
            "X-Api-Key: hunter2\nCookie: sid=hunter2; x",
            "X-Api-Key: [redacted:secret]\nCookie: [redacted:secret]; x",
        ),
        ("authorization: token hunter2", "authorization: token [redacted:secret]"),
        ("postgres://bo:hunter@db/x", "postgres://bo:[redacted:secret]@db/x"),
    ],
)
def test_keys_in_texts(text: str, masked: str) -> None:
    assert mask_secrets(text) == masked


@pytest.mark.parametrize("origin", ["x", 5, [], {}, {"redactions": [5], "sidecar": [], "workspaces": []}])
def test_what_a_record_says_of_its_origin_may_be_somebody_elses(origin: Any) -> None:
    assert validate_bundle(export(run(metadata={"session_bundle": origin}))) == []


MODES = ("sanitized", "local", "replay_only")
ODD: list[Any] = [None, 5, "x", [], {}, [5], {"a": 1}]


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else [])
    for key, item in inner:
        yield (*above, key)
        yield from places(item, (*above, key))


@pytest.mark.parametrize("mode", MODES)
def test_a_bundle_of_odd_values_is_refused_or_makes_a_record_that_can_be_exported(mode: str) -> None:
    """However it came about: its integrity is right. Each mode tries others of the changes."""
    spoken = stage(
        "a", event("message", "hello", "assistant"), *call("c", {"f": 1}, "done"), visible_text="hello"
    )
    asked = {"request_id": "q", "prompt": "?", "agent": "a", "asked_at": "now"}
    made = run({**spoken, "artifacts": [{"kind": "summary"}]}, hitl_questions=[asked])
    made["child_runs"] = [{"worker_id": "w", "task": "t", "request": {"a": 1}}]
    bundle = export(made, mode, sidecar=[{"type": "message", "role": "user", "content": "hi"}])
    modes = itertools.cycle(MODES)
    changes = [*itertools.product(places(bundle), ODD)]
    for place, value in changes[MODES.index(mode) :: len(MODES) * COUNT.odd_share]:
        changed = copy.deepcopy(bundle)
        holder = changed
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = value
        changed.pop("integrity", None)
        changed = sealed(changed)
        problems = validate_bundle(changed)
        assert all(isinstance(problem, str) for problem in problems)
        if problems:
            with pytest.raises(BundleError):
                import_bundle(changed, needs_transcripts=False)
        else:
            taken = import_bundle(changed, needs_transcripts=False)
            assert export_run(taken, next(modes))


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        (["Authorization", "open"], ["Authorization", "[redacted:secret]"]),
        ({"name": "DB_PASSWORD", "value": ["open"]}, {"name": "DB_PASSWORD", "value": ["[redacted:secret]"]}),
        ({"key": "x-api-key", "value": "open"}, {"key": "x-api-key", "value": "[redacted:secret]"}),
        ({"name": "token", "kind": "open"}, {"name": "token", "kind": "open"}),
        (["password", "open"], ["password", "open"]),
        (["Authorization", "open", "x"], ["Authorization", "open", "x"]),
    ],
)
def test_entries_of_lists_of_headers(given: Any, masked: Any) -> None:
    assert without_secrets({"sent": [given]}) == {"sent": [masked]}


def test_keys_of_dicts_are_masked_and_stay_apart() -> None:
    given = {KEY: 1, "sk-another-1": "b", "plain": 2}
    assert without_secrets(given) == {"[redacted:secret]": 1, "[redacted:secret] 2": "b", "plain": 2}


def test_the_manifest_says_what_and_why() -> None:
    record = run(
        stage(
            "a",
            event("private_reasoning", "hm"),
            event("provider_payload", model="mock", input_tokens=3, cost_usd=0.1),
            *call("c1", {"password": "p", "file": "/etc/passwd"}, "y" * 40_000),
        ),
        task=f"use {KEY} in /home/bo/x",
        execution={"cwd": "/work/p", "env": {"MODE": "a1b2c3d4"}},
        child_runs=[
            {"worker_id": "w", "task": "run a1b2c3d4 in /work/p/src", "execution": {"env": {"X": "yes"}}}
        ],
    )
    record["stages"][0]["transcript"]["assets"] = [{"id": "a1", "data": {"deep": 1}}]
    bundle = export(record)
    events = "/transcripts/0/transcript/events"
    whole = sha256(b"y" * 40_000).hexdigest()
    assert {e["path"]: (e["reason"], e["action"], e.get("sha256")) for e in bundle["redactions"]} == {
        "/child_runs/0/execution/env/X": ("env", "removed", None),
        "/child_runs/0/task": ("env", "masked", None),
        "/run/task": ("secret", "masked", None),
        "/tool_calls/0/arguments/file": ("path", "hashed", None),
        "/tool_calls/0/arguments/password": ("secret", "masked", None),
        "/tool_calls/0/result": ("oversize", "truncated", whole),
        "/transcripts/0/transcript/assets/0/data": ("payload", "removed", None),
        f"{events}/0/text": ("reasoning", "removed", None),
        f"{events}/1/metadata": ("payload", "removed", None),
        f"{events}/2/metadata/arguments/file": ("path", "hashed", None),
        f"{events}/2/metadata/arguments/password": ("secret", "masked", None),
        f"{events}/3/text": ("oversize", "truncated", whole),
    }
    assert bundle["run"]["task"] == "use [redacted:secret] in ~/x"
    assert bundle["child_runs"][0]["task"] == "run [redacted:env] in /work/p/src"
    assert re.fullmatch(r"<path:[0-9a-f]{8}>", bundle["tool_calls"][0]["arguments"]["file"])
    transcript = bundle["transcripts"][0]["transcript"]
    assert transcript["assets"] == [{"id": "a1", "data": None}]
    assert transcript["events"][1]["metadata"] == {"model": "mock", "input_tokens": 3}
    assert len(bundle["tool_calls"][0]["result"]) < 33_000


def test_assets_and_reasoning_of_transcripts_of_any_make() -> None:
    row = {"type": "provider_call_response", "text": "hi", "thinking": [{"text": "hm"}]}
    request = {"type": "provider_call_request", "thinking": {"effort": "high"}}
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "hi"}]
    transcript = {
        "assets": [{"id": "a", "data": "d"}],
        "events": [],
        "messages": [{"content": blocks, "reasoning": "hm"}],
    }
    bundle = export(run(transcript=transcript), sidecar=[row, request])
    run_section, sidecar = (part["transcript"] for part in bundle["transcripts"])
    assert run_section["assets"] == [{"id": "a", "data": ""}]
    emptied = [{"type": "thinking", "thinking": "", "signature": ""}, {"type": "text", "text": "hi"}]
    assert run_section["messages"] == [{"content": emptied, "reasoning": ""}]
    assert sidecar["rows"] == [{**row, "thinking": None}, request]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/work/p/src/a.py:12", "/work/p/src/a.py:12"),
        ("/work/p/../secret/x", "<path>"),
        ("/work/project", "<path>"),
        ("open /etc/passwd.", "open <path>."),
        ("'/opt/x/y', /tmp", "'<path>', <path>"),
        ("/home/bo and /home/bo/a b", "~ and ~/a b"),
        ("/Users/bo/Library", "~/Library"),
        ("/root/.ssh/id", "~/.ssh/id"),
        ("/srv/people/bo/x", "~/x"),
        ("file:///etc/x/y", "file://<path>"),
        ("C:\\Users\\bo\\x D:\\data\\y", "~\\x <path>"),
        ("https://example.com/home/bo/x", "https://example.com/home/bo/x"),
        ("</b> and/or 1/2 ./a/b ../c ~/d /help a //x", "</b> and/or 1/2 ./a/b ../c ~/d /help a //x"),
    ],
)
def test_paths(text: str, shown: str) -> None:
    places = Places(["/work/p", "/", "relative"], home="/srv/people/bo")
    said = places.without_paths(places.without_home(text))
    assert re.sub("<path:[0-9a-f]{8}>", "<path>", said) == shown


def test_the_same_path_has_the_same_hash() -> None:
    places = Places()
    one, other = places.without_paths("/etc/a/b"), places.without_paths("x /etc/a/./b x")
    assert other == f"x {one} x"


@pytest.mark.parametrize(
    ("name", "value", "gone"),
    [
        ("DATABASE_URL", "postgres://u:p@host/db", True),
        ("DB_PASSWORD", "sesame", True),
        ("DB_PASSWORD", "abc", False),
        ("MODE", "production", False),
        ("DEBUG", "1", False),
        ("PORT", "18080", False),
        ("NUMBER", "4111111111111111", True),
        ("PHRASE", "abcdefghijklmnopqrstuvwxyz", True),
        ("LANG", "en_US.UTF-8", False),
        ("TERM", "xterm-256color", False),
        ("OPENAI_MODEL", "gpt-5-mini", False),
        ("HARN_LLM_MODEL", "gpt-5-mini", False),
        ("HARN_CLOUD_TOKEN", "gpt-5-mini", True),
    ],
)
def test_values_of_the_environment(name: str, value: str, gone: bool) -> None:
    text = Environment([{name: value}]).removed_from(f"a{value}b")
    assert text == ("a[redacted:env]b" if gone else f"a{value}b")


def test_a_longer_value_is_removed_before_one_that_is_part_of_it() -> None:
    environment = Environment([{"A": "abc-12345"}, {"B": "abc-12345-xyz"}])
    assert environment.removed_from("abc-12345-xyz") == "[redacted:env]"


def test_a_snippet_that_ends_within_a_secret() -> None:
    """The fixture keeps 80 characters of a text, and the first three of a value tell nobody what it is."""
    text = "x" * 70 + " a1b2-c3d4-e5f6"
    fixture = {"stage_assertions": [{"node_id": "a", "visible_text_contains": text[:80]}]}
    bundle = export(run(stage("a", visible_text=text), replay_fixture=fixture), env={"V": "a1b2-c3d4-e5f6"})
    path = "/replay/fixture/stage_assertions/0/visible_text_contains"
    shown = bundle["replay"]["fixture"]["stage_assertions"][0]["visible_text_contains"]
    assert shown == ("x" * 70 + " [redacted:env]")[:80]
    assert entry(bundle, path) == {"path": path, "reason": "env", "action": "masked"}


def test_replay_only_keeps_hashes_and_lengths() -> None:
    record = run(
        stage("a", *call("c1", {"n": 1}, "größe"), event("PermissionDeny", "no", reason="no")),
        trace_spans=[{"span_id": 1, "name": "x", "metadata": {"prompt": "p", "tokens": 3}}],
        child_runs=[{"worker_id": "w", "task": "t", "request": {"a": 1}}],
        hitl_questions=[{"request_id": "q", "prompt": "ok?"}],
    )
    bundle = export(record, "replay-only", sidecar=[{"type": "message", "role": "user", "content": "abc"}])
    hashed = sha256(b"review").hexdigest()
    assert bundle["mode"] == "replay_only"
    assert bundle["run"]["task"] == hashed
    assert entry(bundle, "/run/task") == {
        "path": "/run/task", "reason": "replay_only", "action": "hashed", "sha256": hashed,
    }  # fmt: skip
    execution = {"kind": "tool_execution", "role": "tool", "visibility": "internal", "bytes": 7}
    assert bundle["transcripts"][0]["transcript"]["events"][1] == execution
    assert bundle["transcripts"][1]["transcript"] == {
        "rows": [{"type": "message", "role": "user", "bytes": 3}]
    }
    assert not {"arguments", "result"} & bundle["tool_calls"][0].keys()
    assert bundle["tool_calls"][0]["args_hash"]
    assert bundle["trace_spans"][0]["metadata"] == {"tokens": 3}
    assert bundle["child_runs"][0]["request"] is None
    assert bundle["child_runs"][0]["task"] == sha256(b"t").hexdigest()
    assert bundle["hitl"][0]["prompt"] == {"bytes": 3, "sha256": sha256(b"ok?").hexdigest()}
    assert validate_bundle(bundle) == []


def test_an_unknown_mode() -> None:
    with pytest.raises(ValueError, match="unknown session bundle mode: public"):
        export(run(), "public")


def test_a_record_with_a_field_of_another_type() -> None:
    with pytest.raises(MisuseError, match="expected string, got int"):
        export(run(task=1))


# --- import ---------------------------------------------------------------------------------------


def test_an_imported_run_passes_its_fixture() -> None:
    said = {**event("message", "all is well", "assistant"), "visibility": "public"}
    fixture = {"stage_assertions": [{"node_id": node, "visible_text_contains": "all is"} for node in "ab"]}
    record = run(
        stage("a", said, artifacts=[{"kind": "handoff"}, {"kind": "note"}]),
        stage("b", transcript=None, verification={"ok": True}),
        replay_fixture=fixture,
        usage={"input_tokens": 3},
    )
    imported = import_bundle(export(record))
    first, second = imported["stages"]
    assert (imported["id"], imported["task"], imported["usage"]["input_tokens"]) == ("r", "review", 3)
    assert [artifact["kind"] for artifact in first["artifacts"]] == ["handoff", "note"]
    assert (first["visible_text"], second["visible_text"]) == ("all is well", "all is")
    assert second["verification"] == {"ok": True}
    assert imported["metadata"]["session_bundle"]["bundle_id"].startswith("bundle_")


def test_a_changed_run_is_another_bundle() -> None:
    bundle = export_run(run())
    imported = import_bundle(bundle)
    again = export_run({**imported, "status": "failed"})
    assert again["bundle_id"] != bundle["bundle_id"]
    assert export_run(imported)["bundle_id"] == bundle["bundle_id"]


def test_what_was_masked_before_stays_in_the_manifest_of_another_mode() -> None:
    imported = import_bundle(export(run(task="read /etc/passwd")))
    again = export(imported, "local")
    assert [entry["path"] for entry in again["redactions"]] == ["/run/task"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 2}, "unsupported session bundle version: 2"),
        ({"schema_version": True}, "unsupported session bundle version: True"),
        ({"_type": "run_record"}, "unsupported session bundle version: run_record"),
        ({"mode": "local"}, "session bundle integrity check failed"),
        ({"integrity": None}, "session bundle integrity check failed"),
    ],
)
def test_refusals(change: Dict, message: str) -> None:
    with pytest.raises(BundleError) as refused:
        import_bundle({**export(run()), **change})
    assert str(refused.value) == message


def test_a_replay_only_bundle_has_no_transcripts_to_import() -> None:
    bundle = export(run(stage("a")), "replay_only")
    with pytest.raises(BundleError) as refused:
        import_bundle(bundle)
    assert str(refused.value) == "session bundle has no transcript content (mode replay_only)"
    imported = import_bundle(bundle, needs_transcripts=False)
    assert [stage["node_id"] for stage in imported["stages"]] == ["a"]


def test_a_sealed_document_of_another_shape() -> None:
    bundle = sealed({**export(run()), "usage": [1]})
    with pytest.raises(BundleError, match="invalid session bundle: `usage` is not an object"):
        import_bundle(bundle)


def section(transcript: Dict) -> Dict:
    return {"section": "run", "session_id": None, "transcript": transcript}


# --- validation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"mode": "public"}, "`mode` is none of sanitized, local, replay_only"),
        ({"bundle_id": "x"}, "`bundle_id` is not the id of a bundle"),
        ({"created_at": "yesterday"}, "`created_at` is not an RFC 3339 time"),
        ({"producer": {}}, "`producer` has no name and version"),
        ({"run": {"id": "r"}}, "`run` lacks workflow_id, workflow_name, task, status"),
        ({"hitl": None}, "`hitl` is not a list of objects"),
        (
            {"transcripts": [{"section": "x", "session_id": None, "transcript": {}}]},
            "`transcripts/0/section` is none of",
        ),
        ({"tool_calls": [{"tool_name": "x"}]}, "`tool_calls/0` lacks tool_use_id"),
        ({"replay": {}}, "`replay` has no fixture and stages"),
        (
            {"redactions": [{"path": "/no/where", "reason": "env", "action": "masked"}]},
            "points to nothing: /no/where",
        ),
        (
            {"redactions": [{"path": "/usage", "reason": "fun", "action": "masked"}]},
            "unknown reason or action",
        ),
        ({"trace_spans": [{"name": KEY}]}, "a secret is left at /trace_spans/0/name"),
        ({"child_runs": [{"token": "x"}]}, "a secret is left at /child_runs/0/token"),
    ],
)
def test_problems(change: Dict, problem: str) -> None:
    problems = validate_bundle(sealed({**export(run()), **change}))
    assert len(problems) == 1
    assert problem in problems[0]
    assert KEY not in problems[0]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"run": {**export(run())["run"], "task": "do it"}}, "/run/task"),
        ({"transcripts": [section({"messages": []})]}, "/transcripts/0/transcript"),
        ({"transcripts": [section({"events": [{"text": "x"}]})]}, "/transcripts/0/transcript/events/0"),
        ({"hitl": [{"prompt": "ok?"}]}, "/hitl/0/prompt"),
        ({"hitl": [{"detail": "ok?"}]}, "/hitl/0"),
        ({"hitl": [{"responses": [{"answer": "x"}]}]}, "/hitl/0/responses/0/answer"),
        ({"permissions": [{"text": "no"}]}, "/permissions/0"),
        ({"child_runs": [{"request": "x"}]}, "/child_runs/0/request"),
        ({"trace_spans": [{"metadata": {"p": "x"}}]}, "/trace_spans/0/metadata/p"),
    ],
)  # fmt: skip
def test_text_in_a_replay_only_bundle(change: Dict, place: str) -> None:
    bundle = sealed({**export(run(), "replay_only"), **change})
    assert validate_bundle(bundle) == [f"text is left in a replay-only bundle at {place}"]
