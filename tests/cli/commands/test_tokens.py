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


def test_what_a_token_may_do_is_listed(tokens: Tokens, tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path}/.harn/events.sqlite"
    assert tokens("list") == (0, f"no live sessions in {place}\n", "")
    limits = ("--requests-per-minute", "60", "--cost-per-day", "2.5")
    token = tokens("create", "ada", "--scope", "read", "--scope", "approve", "--scope", "read", *limits)[
        1
    ].strip()
    with closing(SqliteEventLog(tmp_path / ".harn/events.sqlite")) as log:
        session = BearerSessions(log).get(token)
        assert session
        assert session.attributes == {
            "scopes": ["read", "approve"], "requests_per_minute": 60, "cost_per_day": 2.5,
        }  # fmt: skip
    tokens("create", "eve", "--days", "1e-9")
    plain = tokens("create", "bob")[1].strip()
    status, out, err = tokens("list")
    lines = [line.split() for line in out.splitlines()]
    assert (status, err, len(lines)) == (0, "", 3)
    assert (lines[1][:5], lines[2][0]) == (["ada", "read,", "approve", "60", "$2.5"], "bob")
    listed = tokens("list", "--json")[1]
    assert [each["principal"] for each in json.loads(listed)] == ["ada", "bob"]
    assert not any(secret in out + listed for secret in (token, plain))


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
