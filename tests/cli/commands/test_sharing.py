"""`harnpy sessions share`. Spec: 11 §1.2, 10 §C21."""

from __future__ import annotations

import json
from pathlib import Path

from harnpy.session.runtime import SessionRuntime
from tests.support import Command


def test_a_session_is_shared_shown_and_taken_back(harnpy: Command, tmp_path: Path) -> None:
    with SessionRuntime(f"sqlite:{tmp_path}/s.db") as runtime:
        runtime.create(id="talk", metadata={"principal": "ada"})
        runtime.attach("talk", "tab", metadata={"serve.principal": "boss"})
    sessions = ("sessions", "--store", "sqlite:s.db")
    assert harnpy(*sessions, "share", "talk").stdout == "session 'talk' is shared with nobody\n"
    assert harnpy(*sessions, "share", "talk", "bob").stdout.split() == ["principal", "scopes", "bob", "read"]
    harnpy(*sessions, "share", "talk", "boss", "--scope", "approve", "--scope", "write")
    shown = harnpy("sessions", "--store", "sqlite:s.db", "--json", "share", "talk").stdout
    assert json.loads(shown) == {
        "session": "talk", "owner": "ada", "shares": {"bob": ["read"], "boss": ["write", "approve"]},
    }  # fmt: skip
    left = harnpy(*sessions, "share", "talk", "boss", "--remove").stdout
    assert left.split() == ["principal", "scopes", "bob", "read"]
    with SessionRuntime(f"sqlite:{tmp_path}/s.db") as runtime:
        assert runtime.clients("talk") == []


def test_what_is_wrong_with_a_share_is_one_line(harnpy: Command, tmp_path: Path) -> None:
    with SessionRuntime(f"sqlite:{tmp_path}/s.db") as runtime:
        runtime.create(id="talk", metadata={"principal": "ada"})
    sessions = ("sessions", "--store", "sqlite:s.db", "share")
    for given, status, told in (
        (("talk", "ada"), 1, "session 'talk' belongs to 'ada': share it with somebody else"),
        (("none", "bob"), 1, "'none'"),
        (("talk", "--remove"), 2, "--remove takes a PRINCIPAL"),
        (("talk", "bob", "--scope", "all"), 2, "expected one of read, write, approve"),
    ):
        done = harnpy(*sessions, *given)
        assert (done.returncode, told in done.stderr, done.stdout) == (status, True, ""), done.stderr
