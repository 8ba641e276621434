"""Logs that something else than a crash has damaged: nothing that was acknowledged is left out in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnpy.faces import cognesy
from harnpy.session import SessionRuntime
from harnpy.storage.errors import CorruptLog
from tests.counts import COUNT


def test_no_changed_byte_of_a_last_line_loads_an_older_session(tmp_path: Path) -> None:
    url, log = f"jsonl:{tmp_path}/s?durability=relaxed", tmp_path / "s" / "logs" / "s.jsonl"
    with SessionRuntime(url) as runtime:
        session = runtime.create(id="s")
        session.append_user("a")
        session.append_user("b")
    whole = log.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for at in range(start, len(whole) - 1, COUNT.bytes_share):
        for bit in (0, 5):
            changed = bytearray(whole)
            changed[at] ^= 1 << bit
            if changed[at] == 10:
                continue
            log.write_bytes(changed)
            with SessionRuntime(url) as runtime, pytest.raises(CorruptLog) as caught:
                runtime.get("s").messages()
            assert "line 3" in str(caught.value)
            assert log.read_bytes() == changed
    for end in range(start + 1, len(whole), COUNT.bytes_share):
        log.write_bytes(whole[:end])
        with SessionRuntime(url) as runtime:
            assert runtime.get("s").messages() == [{"role": "user", "content": "a"}]


def test_cognesys_name_for_it(tmp_path: Path) -> None:
    store = cognesy.FileSessionStore(str(tmp_path))
    repository = cognesy.SessionRepository(store)
    definition = cognesy.AgentDefinition(name="a", description="", system_prompt="")
    created = repository.create(cognesy.SessionFactory().create(definition))
    saved = repository.save(created.with_state(created.state.with_metadata("ticket", "OPS-142")))
    (log,) = (path for path in tmp_path.rglob("*.jsonl") if str(saved.session_id) in path.name)
    log.write_bytes(log.read_bytes().replace(b"OPS-142", b"OPS-242"))
    again = cognesy.SessionRepository(cognesy.FileSessionStore(str(tmp_path)))
    with pytest.raises(cognesy.InvalidSessionFileException):
        again.load(saved.session_id)
