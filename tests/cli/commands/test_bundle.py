"""`harnpy bundle export | validate | import`. Spec: 09 §9."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy.cli.app import main

Write = Callable[[str, str], str]
Capture = pytest.CaptureFixture[str]

RUN = {
    "_type": "run_record", "id": "r", "workflow_id": "w", "task": "use sk-proj-4fTq9LxB72",
    "status": "completed",
    "stages": [{"id": "r:a:1", "node_id": "a", "transcript": {"id": "s", "messages": [], "events": []}}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(write: Write) -> str:
    return write("run.json", json.dumps(RUN))


def document(capsys: Capture) -> Any:
    return json.loads(capsys.readouterr().out)


def test_export_prints_the_bundle(run: str, capsys: Capture) -> None:
    assert main(["bundle", "export", run]) == 0
    bundle = document(capsys)
    assert (bundle["mode"], bundle["run"]["task"]) == ("sanitized", "use [redacted:secret]")


@pytest.mark.parametrize(("option", "mode"), [("local", "local"), ("replay-only", "replay_only")])
def test_export_in_a_mode(run: str, option: str, mode: str, capsys: Capture) -> None:
    assert main(["bundle", "export", run, "--mode", option]) == 0
    assert document(capsys)["mode"] == mode


@pytest.mark.parametrize("option", ["-o", "--out"])
def test_export_to_a_file(run: str, option: str, capsys: Capture, here: Path) -> None:
    assert main(["bundle", "export", run, option, "out/b.json"]) == 0
    assert capsys.readouterr().out == "session bundle: out/b.json\n"
    assert json.loads((here / "out/b.json").read_text())["_type"] == "harn_session_bundle"
    assert [path.name for path in (here / "out").iterdir()] == ["b.json"]


def test_export_takes_the_sidecar_along(run: str, write: Write, capsys: Capture) -> None:
    write("run-llm/llm_transcript.jsonl", '{"type": "message", "session_id": "s"}\n{"type": "mess')
    assert main(["bundle", "export", run]) == 0
    sidecar = document(capsys)["transcripts"][-1]
    rows = [{"type": "message", "session_id": "s"}]
    assert sidecar == {"section": "sidecar", "session_id": "s", "transcript": {"rows": rows}}


def test_export_hides_the_environment(
    write: Write, capsys: Capture, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SETTING", "s3cr3t-pa55word!")
    run = write("run.json", json.dumps({**RUN, "task": f"s3cr3t-pa55word! {here}/a /etc/x/y"}))
    assert main(["bundle", "export", run]) == 0
    task = document(capsys)["run"]["task"]
    assert task.startswith(f"[redacted:env] {here}/a <path:")


def test_export_of_no_run(capsys: Capture, write: Write) -> None:
    assert main(["bundle", "export", "none.json"]) == 1
    assert capsys.readouterr().err == (
        "failed to read run record: No such file or directory (os error 2)\n  --> none.json\n"
    )
    assert main(["bundle", "export", write("bad.json", "{")]) == 1
    assert capsys.readouterr().err.startswith("failed to parse run record: ")


@pytest.mark.parametrize("text", ['{"id": NaN}', '{"transcript": ' + "[" * 9999 + "]" * 9999 + "}"])
def test_export_of_a_broken_run(text: str, capsys: Capture, write: Write) -> None:
    assert main(["bundle", "export", write("run.json", text)]) == 1
    assert capsys.readouterr().err.startswith("failed to parse run record: ")


def test_what_a_bundle_says_cannot_steer_the_terminal(capsys: Capture, write: Write) -> None:
    hostile = {"_type": "harn_session_bundle", "schema_version": "\x1b[2J\ud800"}
    file = write("b.json", json.dumps(hostile))
    for command in (["validate"], ["validate", "--json"], ["import"]):
        assert main(["bundle", *command, file]) == 1
        shown = capsys.readouterr()
        assert "\x1b" not in shown.out + shown.err
        (shown.out + shown.err).encode()


def test_export_in_no_mode(run: str, capsys: Capture) -> None:
    assert main(["bundle", "export", run, "--mode", "public"]) == 2
    assert "invalid value for '--mode'" in capsys.readouterr().err


def test_validate(run: str, capsys: Capture) -> None:
    main(["bundle", "export", run, "-o", "b.json"])
    capsys.readouterr()
    assert main(["bundle", "validate", "b.json"]) == 0
    id = json.loads(Path("b.json").read_text())["bundle_id"]
    assert capsys.readouterr().out == f"OK {id} (sanitized)\n"
    assert main(["bundle", "validate", "b.json", "--json"]) == 0
    assert document(capsys) == {"valid": True, "bundle_id": id, "mode": "sanitized", "problems": []}


def test_validate_finds_what_is_wrong(run: str, write: Write, capsys: Capture) -> None:
    main(["bundle", "export", run, "-o", "b.json"])
    write("b.json", Path("b.json").read_text().replace("completed", "failed"))
    capsys.readouterr()
    assert main(["bundle", "validate", "b.json"]) == 1
    assert capsys.readouterr().out == "INVALID\nsession bundle integrity check failed\n"
    assert main(["bundle", "validate", "b.json", "--json"]) == 1
    report = document(capsys)
    assert (report["valid"], report["problems"]) == (False, ["session bundle integrity check failed"])


def test_validate_what_is_no_bundle(run: str, write: Write, capsys: Capture) -> None:
    assert main(["bundle", "validate", run]) == 1
    assert capsys.readouterr().out.startswith("INVALID\nnot a session bundle: ")
    assert main(["bundle", "validate", write("x.json", "no")]) == 1
    assert capsys.readouterr().out.startswith("INVALID\nnot a session bundle: ")
    assert main(["bundle", "validate", write("deep.json", "[" * 100_000)]) == 1
    assert capsys.readouterr().out.startswith("INVALID\nnot a session bundle: ")
    assert main(["bundle", "validate", "none.json"]) == 1
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["sanitized", "local"])
def test_a_bundle_goes_round(run: str, mode: str, write: Write, capsys: Capture) -> None:
    write("run-llm/llm_transcript.jsonl", '{"type": "message", "session_id": "s", "content": "größe"}\n')
    main(["bundle", "export", run, "--mode", mode, "-o", "b.json"])
    assert main(["bundle", "import", "b.json", "-o", "other.json"]) == 0
    assert capsys.readouterr().out.endswith("run record: other.json\n")
    assert json.loads(Path("other.json").read_text())["_type"] == "run_record"
    main(["bundle", "export", "other.json", "--mode", mode, "-o", "b2.json"])
    assert Path("b.json").read_bytes() == Path("b2.json").read_bytes()


def test_import_prints_the_run(run: str, capsys: Capture) -> None:
    main(["bundle", "export", run, "-o", "b.json"])
    capsys.readouterr()
    assert main(["bundle", "import", "b.json"]) == 0
    assert document(capsys)["id"] == "r"


def test_import_refuses(run: str, write: Write, capsys: Capture) -> None:
    main(["bundle", "export", run, "--mode", "replay-only", "-o", "b.json"])
    assert main(["bundle", "import", "b.json", "-o", "r.json"]) == 1
    assert capsys.readouterr().err == "session bundle has no transcript content (mode replay_only)\n"
    assert not Path("r.json").exists()
    assert main(["bundle", "import", run]) == 1
    assert capsys.readouterr().err == "unsupported session bundle version: run_record\n"
    assert main(["bundle", "import", write("x.json", "no")]) == 1
    assert capsys.readouterr().err.startswith("not a session bundle: ")


def test_session_is_an_alias(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["session", "export", run]) == 0
    assert json.loads(capsys.readouterr().out)["_type"]


@pytest.mark.parametrize("verb", ["list", "show", "fsck"])
def test_session_names_its_namesake_for_the_verbs_of_that(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["session", verb]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"harnpy session {verb}: did you mean `harnpy sessions {verb}`?\n")
