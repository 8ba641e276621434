"""How many bytes does a store need for a byte that was said, and does that stay so?

    python bench/stored_bytes.py [--turns N] [--first N] [--stores jsonl,sqlite,postgresql] [--check]

A loop holds a conversation: 500 B in, 1,500 B out, in every fourth turn a tool's result of 2 kB; compaction
and snapshots are on. Payload is the JSON of the session's history. What an empty store takes doesn't count,
nor does the search index. Bytes depend on no machine. Spec: 10 §C12.1 c.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from msgspec.json import encode
from options import parser
from storage import postgres_server

from harnpy import Vm

ROOT = Path(__file__).parent.parent
#: By how much a turn may cost more at the end.
GROWTH = 1.05
SAID, ANSWERED, FOUND = 500, 1_500, 2_000
#: What each format may need for a byte of payload, and how many times that on PostgreSQL: a page there holds
#: four replies, and what is left of it is for shorter rows of other connections.
MOST, PAGED = {"native": 2.0, "text": 3.0}, 1.1

PROGRAM = """
fn begin(url) { return agent_session_open("talk", {store: url}) }
fn turn(said, answer, result, note, format) {
  let tools = tool_define(tool_registry(), "look", "Look something up", {
    parameters: {what: "string"}, handler: { args -> result },
  })
  if result != nil {
    llm_mock({text: "", tool_calls: [{name: "look", arguments: {what: "it"}}]})
  }
  llm_mock({text: answer})
  if note != nil { agent_session_inject("talk", {role: "user", content: note}) }
  return agent_loop(said, nil, {
    provider: "mock", session_id: "talk", tools: tools, tool_format: format, compaction: "truncate",
  }).visible_text
}
{begin: begin, turn: turn}
"""


class Kept(NamedTuple):
    """What a conversation takes after some turns."""

    turns: int
    payload: int
    stored: int


def most(store: str, format: str) -> float:
    return MOST[format] * (PAGED if store == "postgresql" else 1)


def jsonl(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def sqlite(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        pages, size = (db.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "page_size"))
    return int(pages * size)


def postgres(url: str) -> int:
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        found = db.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
            " WHERE relnamespace = 'harn'::regnamespace AND relkind = 'r' AND relname NOT LIKE 'texts%'"
        ).fetchone()
    assert found is not None
    return int(found[0])


def converse(url: str, size: Callable[[], int], turns: list[int], format: str, notes: bool) -> list[Kept]:
    """Hold a conversation; return what it takes after each number of turns."""
    vm = Vm()
    functions: dict[str, Any] = vm.run_source(f"pipeline main(task) {{ {PROGRAM} }}")
    vm.call(functions["begin"], url)
    empty = size()
    words = Words()
    found = []
    for number in range(1, turns[-1] + 1):
        said, answer = words.text(SAID), words.text(ANSWERED)
        result = words.text(FOUND) if number % 4 == 0 else None
        reply = f"<user_response>{answer}</user_response>" if format == "text" else answer
        note = words.text(SAID) if notes else None
        if vm.call(functions["turn"], said, reply, result, note, format) != answer:
            raise AssertionError(f"turn {number} went wrong")
        if number in turns:
            session = vm.sessions.session("talk")
            assert session is not None
            payload = len(encode(session.history()))
            found.append(Kept(number, payload, size() - empty))
    vm.sessions.close("talk")
    return found


class Words:
    """Texts that nobody said before, of words that people use: those of this program's licence and README."""

    def __init__(self) -> None:
        texts = [(ROOT / name).read_text("utf-8") for name in ("LICENSE", "README.md")]
        self._known = sorted(set(re.findall("[A-Za-z]+", " ".join(texts))))
        self._random = Random(0)

    def text(self, length: int) -> str:
        made = " ".join(self._random.choices(self._known, k=length // 2))
        return made[: length - 1] + "."


@contextmanager
def places(names: list[str]) -> Iterator[dict[str, Callable[[], tuple[str, Callable[[], int]]]]]:
    """For each store, what gives the URL of a new one, and how its bytes are counted."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        made: dict[str, Callable[[], tuple[str, Callable[[], int]]]] = {}

        def new(suffix: str) -> Path:
            return directory / f"{len(list(directory.iterdir()))}{suffix}"

        def new_jsonl() -> tuple[str, Callable[[], int]]:
            place = new("")
            return f"jsonl:{place}?durability=relaxed", lambda: jsonl(place)

        def new_sqlite() -> tuple[str, Callable[[], int]]:
            place = new(".db")
            return f"sqlite:{place}?durability=relaxed", lambda: sqlite(place)

        if "jsonl" in names:
            made["jsonl"] = new_jsonl
        if "sqlite" in names:
            made["sqlite"] = new_sqlite
        if "postgresql" in names:
            import psycopg

            url = stack.enter_context(postgres_server())

            def new_postgres() -> tuple[str, Callable[[], int]]:
                with psycopg.connect(url, autocommit=True) as db:
                    db.execute("DROP SCHEMA IF EXISTS harn CASCADE")
                return f"{url}&durability=relaxed", lambda: postgres(url)

            made["postgresql"] = new_postgres
        yield made


def main() -> int:
    options = parser(__doc__, rounds=1)
    options.add_argument("--turns", type=int, default=2_000, help="turns of the long conversation")
    options.add_argument("--first", type=int, default=200, help="turns after which bytes are first counted")
    options.add_argument("--stores", default="jsonl,sqlite,postgresql")
    chosen = options.parse_args()
    begun = chosen.first
    last = max(chosen.turns, begun + 1)
    missed = 0
    with places(chosen.stores.split(",")) as stores:
        print(f"{'':34}{f'stored / said at {begun}':>22}{f'a turn at {last:,} / at {begun}':>28}")
        for name, new in stores.items():
            for format, notes in (("native", False), ("native", True), ("text", False)):
                url, size = new()
                first, end = converse(url, size, [begun, last], format, notes)
                ratio = first.stored / first.payload
                growth = (end.stored / end.turns) / (first.stored / first.turns)
                over = ratio > most(name, format), growth > GROWTH
                missed += sum(over)
                title = f"{name}, {format}" + (", with injects" if notes else "")
                verdicts = ["over" if each else "met" for each in over]
                print(
                    f"  {title:32}{ratio:14.2f} × {verdicts[0]:4}{growth:22.3f} × {verdicts[1]:4}".rstrip(),
                    flush=True,
                )
    return 1 if missed and chosen.check else 0


if __name__ == "__main__":
    sys.exit(main())
