"""`harnpy sessions export` and `import` in the formats of other systems. Spec: 10 §C17, §C21."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from harnpy.cli.app import main
from harnpy.session.events import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.storage import open_store
from harnpy.world import World
from tests.support import ROOT

Run = Callable[..., tuple[int, str, str]]

MESSAGES = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
STATE = {"id": "talk", "full_context": MESSAGES, "context_window": [], "memo": 1}


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a verb in a directory with a session `talk`; return the status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, store: str = "jsonl:store") -> tuple[int, str, str]:
        status = main(["sessions", "--store", store, *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    (tmp_path / "talk.json").write_text(json.dumps(STATE))
    assert run("import", "talk.json") == (0, "talk\n", "")
    return run


def test_out_and_in(sessions: Run, tmp_path: Path) -> None:
    for format in ("canto", "agently-json", "agently-yaml"):
        name = f"t.{ {'canto': 'jsonl', 'agently-yaml': 'yaml'}.get(format, 'json') }"
        assert sessions("export", "talk", "--format", format, "-o", name) == (0, f"session: {name}\n", "")
        assert sessions("import", name, store=f"jsonl:{format}") == (0, "talk\n", "")
        shown = sessions("show", "talk", "--history", store=f"jsonl:{format}")
        assert shown == sessions("show", "talk", "--history")
    assert json.loads(sessions("export", "talk", "--format", "agently-json")[1])["memo"] == 1


def test_losses_are_listed(sessions: Run, tmp_path: Path) -> None:
    lost = "lost: talk: cuts: 2 messages\nlost: talk: memo: 1 event\n"
    status, out, err = sessions("export", "talk", "--format", "cognesy")
    assert (status, json.loads(out)["header"]["sessionId"], err) == (0, "talk", lost)
    status, out, err = sessions("export", "--all", "--format", "cognesy", "-o", "out")
    kept = "kept: what a FILE doesn't hold is in FILE.harn.json, and is imported with it\n"
    assert (status, out, err) == (0, "session: out/talk.json\n", lost + kept)
    status, out, err = sessions("export", "talk", "--format", "openai-chat", "-o", "talk.json")
    assert err.endswith("kept: talk.json.harn.json holds the rest, and is imported with talk.json\n")
    assert sessions("import", "talk.json", store="jsonl:back")[:2] == (0, "talk\n")
    assert sessions("export", "talk", store="jsonl:back") == sessions("export", "talk")
    status, out, err = sessions("export", "talk", "--format", "html", "-o", "talk.html")
    assert (status, "kept" in err, (tmp_path / "talk.html.harn.json").exists()) == (0, False, False)
    status, out, err = sessions("export", "talk", "--format", "cognesy", "--strict")
    assert (status, out) == (1, "")
    assert err == "error: this format can't hold everything of it: talk: cuts: 2 messages\n"


def test_a_directory(sessions: Run, tmp_path: Path) -> None:
    sessions("export", "--all", "--format", "canto", "-o", "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["ancestry.jsonl", "talk.jsonl"]
    (tmp_path / "out" / "bad.json").write_text("{")
    status, out, err = sessions("import", "out", store="jsonl:other")
    assert (status, out) == (1, "talk\n")
    assert err.startswith("error: out/bad.json: Cannot load JSON content or file path not existed. Error: ")
    assert sessions("import", "out", "--on-conflict", "skip")[:2] == (
        1,
        "out/talk.jsonl: skipped (there is one already)\n",
    )
    assert sessions("import", "out", "--strict", store="jsonl:strict")[:2] == (1, "talk\n")
    assert sessions("import", "out", "--id", "x")[0] == 2


def test_a_torn_line_is_said(sessions: Run, tmp_path: Path) -> None:
    sessions("export", "talk", "--format", "canto", "-o", "t.jsonl")
    text = (tmp_path / "t.jsonl").read_text()
    (tmp_path / "t.jsonl").write_text(text[:-9])
    status, out, err = sessions("import", "t.jsonl", "--id", "torn")
    assert (status, out) == (0, "torn\n")
    assert err.startswith("lost: talk: torn line: ")
    assert sessions("import", "t.jsonl", "--id", "strict", "--strict")[:2] == (0, "strict\n")


def test_a_file_of_no_known_format(sessions: Run, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x")
    assert sessions("import", "x.txt") == (
        1,
        "",
        "error: x.txt: cannot tell its format: name it by `format` or `--format`\n",
    )


def test_conversations_of_other_tools_come_in_and_grow(sessions: Run, tmp_path: Path) -> None:
    folder = ROOT / "tests" / "session" / "transfer" / "transcripts"
    status, out, err = sessions("import", str(folder / "claude_code"), str(folder / "codex"))
    ids = out.split()
    assert (status, len(ids)) == (0, 5)
    assert all(line.startswith("lost: claude-code-") for line in err.splitlines())
    assert sessions("import", str(folder / "codex"))[1].count(": skipped (nothing new)\n") == 2
    status, out, err = sessions("export", ids[-1], "--format", "claude-code", "-o", "talk.jsonl")
    assert (status, out) == (0, "session: talk.jsonl\n")
    assert "thoughts of other services: 4 blocks" in err
    (tmp_path / "bad.jsonl").write_text((tmp_path / "talk.jsonl").read_text() + "oops\n")
    assert sessions("import", "bad.jsonl")[0] == 1
    assert sessions("import", "bad.jsonl", "--partial")[0] == 0


AGENTS = ROOT / "tests/session/transfer/frameworks/openai_agents.db"


def test_a_file_of_several_sessions_takes_no_id(sessions: Run) -> None:
    status, out, err = sessions("import", str(AGENTS), "--id", "ann")
    assert (status, out) == (1, "")
    assert err == (
        f"error: {AGENTS}: it holds 2 sessions (other, talk), and an id is for one: import it without --id; "
        "with --prefix '' each keeps its own\n"
    )


def test_a_file_of_one_session_takes_an_id(sessions: Run, tmp_path: Path) -> None:
    copy = tmp_path / "one.db"
    copy.write_bytes(AGENTS.read_bytes())
    with closing(sqlite3.connect(copy)) as database, database:
        database.execute("DELETE FROM agent_sessions WHERE session_id = 'other'")
    assert sessions("import", str(copy), "--id", "ann")[:2] == (0, "ann\n")


@pytest.mark.parametrize(
    ("prefix", "ids"), [("", ["talk", "other"]), ("moved/", ["moved/talk", "moved/other"])]
)
def test_ids_of_other_tools_begin_as_is_asked_for(sessions: Run, prefix: str, ids: list[str]) -> None:
    """Losses name the sessions by these ids, too, and an import again finds them."""
    status, out, err = sessions("import", str(AGENTS), "--prefix", prefix, store="jsonl:own")
    assert (status, sorted(out.split())) == (0, sorted(ids))
    assert "openai-agents-" not in err
    again = sessions("import", str(AGENTS), "--prefix", prefix, store="jsonl:own")[1]
    assert again.count(": skipped (nothing new)\n") == 2


def test_a_list_of_messages_takes_a_prefix(sessions: Run, tmp_path: Path) -> None:
    listed = ROOT / "tests/session/transfer/frameworks/pydantic_ai.json"
    name = sessions("import", str(listed), store="jsonl:named")[1].strip()
    own = sessions("import", str(listed), "--prefix", "", store="jsonl:own")[1].strip()
    assert name == f"pydantic-ai-{own}"


def test_what_was_added_here_becomes_a_branch_that_can_be_continued(sessions: Run, tmp_path: Path) -> None:
    """After both sides have grown. A second import, and one after nothing was added here, say nothing."""
    file = tmp_path / "chat.json"

    def grow(*texts: str) -> tuple[int, str, str]:
        said = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
        file.write_text(json.dumps({"id": "c", "messages": said}))
        return sessions("import", str(file))

    id = "openai-chat-c"
    assert grow("a", "b") == (0, f"{id}\n", "")
    assert grow("a", "b", "c") == (0, f"{id}\n", "")
    with closing(open_store("jsonl:store")) as store:
        session = StoredSession.load(id, store, World())
        assert session is not None
        for text in ("ours", "ours, too"):
            session.append(EventDraft("message_added", {"role": "user", "content": text}))
        last = session.seq
    status, out, err = grow("a", "b", "c", "d")
    assert (status, out) == (0, f"{id}\n")
    assert err == (
        f"branch: {id}: 2 messages added here are now a branch that ends at event {last}: "
        f"`harnpy sessions fork {id} NEW --at {last}` continues it\n"
    )
    assert "ours" not in sessions("show", id)[1]
    assert sessions("fork", id, "NEW", "--at", str(last))[0] == 0
    assert sessions("show", "NEW")[1] == "user: a\nassistant: b\nuser: c\nuser: ours\nuser: ours, too\n"
    assert grow("a", "b", "c", "d")[2] == ""
    assert grow("a", "b", "c", "d", "e")[2] == ""


def test_an_imported_call_is_shown_as_a_native_one(sessions: Run) -> None:
    sessions("import", str(AGENTS))
    shown = sessions("show", "openai-agents-talk")[1]
    assert 'assistant: I look.\n  -> look({"at":"red"})\n  -> look({"at":"blue"})\n' in shown
    assert "<tool_use>" not in shown
