"""`harnpy tokens`. Spec: 10 §C21, 08 §16."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from harnpy.cli.app import main
from harnpy.eventlog import SqliteEventLog, StoreEventLog
from harnpy.eventlog.bearer import BearerSessions
from harnpy.storage import open_store

Said = tuple[int, str, str]
Tokens = Callable[..., Said]


@pytest.fixture
def tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Said]:
    """Run a verb in a project's directory; return the status, stdout and stderr."""
    for name in ("BACKEND", "DIR", "SQLITE_PATH", "QUEUE_DEPTH"):
        monkeypatch.delenv(f"HARN_EVENT_LOG_{name}", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Said:
        status = main(["tokens", *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_a_token_is_given_out_once_and_revoked(tokens: Tokens, tmp_path: Path) -> None:
    status, out, err = tokens("create", "ada", "--days", "2")
    token = out.strip()
    assert (status, err, len(token)) == (0, "", 46)
    with closing(SqliteEventLog(tmp_path / ".harn/events.sqlite")) as log:
        sessions = BearerSessions(log)
        session = sessions.get(token)
        assert session
        assert (session.principal, (session.expires_at - session.created_at).days) == ("ada", 2)
        assert tokens("expire", token) == (0, "expired\n", "")
        assert sessions.get(token) is None
    place = f"sqlite:{tmp_path}/.harn/events.sqlite"
    assert tokens("expire", token) == (1, "", f"error: {place} has no live session with that token\n")
    assert not any(token.encode() in path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file())


def test_a_token_need_not_stand_on_the_command_line(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tokens("create", "ada")[1]
    monkeypatch.setattr("sys.stdin", io.StringIO(token))
    assert tokens("expire", "-") == (0, "expired\n", "")


def test_json_has_the_whole_session(tokens: Tokens) -> None:
    session = json.loads(tokens("create", "ada", "--json")[1])
    assert session["principal"] == "ada"
    begin, end = (datetime.fromisoformat(session[name]) for name in ("created_at", "expires_at"))
    assert (end - begin).days == 30


def test_where_events_are_kept(tokens: Tokens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "harn.toml").write_text('[event_log]\nstore = "jsonl:logs"')
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")

    def principal(url: str, *option: str) -> str | None:
        token = tokens(*option, "create", url)[1].strip()
        log = StoreEventLog(open_store(url))
        found = BearerSessions(log).get(token)
        log.close()
        return found and found.principal

    named = f"sqlite:{tmp_path}/named.db"
    assert principal(named, "--store", named) == named
    assert principal(f"jsonl:{tmp_path}/logs") == f"jsonl:{tmp_path}/logs"
    monkeypatch.setenv("HARN_EVENT_LOG_DIR", "elsewhere")
    assert principal(f"jsonl:{tmp_path}/logs") == f"jsonl:{tmp_path}/logs"
    monkeypatch.setenv("HARN_EVENT_LOG_BACKEND", "file")
    assert principal(f"jsonl:{tmp_path}/elsewhere") == f"jsonl:{tmp_path}/elsewhere"
    monkeypatch.setenv("HARN_EVENT_LOG_BACKEND", "sqlite")
    monkeypatch.setenv("HARN_EVENT_LOG_SQLITE_PATH", "e.db")
    assert principal(f"sqlite:{tmp_path}/e.db") == f"sqlite:{tmp_path}/e.db"


UNKNOWN = (
    "event log open error: no store is called `kafka:x`: "
    "a store's URL begins with one of memory:, jsonl:, sqlite:, postgresql:"
)


@pytest.mark.parametrize(
    ("manifest", "arguments", "message"),
    [
        ("", ["create", " "], "session principal must not be empty"),
        ("", ["--store", "kafka:x", "create", "a"], UNKNOWN),
        ('[event_log]\nstor = "x"', ["create", "a"], "`[event_log]` has no key `stor`"),
        ("[event_log]\nstore = 1", ["create", "a"], "`store` of `[event_log]` must be a string"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_one_line(
    tokens: Tokens, tmp_path: Path, manifest: str, arguments: list[str], message: str
) -> None:
    (tmp_path / "harn.toml").write_text(manifest)
    assert tokens(*arguments) == (1, "", f"error: {message}\n")
