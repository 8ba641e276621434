"""What becomes of a conversation that is killed, written by two, deleted or forked, in harnpy and elsewhere?

    python bench/peer_facts.py [NAME …] [--verbose] [--write]

Each library runs the same desk (`bench/facts/desk.py`) as its documentation shows, on SQLite where it has a
store, in processes of this environment (`pip install '.[peers,dbos]'`); one that isn't installed is left out,
with a notice. Processes die and wait at named places, so what is seen doesn't depend on the machine's speed.
`--write` notes it in `bench/facts/seen.json` and writes the README's table from there. No names: all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from probes import rows as dialects  # noqa: E402

SEEN = HERE / "facts" / "seen.json"
PAGE = HERE.parent / "README.md"
_BEGIN, _END = "<!-- python bench/peer_facts.py --write -->", "<!-- the end of what it writes -->"
OURS = "harnpy"
#: The column's title, its script and its packages.
LIBRARIES = {
    OURS: ("harnpy", []),
    "LangGraph": ("langgraph", ["langgraph", "langgraph-checkpoint-sqlite"]),
    "OpenAI Agents SDK": ("openai_agents", ["openai-agents"]),
    "pydantic-ai": ("pydantic_ai", ["pydantic-ai-slim"]),
    "DBOS": ("dbos", ["dbos"]),
}
PROMPT, OTHER = "Where is my money?", "And my hat?"
#: How long a second process may take from its call until it counts as one that waits for the first.
GRACE = 8.0


@dataclass(frozen=True)
class Desk:
    """One library in a folder of its own."""

    script: str
    folder: Path
    grace: float = GRACE

    def start(self, *words: str, **places: str) -> subprocess.Popen[str]:
        given = {f"FACTS_{name.upper()}": where for name, where in places.items()}
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HERE / "facts" / f"on_{self.script}.py"), *words],
            env={**os.environ, "PYTHONPATH": str(HERE.parent), "FACTS_FOLDER": str(self.folder), **given},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, process: subprocess.Popen[str], note: str, count: int = 1) -> None:
        """Wait until there are so many notes, or the process has ended."""
        while self.notes().count(note) < count and process.poll() is None:
            time.sleep(0.01)

    def waits(self, second: subprocess.Popen[str]) -> bool:
        """Return whether the second process, which has called the library, waits for the first one."""
        self.until(second, "called", 2)
        try:
            second.wait(self.grace)
        except subprocess.TimeoutExpired:
            return True
        return False

    def run(self, *words: str, **places: str) -> Any:
        """Return what a command prints; None if it is killed."""
        process = self.start(*words, **places)
        printed, complaints = process.communicate(timeout=120)
        if process.returncode and not places:
            raise RuntimeError(f"{self.script} {words}: {complaints}")
        return json.loads(printed) if printed else None

    def notes(self) -> list[str]:
        path = self.folder / "notes"
        return path.read_text().split() if path.exists() else []

    @contextmanager
    def waiting(self, where: str) -> Iterator[subprocess.Popen[str]]:
        """Inside the block a turn waits in a call of its model; then it goes on."""
        process = self.start("send", PROMPT, wait=where)
        self.until(process, "waiting")
        yield process
        (self.folder / "go").touch()
        process.communicate(timeout=120)


def killed_in_the_reply(desk: Desk) -> dict[str, Any]:
    desk.run("send", PROMPT, die="reply")
    kept = desk.run("show")
    desk.run("resume", PROMPT)
    notes = desk.notes()
    return {
        "kept": kept,
        "whole": desk.run("show"),
        "asked": notes.count("asked"),
        "paid": notes.count("paid"),
    }


def killed_in_the_tool(desk: Desk) -> dict[str, Any]:
    desk.run("send", PROMPT, die="tool")
    desk.run("resume", PROMPT)
    return {"whole": desk.run("show"), "paid": desk.notes().count("paid")}


def approved(desk: Desk) -> dict[str, Any]:
    desk.run("begin", PROMPT, approvals="1")
    before = desk.notes().count("paid")
    desk.run("approve", PROMPT, approvals="1")
    notes = desk.notes()
    return {
        "before": before,
        "paid": notes.count("paid"),
        "asked": notes.count("asked"),
        "whole": desk.run("show"),
    }


def two_processes(desk: Desk) -> dict[str, Any]:
    with desk.waiting("first"):
        second = desk.start("send", OTHER)
        waited = desk.waits(second)
    second.communicate(timeout=120)
    return {"whole": desk.run("show"), "waited": waited}


def deleted(desk: Desk) -> dict[str, Any]:
    with desk.waiting("last"):
        second = desk.start("delete")
        waited = desk.waits(second)
    second.communicate(timeout=120)
    return {"whole": desk.run("show"), "waited": waited}


def forked(desk: Desk) -> dict[str, Any]:
    before, added, length = desk.run("fork")
    return {"added": added, "before": before, "length": length}


SCENES: dict[str, Callable[[Desk], dict[str, Any]]] = {
    "killed in the reply": killed_in_the_reply,
    "killed in the tool": killed_in_the_tool,
    "approved": approved,
    "two processes": two_processes,
    "deleted": deleted,
    "forked": forked,
}
#: What a library without a store of conversations is not asked.
NOT_ASKED = {
    "pydantic-ai": ["two processes", "deleted", "forked"],
    "DBOS": ["two processes", "deleted", "forked"],
}


def column(name: str, grace: float = GRACE) -> dict[str, Any]:
    """Return what a library did in each scene."""
    found = {}
    for scene, play in SCENES.items():
        if scene not in NOT_ASKED.get(name, []):
            with tempfile.TemporaryDirectory() as folder:
                found[scene] = play(Desk(LIBRARIES[name][0], Path(folder), grace))
    return found


def asked(names: list[str]) -> dict[str, dict[str, Any]]:
    """Play all scenes with one library after the other."""
    found = {}
    for name in names:
        try:
            pins = [f"{package} {version(package)}" for package in LIBRARIES[name][1]]
        except PackageNotFoundError as missing:
            print(f"{name} is left out: pip install {missing.name}", file=sys.stderr)
            continue
        print(f"{name}: asking", file=sys.stderr)
        found[name] = {"on": date.today().isoformat(), "pins": pins, "scenes": column(name)}
    return found


# The table: what was seen in a few words, and beside it what other benches have measured.

Scenes = dict[str, Any]


def _resumed(scenes: Scenes) -> str:
    seen = scenes["killed in the reply"]
    faults = []
    if not _prompts(seen["kept"]):
        faults.append("the prompt isn't stored")
    if _prompts(seen["whole"]) > 1:
        faults.append("the prompt is stored twice")
    if seen["paid"] > 1:
        faults.append("pays twice")
    if faults:
        return f"✗ {', '.join(faults)}"
    return "✓ resumes, pays once" if seen["asked"] == 3 else f"✓ resumes, asks {seen['asked']} times"


def _ambiguous(scenes: Scenes) -> str:
    seen = scenes["killed in the tool"]
    if seen["paid"] > 1:
        return "✗ pays again"
    told = any(role == "tool" and text.startswith("Error: ") for role, text in seen["whole"])
    return "✓ pays once; the model is told that it may have" if told else "✓ pays once"


def _approved(scenes: Scenes) -> str:
    seen = scenes["approved"]
    good = not seen["before"] and (seen["paid"], seen["asked"]) == (1, 2) and _prompts(seen["whole"]) == 1
    return "✓ resumes, pays once" if good else f"✗ pays {seen['paid']} times"


def _together(scenes: Scenes) -> str:
    seen = scenes["two processes"]
    said = [text for role, text in seen["whole"] if role == "user"]
    if len(said) < 2:
        return "✗ one of the two turns is lost"
    prompts = [index for index, (role, _) in enumerate(seen["whole"]) if role == "user"]
    return "✗ both kept, interleaved" if prompts[1] == 1 else "✓ one turn after the other"


def _gone(scenes: Scenes) -> str:
    seen = scenes["deleted"]
    if not seen["whole"]:
        return "✓ deleted when the turn has ended" if seen["waited"] else "✓ deleted"
    if _prompts(seen["whole"]):
        return "✗ the turn writes it back"
    return "✗ an answer without its question remains"


def _size(scenes: Scenes) -> str:
    return _kilobytes(scenes["forked"]["before"])


def _fork(scenes: Scenes) -> str:
    return f"+ {_kilobytes(scenes['forked']['added'])}"


def _prompts(said: list[list[str]] | None) -> int:
    return [role for role, _ in said or []].count("user")


def _kilobytes(size: int) -> str:
    return f"{round(size / 1000):,} kB"


@dataclass(frozen=True)
class Row:
    """A row of the table, and the page that shows it: of scenes by ``see``, of that page by ``cells``."""

    title: str
    page: str
    scene: str = ""
    see: Callable[[Scenes], str] | None = None
    cells: tuple[str, ...] = ()


_FACTS = "bench/peer_facts.py"
_AGENTS, _DURABLE, _ADAPTERS = (
    f"bench/README.md#python-bench{each}py" for each in ("agents", "durable", "adapters")
)
ROWS = [
    Row("killed in the middle of a reply, then restarted", _FACTS, "killed in the reply", _resumed),
    Row("killed inside a tool that has just paid", _FACTS, "killed in the tool", _ambiguous),
    Row("the process ends while a tool waits for approval", _FACTS, "approved", _approved),
    Row("two processes send to one conversation at once", _FACTS, "two processes", _together),
    Row("a conversation is deleted while a turn runs", _FACTS, "deleted", _gone),
    Row("a SQLite file with 200 turns, 200 kB of text", _FACTS, "forked", _size),
    Row("a fork of all of them, in that file", _FACTS, "forked", _fork),
    Row("40 odd histories and streams: how many are silently altered", "docs/dialects.md"),
    Row("turns a second, in memory, beside the model", _AGENTS, cells=("3,830", "327", "169", "199", "–")),
    Row("a durable step on SQLite", _DURABLE, cells=("699 µs", "–", "–", "–", "3,280 µs")),
    Row(
        "a LangGraph thread of 300 turns: opening it, SQLite; a turn, PostgreSQL",
        _ADAPTERS,
        cells=("14–22 ms; 44–57 ms", "10–11 ms; 41–46 ms", "–", "–", "–"),
    ),
    Row("`pip install NAME` installs a release", _FACTS),
]
#: The columns of docs/dialects.md.
_DIALECTS = {
    OURS: OURS,
    "LangGraph": "langchain",
    "OpenAI Agents SDK": "openai-agents",
    "pydantic-ai": "pydantic-ai",
}


def table(seen: dict[str, Any]) -> str:
    """Return the README's table, in Markdown."""
    lines = [f"| | {' | '.join(LIBRARIES)} |", f"|---|{'---|' * len(LIBRARIES)}"]
    for row in ROWS:
        cells = [_cell(row, number, name, seen[name]) for number, name in enumerate(LIBRARIES)]
        lines.append(f"| [{row.title}]({row.page}) | {' | '.join(cells)} |")
    versions = ", ".join(pin for each in seen.values() for pin in each["pins"])
    return "\n".join([*lines, "", f"Measured on {max(each['on'] for each in seen.values())}: {versions}."])


def _cell(row: Row, number: int, name: str, known: dict[str, Any]) -> str:
    if row.see:
        return row.see(known["scenes"]) if row.scene in known["scenes"] else "–"
    if row.cells:
        return row.cells[number]
    if row.page == _FACTS:
        return "✓" if known["pins"] else "✗ not yet"
    return str(_silent(name)) if name in _DIALECTS else "–"


def _silent(name: str) -> int:
    """Return in how many rows of docs/dialects.md a library changed something and didn't say so."""
    cells = json.loads((HERE / "probes" / "seen.json").read_text(encoding="utf-8"))[_DIALECTS[name]]["cells"]
    return [row.mark(cells[row.title]) for row in dialects.ROWS].count("✗")


def noted() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(SEEN.read_text(encoding="utf-8")) if SEEN.exists() else {}
    return known


def page(text: str) -> str:
    """Return the README with the table of what is noted."""
    head, mark, rest = text.partition(_BEGIN)
    return f"{head}{mark}\n\n{table(noted())}\n\n{_END}" + rest.partition(_END)[2]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(LIBRARIES))
    parser.add_argument("--verbose", action="store_true", help="show what was seen")
    parser.add_argument("--write", action="store_true", help="note it, and write the README's table")
    options = parser.parse_args()
    found = asked(options.names or list(LIBRARIES))
    if options.verbose:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    known = noted() | found
    if options.write:
        known = {name: known[name] for name in LIBRARIES if name in known}
        SEEN.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    elif set(known) == set(LIBRARIES):
        print(table(known))


if __name__ == "__main__":
    main()
