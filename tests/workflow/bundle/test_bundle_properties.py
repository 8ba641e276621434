"""What holds for the bundle of any run. Spec: 08 §17."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats.secrets.masking import mask_secrets
from harnpy.formats.shapes import read
from harnpy.workflow.artifacts import normal_kind
from harnpy.workflow.bundle import export_run, import_bundle, validate_bundle
from harnpy.workflow.bundle.sections import SECTIONS, sections
from harnpy.workflow.records.record_shapes import RunRecord, plain_json
from tests.counts import COUNT
from tests.workflow.run_records import RUNS, SIDECARS, differences, planted, strings

Dict = dict[str, Any]

#: A text to plant, and the part of it that must be gone.
KEYS = {
    "openai": ("sk-proj-4fTq9LxB72", "sk-proj-4fTq9LxB72"),
    "anthropic": ("(sk-ant-api03-abc_DEF-123)", "sk-ant-api03-abc_DEF-123"),
    "github": ("token ghp_16C7e42F292c6912E7710c838347Ae178B4a.", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
    "aws": ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    "bearer": ("Authorization: Bearer mF_9.B5f-4.1JqM", "mF_9.B5f-4.1JqM"),
    "lower bearer": ("'authorization':'bearer hunter2hunter2'", "hunter2hunter2"),
    "url": ("git clone https://bo:hunter2hunter2@host/x.git", "hunter2hunter2"),
    "variable": ("MY_API_KEY=hunter2hunter2", "hunter2hunter2"),
    "pem": (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
        "MIIEpAIBAAKCAQEA",
    ),
    "cut pem": ("-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBgkqhki", "MIIEvgIBADANBgkqhki"),
    "escaped": ('{"body": "first\\nsk-abc123DEF"}', "sk-abc123DEF"),
    "member": ('{"user": "bo", "api_key": "swordfish"}', "swordfish"),
    "escaped member": ('"{\\"db-password\\": \\"sword\\\\\\"fish\\"}"', "fish"),
}
PLACES = {
    "home": ("see /home/bobby/notes.txt", "bobby"),
    "mac": ('"/Users/bobby"', "bobby"),
    "windows": ("C:\\Users\\bobby\\x", "bobby"),
    "flag": ("cc -I/home/bobby/include", "bobby"),
    "file": ("cat /etc/ssl/private/site.pem", "site.pem"),
    "list": ("PATH=/opt/gizmos/bin:/home/bobby/bin", "gizmos"),
    "url": ("file:///var/lib/hideout/x.db", "hideout"),
    "drive": ("D:\\data\\hideout\\x.db", "hideout"),
    "environment": ("value s3cr3t-pa55word!", "s3cr3t-pa55word!"),
}
SLOW = settings(max_examples=COUNT.examples(5))


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def raw(run: Dict, sidecar: list[Dict]) -> Dict:
    """What a bundle takes from a run, as it is."""
    known = read(RunRecord, plain_json(run))
    for stage in known["stages"]:
        stage["artifacts"] = [{"kind": normal_kind(artifact["kind"])} for artifact in stage["artifacts"]]
    return sections(known, known["replay_fixture"], sidecar)


@SLOW
@given(run=RUNS, sidecar=SIDECARS, first=st.integers(0, 2))
def test_no_secret_survives_wherever_it_stands(run: Dict, sidecar: list[Dict], first: int) -> None:
    """Any of them, in the same run, in a mode that changes from one to the next and from run to run."""
    for number, (text, gone) in enumerate(KEYS.values(), first):
        mode = ("sanitized", "local", "replay_only")[number % 3]
        bundle = export_run(planted(run, text), mode, sidecar=planted(sidecar, text))
        assert not [found for found in strings(bundle) if gone in found], mode
        assert validate_bundle(bundle) == [], mode


@SLOW
@given(run=RUNS, sidecar=SIDECARS)
def test_sanitized_tells_nothing_of_the_machine(run: Dict, sidecar: list[Dict]) -> None:
    env = {"SOME_VALUE": "s3cr3t-pa55word!"}
    for text, gone in PLACES.values():
        bundle = export_run(planted(run, text), sidecar=planted(sidecar, text), env=env)
        assert not [found for found in strings(bundle) if gone in found]


@SLOW
@given(
    run=RUNS, name=st.sampled_from(["password", "X-Api-Key", "session_token", "Set-Cookie", "PRIVATE_KEY"])
)
def test_what_stands_under_a_telling_key_is_masked(run: Dict, name: str) -> None:
    secret = {name: "open sesame", "deep": [{name: ["open sesame", {"inner": "open sesame"}]}]}
    run["child_runs"] = [{"worker_id": "w", "request": secret, "provenance": [secret]}]
    run["trace_spans"] = [{"span_id": 1, "metadata": secret}]
    run["transcript"] = {"messages": [{"role": "user", "content": [secret]}], "events": []}
    for mode in ("sanitized", "local", "replay_only"):
        assert "open sesame" not in dumped(export_run(run, mode))


@SLOW
@given(run=RUNS, sidecar=SIDECARS)
def test_sanitized_has_no_reasoning(run: Dict, sidecar: list[Dict]) -> None:
    for transcript in [run["transcript"], *(stage["transcript"] for stage in run["stages"])]:
        for event in (transcript or {"events": []})["events"]:
            if event["kind"] == "private_reasoning":
                event["text"] = event["blocks"][0]["text"] = "I secretly think"
    sidecar = [
        {**row, "thinking": "I secretly think"} for row in sidecar if row["type"] == "provider_call_response"
    ]
    assert "secretly think" not in dumped(export_run(run, sidecar=sidecar))


@SLOW
@given(run=RUNS, sidecar=SIDECARS)
def test_replay_only_has_no_text(run: Dict, sidecar: list[Dict]) -> None:
    marked = planted(run, "quixotic", names=False)
    bundle = export_run(marked, "replay_only", sidecar=planted(sidecar, "quixotic", names=False))
    assert "quixotic" not in dumped(bundle)
    assert validate_bundle(bundle) == []


@SLOW
@given(run=RUNS, sidecar=SIDECARS)
def test_local_is_verbatim(run: Dict, sidecar: list[Dict]) -> None:
    expected = raw(run, sidecar)
    bundle = export_run(run, "local", sidecar=sidecar)
    assert bundle["redactions"] == []
    assert {name: bundle[name] for name in SECTIONS} == expected


@pytest.mark.parametrize("mode", ["sanitized", "local"])
@SLOW
@given(
    run=RUNS, sidecar=SIDECARS, text=st.sampled_from([text for text, _ in [*KEYS.values(), *PLACES.values()]])
)
def test_every_altered_value_has_one_entry(mode: str, run: Dict, sidecar: list[Dict], text: str) -> None:
    changed = planted({**run, "id": "run_1"}, text)
    changed = json.loads(
        dumped(changed).replace(f' {json.dumps(text, ensure_ascii=False)[1:-1]}":', '":')
    )  # keys stay
    bundle = export_run(changed, mode, sidecar=sidecar)
    paths = [entry["path"] for entry in bundle["redactions"]]
    altered = set(differences(raw(changed, sidecar), {name: bundle[name] for name in SECTIONS}))
    assert paths == sorted(set(paths))
    for place in altered:
        assert any(place == path or place.startswith(f"{path}/") for path in paths), place
    for path in paths:
        assert any(place == path or place.startswith(f"{path}/") for place in altered), path


@pytest.mark.parametrize("mode", ["sanitized", "local"])
@SLOW
@given(
    run=RUNS,
    sidecar=SIDECARS,
    text=st.sampled_from(
        ["", *(text for text, _ in [*KEYS.values(), *PLACES.values()]), "in /work/place/a.py"]
    ),
)
def test_an_imported_run_is_exported_as_the_same_bundle(
    mode: str, run: Dict, sidecar: list[Dict], text: str
) -> None:
    run["execution"] = {"cwd": "/work/place", "env": {"NAME": "s3cr3t-pa55word!"}}
    bundle = export_run(planted(run, text), mode, sidecar=planted(sidecar, text))
    imported = import_bundle(json.loads(dumped(bundle)))
    saved = read(RunRecord, json.loads(dumped(imported)))
    assert dumped(export_run(saved, mode)) == dumped(bundle)


@SLOW
@given(run=RUNS, mode=st.sampled_from(["sanitized", "local", "replay_only"]), data=st.data())
def test_any_flipped_bit_is_noticed(run: Dict, mode: str, data: st.DataObject) -> None:
    bundle = export_run(run, mode)
    flipped = bytearray(dumped(bundle).encode())
    at = data.draw(st.integers(0, len(flipped) - 1))
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        read_back = json.loads(flipped.decode())
    except ValueError:
        return
    # `\u001f` and `\u001F`, `1e20` and `1E20`: another spelling of the same document.
    assert validate_bundle(read_back) or dumped(read_back) == dumped(bundle)


@given(st.text(st.sampled_from("sk-ghp_AKIABearer /home~<>[]:\\\"'token=\n123")))
def test_masked_text_is_not_masked_again(text: str) -> None:
    once = mask_secrets(text)
    for _ in range(4):
        once = mask_secrets(once)
    assert mask_secrets(once) == once


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_whatever_it_is_given_validation_answers(value: Any) -> None:
    assert validate_bundle(value)


@SLOW
@given(run=RUNS, data=st.data())
def test_a_bundle_with_anything_in_place_of_a_section_is_no_error(run: Dict, data: st.DataObject) -> None:
    bundle = export_run(run)
    name = data.draw(st.sampled_from(sorted(bundle)))
    bundle[name] = data.draw(st.sampled_from([None, 1, "x", [], {}, [None], [{}], {"events": 1}]))
    assert isinstance(validate_bundle(bundle), list)
