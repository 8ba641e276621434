"""A SQLite database with a changed byte: whatever is done with it says that it is damaged, or works."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from harnpy.faults import Fault
from harnpy.session import SessionRuntime
from tests.counts import COUNT

VERBS: list[Callable[[SessionRuntime], Any]] = [
    lambda runtime: runtime.list(),
    lambda runtime: runtime.get("s").events()[-1].data,
    lambda runtime: (runtime.get("s").messages(), runtime.info("s"), runtime.lineage("t")),
    lambda runtime: runtime.search("message"),
    lambda runtime: runtime.get("s").append_user("more"),
    lambda runtime: runtime.get("t").fork("u"),
    lambda runtime: runtime.store.fsck(),
    lambda runtime: runtime.delete("s", hard=True),
]


def test_a_changed_byte_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    url = f"sqlite:{file}?durability=relaxed"
    with SessionRuntime(url) as runtime:
        session = runtime.create(id="s")
        for number in range(3):
            session.append_user(f"message {number}")
        session.fork("t")
        session.trim(1)
        session.set_memo("x")
        session.snapshot()
    whole = file.read_bytes()
    written = [at for at, byte in enumerate(whole) if byte]
    for number, at in enumerate(written[:: COUNT.database_share]):
        for other in tmp_path.iterdir():
            other.unlink()
        changed = bytearray(whole)
        changed[at] ^= (0xFF, 0x01, 0x20)[number % 3]
        file.write_bytes(changed)
        with suppress(Fault), SessionRuntime(url) as runtime:
            for verb in VERBS:
                with suppress(Fault):
                    verb(runtime)
