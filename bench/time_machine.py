"""What does each recorder of agents give back when a run is replayed, branched and edited, and what does it
cost?

    python bench/time_machine.py [NAME …] [--rounds N] [--turns N] [--costs] [--folder FOLDER] [--write]

One agent (`bench/time_machine_agent.py`, and the same in Harn) makes 40 calls of a model on 127.0.0.1 by
plain HTTP. Each recorder is installed from its registry, as pinned here, into a folder of its own in FOLDER
(by default one in the temporary directory), which is reused, and is driven by `bench/tapes/on_NAME.py` or its
own commands, as its documentation shows. Every cell follows from what was printed, what the model was asked
and what is in the folder afterwards. `--write` notes the results in `bench/tapes/seen.json` and writes the
tables of docs/time-machine.md from there. No names: all.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from difflib import SequenceMatcher
from operator import attrgetter, sub, truediv
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from options import environment, parser  # noqa: E402
from tapes.model import Model  # noqa: E402

PAGE = HERE.parent / "docs" / "time-machine.md"
SEEN = HERE / "tapes" / "seen.json"
_BEGIN, _END = "<!-- python bench/time_machine.py --write -->", "<!-- the end of what it writes -->"
OURS = "harnpy"
#: The model calls of the agent, and the one where a branch leaves the tape.
CALLS, BRANCH = 40, 21
#: The most seconds that one command may take.
PATIENCE = 600
#: Budgets of recording: × the plain run, × what the lightest peer adds, × the bytes of the effects.
COST, LIGHTEST, BYTES = 1.15, 0.5, 1.3
#: How many times as fast as the recorded run a replay must be, and the seconds that the model takes in it.
FASTER, SLOW = 20, 0.2

#: What the agent finds in its folder.
WORLD = {
    "edition.txt": "edition one\n",
    "probe.sh": 'echo "$2" >> probed.txt; od -An -N4 -tx4 /dev/urandom\n',
    "weigh.sh": "echo weighed >> weighed.txt; echo 42 g\n",
}
#: Files in its folder that are neither the world's nor a tape's.
_NO_TAPE = re.compile(r"session\.(db|kept)|time_machine_agent|__pycache__|/\.(cache|local|harn)\b")
#: What it leaves there, a line at a time.
TRACES = ("diary.txt", "ledger.txt", "probed.txt", "weighed.txt")


@dataclass(frozen=True)
class Recorder:
    """How one is run. ``{bin}`` has its programs, ``{on}`` is its driver, ``{plain}`` the agent by itself; a
    branch leaves the tape at the call number ``{k}``, which begins with ``{label}``."""

    pins: list[str]
    record: str
    replay: str
    branch: str = ""
    #: How it shows best what an edited program does differently: by default its replay.
    report: str = ""
    agent: str = "time_machine_agent.py"
    plain: str = "{bin}/python {plain}"
    #: Whether a branch isn't given its call, but leaves the tape at what differs.
    by_content: bool = False


_ON = "{bin}/python {on}"
RECORDERS = {
    OURS: Recorder(
        [],
        "{python} -m harnpy run --record run.tape time_machine_agent.harn",
        "{python} -m harnpy replay run.tape",
        branch="{python} -m harnpy branch run.tape --at {k}",
        report="{python} -m harnpy replay run.tape time_machine_agent.harn",
        agent="time_machine_agent.harn",
        plain="{python} -m harnpy run time_machine_agent.harn",
    ),
    "kinescope": Recorder(
        ["kinescope==0.0.2", "httpx==0.28.1"],
        f"{_ON} record",
        f"{_ON} replay",
        branch=f"{_ON} branch {{label}}",
        report=f"{_ON} report",
    ),
    "reeltime": Recorder(
        ["reeltime==1.0.0", "httpx==0.28.1"],
        f"{{bin}}/tape run {_ON}",
        "{bin}/tape replay",
        branch=f"{_ON} fork {{label}}",
        report="{bin}/tape replay --strict",
    ),
    "agenttape": Recorder(
        ["agenttape[yaml]==0.1.8", "httpx==0.28.1"],
        f"{_ON} record",
        f"{_ON} replay",
        branch=f"{_ON} branch",
        by_content=True,
    ),
    "vcrpy": Recorder(
        ["vcrpy==9.4.2", "httpx==0.28.1"],
        f"{_ON} record",
        f"{_ON} replay",
        branch=f"{_ON} branch",
        by_content=True,
    ),
    "DBOS": Recorder(
        ["dbos==3.4.0", "httpx==0.28.1"],
        f"{_ON} record",
        f"{_ON} replay",
        branch=f"{_ON} branch {{label}}",
    ),
    "LangGraph": Recorder(
        ["langgraph==1.2.24", "langgraph-checkpoint-sqlite==3.1.2", "httpx==0.28.1"],
        f"{_ON} record",
        f"{_ON} replay",
    ),
    "amberfork": Recorder(
        ["amberfork@1.0.0", "httpx==0.28.1"],
        "{cargo}/amberfork record --upstream {url} --base-url-env MODEL_URL --out run.json"
        " -- {bin}/python {plain}",
        "{cargo}/amberfork replay run.json -- {bin}/python {plain}",
        branch=f"{_ON} {{cargo}}/amberfork {{url}} --verify",
        report=f"{_ON} {{cargo}}/amberfork {{url}}",
        by_content=True,
    ),
}


def installed(name: str, folder: Path) -> dict[str, str]:
    """Return where a recorder's programs are; install its pinned packages if necessary.

    Raises `CalledProcessError` or `FileNotFoundError` if they can't be.
    """
    place, pins = folder / name, RECORDERS[name].pins
    noted, known = place / "pins.txt", "\n".join(pins)
    if pins and not (noted.exists() and noted.read_text(encoding="utf-8") == known):
        print(f"{name}: installing into {place}", file=sys.stderr)
        venv.create(place, with_pip=True, clear=True)
        wheels, crates = [pin for pin in pins if "@" not in pin], [pin for pin in pins if "@" in pin]
        _run(str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile", *wheels)
        for crate in crates:
            _run("cargo", "install", "--quiet", "--locked", "--root", str(place / "cargo"), crate)
        noted.write_text(known, encoding="utf-8")
    on, plain = (str(HERE / "tapes" / f"on_{each}.py") for each in (name.lower(), "plain"))
    programs = {"bin": str(place / "bin"), "cargo": str(place / "cargo" / "bin"), "python": sys.executable}
    return {**programs, "on": on, "plain": plain}


def _run(*command: str) -> None:
    subprocess.run(["nice", *command], check=True, capture_output=True, text=True)


@dataclass
class Run:
    """One command: what the agent printed, what else was said, what the model was asked, what was left."""

    lines: list[str]
    said: str
    status: int
    asked: list[str]
    seconds: float
    traces: dict[str, list[str]]
    #: Rows of the session's database.
    session: int
    #: Seconds of processor time, in all of its processes.
    computed: float

    def values(self, key: str, half: int = 0) -> list[str]:
        """Return what the agent printed under a key, in one of the halves or in both."""
        found: dict[int, list[str]] = {1: [], 2: []}
        current = 1
        for line in self.lines:
            word, _, rest = line.partition(" ")
            if word == "half":
                current = int(rest)
            elif word == key:
                found[current].append(rest)
        return found[half] if half else found[1] + found[2]

    def calls(self, kind: str) -> int:
        """Return how often the model was asked in one of the agent's parts."""
        return sum(label.startswith(f"{kind} ") for label in self.asked)


class Desk:
    """One recorder with its agent, in a folder of its own."""

    def __init__(self, name: str, places: dict[str, str], folder: Path, model: Model) -> None:
        self.recorder, self.places, self.folder, self.model = RECORDERS[name], places, folder, model
        self.fresh()

    def fresh(self, edit: tuple[str, str] | None = None) -> None:
        """Put the world as it was, and the agent, edited or not. What was recorded stays."""
        for name, text in WORLD.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        for name in (*TRACES, "note.txt"):
            (self.folder / name).unlink(missing_ok=True)
        kept = self.folder / "session.kept"
        if kept.exists():
            for ending in ("-wal", "-shm"):
                (self.folder / f"session.db{ending}").unlink(missing_ok=True)
            shutil.copy(kept, self.folder / "session.db")
        for agent in {self.recorder.agent, "time_machine_agent.py"}:
            text = (HERE / agent).read_text(encoding="utf-8")
            if edit and agent == self.recorder.agent:
                assert text.count(edit[0]) == 1, edit
                text = text.replace(*edit)
            (self.folder / agent).write_text(text, encoding="utf-8")

    def keep(self) -> None:
        """Begin each later run with the session as it is now."""
        here, there = self.folder / "session.db", self.folder / "session.kept"
        with closing(sqlite3.connect(here)) as base, closing(sqlite3.connect(there)) as kept:
            base.backup(kept)

    def run(self, command: str, label: str = "", **env: str) -> Run:
        """Run one of the recorder's commands; a branch leaves the tape at the call with ``label``."""
        self.model.forget()
        words = [
            word.format(**self.places, url=self.model.url, k=BRANCH, label=label) for word in command.split()
        ]
        begun, before = time.perf_counter(), _computed()
        done = subprocess.run(
            words,
            cwd=self.folder,
            env={**environment(), **self._env(), **env},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        seconds = time.perf_counter() - begun
        printed = done.stdout.splitlines()
        return Run(
            [line[2:] for line in printed if line.startswith("· ")],
            "\n".join(line for line in printed if not line.startswith("· ")) + "\n" + done.stderr,
            done.returncode,
            list(self.model.asked),
            seconds,
            {name: self._lines(name) for name in (*TRACES, "note.txt")},
            self._rows(),
            _computed() - before,
        )

    def _env(self) -> dict[str, str]:
        path = f"{self.folder}{os.pathsep}{HERE.parent}"
        urls = {"MODEL_URL": self.model.url, "LOCAL_LLM_BASE_URL": self.model.url}
        return {**urls, "PYTHONPATH": path, "HOME": str(self.folder), "NO_COLOR": "1"}

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def _rows(self, column: str = "1") -> int:
        """Return how many rows the session's database has; the sum of ``column`` over them."""
        path = self.folder / "session.db"
        if not path.exists():
            return 0
        with closing(sqlite3.connect(path)) as base:
            tables = base.execute("select name from sqlite_master where type = 'table'").fetchall()
            sums = (_sum_of(base, name, column) for (name,) in tables)
            return sum(sums)

    def effects(self, run: Run) -> int:
        """Return the bytes of what a run has seen and done outside, each of them counted once: bodies of
        requests and replies, files that it has read or left, rows of the session, output of processes."""
        files = (self.folder / name for name in (*WORLD, *TRACES, "note.txt"))
        printed = run.values("process")
        return (
            self.model.traffic
            + sum(path.stat().st_size for path in files if path.exists())
            + self._rows("length")
            + sum(map(len, printed))
        )

    def tape(self) -> bytes:
        """Return all that was recorded."""
        ours = {*WORLD, *TRACES, "note.txt"}
        files = [path for path in self.folder.rglob("*") if path.is_file() and path.name not in ours]
        return b"".join(path.read_bytes() for path in files if not _NO_TAPE.search(str(path)))


def _computed() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _sum_of(base: sqlite3.Connection, table: str, column: str) -> int:
    """Return how many rows a table has; for the column ``length``, the characters and bytes in them."""
    if column == "length":
        names = [row[1] for row in base.execute(f'pragma table_info("{table}")')]
        column = " + ".join(f'coalesce(length("{name}"), 0)' for name in names)
    return int(base.execute(f'select coalesce(sum({column}), 0) from "{table}"').fetchone()[0])


# The agent's parts: what a replay, or a branch's beginning, gave back of each.


@dataclass(frozen=True)
class Case:
    """A run that was recorded and one that is judged: ``half`` 1 is the beginning of a branch, 0 a replay."""

    plain: Run
    recorded: Run
    again: Run
    half: int
    #: A replay in which the first of two parallel calls waits for the second.
    swapped: Run | None = None
    #: Whether what a sub-agent asked is on the tape.
    inside: bool = True

    def same(self, key: str) -> bool:
        said = self.recorded.values(key, self.half)
        return bool(said) and said == self.again.values(key, self.half)

    def left(self, name: str) -> bool:
        """Return whether a file has more than the live half of a branch leaves there."""
        live = len(self.recorded.traces[name]) // 2 if self.half else 0
        return len(self.again.traces[name]) > live

    def live(self, kind: str) -> bool:
        """Return whether the model was asked for what is on the tape."""
        live = self.recorded.calls(kind) // 2 if self.half else 0
        return self.again.calls(kind) > live


def _files(case: Case) -> str:
    if case.same("file") and not case.left("diary.txt"):
        return "yes"
    read, written = ("its files are read" if not case.same("file") else ""), "written again"
    return f"no: {read} and {written}" if read and case.left("diary.txt") else f"part: {read or written}"


def _processes(case: Case) -> str:
    if case.same("process") and not case.left("probed.txt"):
        return "yes"
    return "no: they run again" if case.left("probed.txt") else "part: other output"


def _clock(case: Case) -> str:
    times = case.recorded.values("time")
    if len(times) > 1 and len(set(times)) == 1:
        return "part: it stands still, also while it is recorded"
    return _same(case, {"time": "`time.time()`", "now": "`datetime.now()`"})


def _random(case: Case) -> str:
    return _same(case, {"random": "`random`", "uuid": "`uuid`", "secret": "`secrets`"})


def _same(case: Case, names: dict[str, str]) -> str:
    fine = {name for key, name in names.items() if case.same(key)}
    if len(fine) == len(names):
        return "yes"
    others = ", ".join(name for name in names.values() if name not in fine)
    return f"part: not {others}" if fine else "no: other values"


def _parallel(case: Case) -> str:
    kinds = {kind: _at_once(case, kind) for kind in ("threads", "tasks") if case.plain.values(kind)}
    if len(set(kinds.values())) == 1:
        return next(iter(kinds.values()))
    words = "; ".join(
        f"{kind}: {word.partition(': ')[2] or word}" for kind, word in kinds.items() if word != "yes"
    )
    return f"{'part' if any(not word.startswith('no') for word in kinds.values()) else 'no'}: {words}"


def _at_once(case: Case, kind: str) -> str:
    if case.recorded.values(kind) != case.plain.values(kind):
        return "no: not supported"
    if case.live("pair"):
        return "no: asked again"
    if any("None" in said for said in case.again.values(kind, case.half)):
        return "no: one of two isn't on the tape"
    if not case.same(kind):
        return "no: each gets the other's answer"
    if case.swapped and case.swapped.values(kind) != case.recorded.values(kind):
        return "part: not if they begin in another order"
    return "yes" if case.same(f"first-{kind}") else "part: they end in another order"


def _streams(case: Case) -> str:
    whole = case.plain.values("pieces", case.half)
    if case.live("stream"):
        return "no: asked again"
    if not case.same("streamed"):
        return "no: refused" if "tream" in case.again.said else "no: other text"
    here, there = (run.values("pieces", case.half) for run in (case.again, case.recorded))
    if here == whole:
        return "yes"
    return f"part: {here[0]} of {whole[0]} pieces{', also while it is recorded' if there != whole else ''}"


def _tools(case: Case) -> str:
    again = [name for name in ("ledger.txt", "weighed.txt") if case.left(name)]
    if not case.same("loop"):
        return "no: the loop ends otherwise"
    return "no: they run again" if again else "yes"


def _sub_agents(case: Case) -> str:
    if case.live("expert"):
        return "no: asked again"
    if not case.same("loop"):
        return "no: the loop ends otherwise"
    return "yes" if case.inside else "part: what it returned, not its calls"


def _sessions(case: Case) -> str:
    kept = case.recorded.session
    if not kept:
        return "no: none was kept"
    # What a branch says live may be kept beside, but not the beginning a second time.
    twice = 2 * kept
    if case.again.session >= (twice * 0.98 if case.half else kept + 1):
        return "no: each message is kept twice"
    return "yes"


ASPECTS: dict[str, Callable[[Case], str]] = {
    "files": _files,
    "processes": _processes,
    "clock": _clock,
    "random": _random,
    "parallel calls": _parallel,
    "streams": _streams,
    "tools' effects": _tools,
    "sub-agents": _sub_agents,
    "sessions": _sessions,
}

#: What has a recorder leave its tape that isn't told where: another prompt from the branch's call on.
_SECOND_HALF = ("Do the work of today", "Do the {'EDITED ' * (self.half == 2)}work of today")
#: An edit of the program for each part, in Python and in Harn: then it writes, runs, reads or asks otherwise.
EDITS: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "a prompt": (("Do the work of today", "Do the EDITED work of today"),) * 2,
    "files": ((" began", " EDITED"),) * 2,
    "processes": (('"probe.sh", "probe"', '"probe.sh", "EDITED"'),) * 2,
    "clock": (
        ('say("time", time.time())', 'say("time", (time.time(), time.time())[0])'),
        ("let time = timestamp()", "let time = [timestamp(), timestamp()][0]"),
    ),
    "random": (
        ('say("random", random.random())', 'say("random", (random.random(), random.random())[0])'),
        ("let number = random()", "let number = [random(), random()][0]"),
    ),
    "parallel calls": (("What do you think?", "What do you EDITED think?"),) * 2,
    "streams": (("Tell me everything", "Tell me EDITED everything"),) * 2,
    "tools' effects": ((" and bread", " and EDITED bread"),) * 2,
    "sub-agents": (("Look around.", "Look EDITED around."),) * 2,
    "sessions": (
        ("(self.half, json.dumps(message))", '(self.half, "EDITED" + json.dumps(message))'),
        ('"Sum of the day"', '"Sum of the EDITED day"'),
    ),
}


def _reported(desk: Desk, edit: tuple[str, str], quiet: Run) -> str:
    """Return what a recorder says of an edited program: ``quiet`` is what it says of the same one."""
    desk.fresh(edit)
    text = (desk.folder / desk.recorder.agent).read_text(encoding="utf-8")
    line = text[: text.index(edit[1])].count("\n") + 1
    run = desk.run(desk.recorder.report or desk.recorder.replay)
    after = f", after {len(run.asked)} new calls" if run.asked else ""
    stem = re.escape(desk.recorder.agent)
    if "EDITED" in run.said or re.search(rf"{stem}\D{{1,9}}{line}\b", run.said):
        return f"part: the place{after}" if after else "yes"
    if _bare(run.said) <= _bare(quiet.said) and run.status == quiet.status:
        return "no"
    return f"part: that something differs{after}"


def _bare(said: str) -> set[str]:
    """Return the lines that were said, without numbers, times, ids, addresses and remarks on the speed."""
    said = re.sub(r"\s*\[.*?\]", "", said)
    return set(re.sub(r"0x\w+|\b[0-9A-Z]{10,}\b|[\d.]+\w?", "#", said).splitlines())


def column(desk: Desk) -> dict[str, Any]:
    """Return what a recorder did: a cell for each row of the tables."""
    recorder = desk.recorder
    plain = desk.run(recorder.plain)
    if len(plain.asked) != CALLS:
        raise RuntimeError(f"{recorder.plain}: {len(plain.asked)} calls: {plain.said}")
    (desk.folder / "session.db").unlink()
    desk.fresh()
    recorded = desk.run(recorder.record)
    if recorded.status:
        raise RuntimeError(f"{recorder.record}: {recorded.said}")
    inside = b"Look around." in desk.tape()
    desk.keep()

    def replayed(**env: str) -> Run:
        desk.fresh()
        (desk.folder / "edition.txt").write_text("edition two\n", encoding="utf-8")
        return desk.run(recorder.replay, **env)

    again, swapped = replayed(FIRST="a"), replayed(FIRST="b")
    reported = _reports(desk)
    # Last, for a branch may be written into the tape.
    desk.fresh(_SECOND_HALF if recorder.by_content else None)
    label = recorded.asked[BRANCH - 1]
    branched = desk.run(recorder.branch, label, FIRST="a") if recorder.branch else None
    whole = Case(plain, recorded, again, 0, swapped, inside)
    begun = Case(plain, recorded, branched, 1, None, inside) if branched else None
    return {
        "replayed": {name: _judged(judge, whole) for name, judge in ASPECTS.items()},
        "asked": f"{len(again.asked)} of {CALLS}" if again.lines else "no replay",
        "bytes": _bytes(recorded, again),
        "branched": {name: _judged(judge, begun) for name, judge in ASPECTS.items()},
        "branch": _branch(desk, branched),
        "reported": reported,
    }


def _judged(judge: Callable[[Case], str], case: Case | None) -> str:
    return judge(case) if case and case.again.lines else "no"


def _bytes(recorded: Run, again: Run) -> str:
    if recorded.lines == again.lines:
        return "yes"
    blocks = SequenceMatcher(None, recorded.lines, again.lines, autojunk=False).get_matching_blocks()
    same = sum(block.size for block in blocks)
    return f"no: {same} of {len(recorded.lines)} lines" if again.lines else "no"


def _branch(desk: Desk, branched: Run | None) -> str:
    if branched is None:
        return "no"
    live, wanted = len(branched.asked), CALLS - BRANCH + 1
    words = f"{live} calls instead of {wanted}"
    if desk.recorder.by_content:
        return f"no: it can't be told where: {words}"
    if not branched.lines or branched.status:
        return f"no: {words}"
    return "yes" if live == wanted else f"part: {words}"


def _reports(desk: Desk) -> dict[str, str]:
    desk.fresh()
    quiet = desk.run(desk.recorder.report or desk.recorder.replay)
    in_harn = desk.recorder.agent.endswith(".harn")
    return {name: _reported(desk, edits[in_harn], quiet) for name, edits in EDITS.items()}


# What it costs.


def costs(desks: dict[str, Desk], rounds: int, turns: int) -> dict[str, dict[str, float]]:
    """Return what a loop of so many turns costs in each recorder, recorded and not, in turn; and its replay's
    speed."""
    plain: dict[str, list[Run]] = {name: [] for name in desks}
    recorded: dict[str, list[Run]] = {name: [] for name in desks}
    found: dict[str, dict[str, float]] = {name: {} for name in desks}
    for _ in range(rounds):
        for name, desk in desks.items():
            plain[name].append(_looped(desk, desk.recorder.plain, turns))
            run = _looped(desk, desk.recorder.record, turns)
            recorded[name].append(run)
            found[name]["bytes"] = len(desk.tape()) / desk.effects(run)
    for name, desk in desks.items():
        for unit, of in (("", attrgetter("seconds")), ("computed ", attrgetter("computed"))):
            ours, others = [*map(of, recorded[name])], [*map(of, plain[name])]
            found[name][f"{unit}ratio"] = median(map(truediv, ours, others))
            found[name][f"{unit}added"] = median(map(sub, ours, others))
        run = _looped(desk, desk.recorder.record, 0)
        found[name]["bytes of 40"] = len(desk.tape()) / desk.effects(run)
        desk.model.delay = SLOW
        slow = _looped(desk, desk.recorder.record, turns)
        desk.model.delay = 0
        desk.fresh()
        again = desk.run(desk.recorder.replay, TURNS=str(turns))
        if again.lines == slow.lines and not again.asked:
            found[name]["faster"] = slow.seconds / again.seconds
    return found


def _looped(desk: Desk, command: str, turns: int) -> Run:
    """Run the loop in an empty folder; without turns, the agent's other parts."""
    shutil.rmtree(desk.folder)
    desk.folder.mkdir()
    desk.fresh()
    run = desk.run(command, TURNS=str(turns))
    if run.status or len(run.asked) != (turns + 1 if turns else CALLS):
        raise RuntimeError(f"{command}: {len(run.asked)} calls: {run.said}")
    return run


def missed(costs: dict[str, dict[str, float]]) -> list[str]:
    """Return what of our budgets is missed."""
    ours = costs.get(OURS)
    if ours is None:
        return []
    added = [cost["added"] for name, cost in costs.items() if name != OURS]
    computed = [cost["computed added"] for name, cost in costs.items() if name != OURS]
    rows = [
        ("recording, × plain", ours["ratio"], COST),
        ("recording, × plain, processor time", ours["computed ratio"], COST),
        ("tape of the loop, × bytes of its effects", ours["bytes"], BYTES),
        (f"tape of {CALLS} calls, × bytes of its effects", ours["bytes of 40"], BYTES),
        ("seconds that recording adds", ours["added"], LIGHTEST * min(added)) if added else None,
        ("processor time that it adds", ours["computed added"], LIGHTEST * min(computed))
        if computed
        else None,
        ("a replay, × the recorded run", 1 / ours["faster"], 1 / FASTER) if "faster" in ours else None,
    ]
    return [
        f"{name}: {is_now:.2f}, must {must:.2f}" for name, is_now, must in filter(None, rows) if is_now > must
    ]


# The page: its tables stand between two marks and are made of what is noted in `SEEN`.


def tables(seen: dict[str, Any]) -> str:
    """Return the page's tables, in Markdown."""
    cells = {name: each["cells"] for name, each in seen.items()}
    parts = [
        "### What a replay gives back",
        _table(cells, "replayed", {"calls of the model": "asked", "the same output": "bytes"}),
        f"### What the beginning of a branch gives back, which leaves the tape at call {BRANCH} of {CALLS}",
        _table(cells, "branched", {"the branch begins there": "branch"}),
        "### What is reported when the program is edited",
        _table(cells, "reported", {}),
        "### What it costs",
        _costs(seen),
        "\n".join(
            f"{name}: {', '.join(each['pins']) or 'this checkout'}, {each['on']}."
            for name, each in seen.items()
        ),
    ]
    return "\n\n".join(parts)


def _table(cells: dict[str, Any], part: str, more: dict[str, str]) -> str:
    lines = [f"| | {' | '.join(cells)} |", f"|---|{'---|' * len(cells)}"]
    for title, key in more.items():
        lines.append(f"| {title} | {' | '.join(each[key] for each in cells.values())} |")
    for title in next(iter(cells.values()))[part]:
        lines.append(f"| {title} | {' | '.join(each[part][title] for each in cells.values())} |")
    return "\n".join(lines)


def _costs(seen: dict[str, Any]) -> str:
    rows = {
        "recording, × the plain run": ("ratio", "× {:.2f}"),
        "seconds that it adds": ("added", "{:.2f}"),
        "recording, × the plain run, in processor time": ("computed ratio", "× {:.2f}"),
        "processor time that it adds": ("computed added", "{:.2f}"),
        "bytes of the tape, × those of its effects": ("bytes", "× {:.2f}"),
        f"bytes of the tape of {CALLS} calls, × those of its effects": ("bytes of 40", "× {:.2f}"),
        "a replay, × as fast as the recorded loop with a model of 200 ms": ("faster", "× {:.1f}"),
    }
    lines = [f"| | {' | '.join(seen)} |", f"|---|{'---|' * len(seen)}"]
    for title, (key, form) in rows.items():
        known = [each.get("costs", {}).get(key) for each in seen.values()]
        lines.append(f"| {title} | {' | '.join('–' if at is None else form.format(at) for at in known)} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """Return the page with the tables of what is noted."""
    head, mark, rest = text.partition(_BEGIN)
    return f"{head}{mark}\n\n{tables(noted())}\n\n{_END}" + rest.partition(_END)[2]


def noted() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(SEEN.read_text(encoding="utf-8")) if SEEN.exists() else {}
    return known


def note(found: dict[str, Any]) -> None:
    """Store what was seen, and keep what isn't asked anew."""
    known = noted()
    for name, each in found.items():
        known[name] = {**known.get(name, {}), **each}
    ordered = {name: known[name] for name in RECORDERS if name in known}
    SEEN.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write(found: dict[str, Any]) -> None:
    """Note what was seen, and show it on the page."""
    note(found)
    if PAGE.exists():
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def seen(
    names: list[str],
    folder: Path,
    rounds: int,
    turns: int,
    cells: bool,
    keep: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Run one recorder after the other; one that can't be installed or run is left out, with a notice.

    ``cells``: whether those are asked for. ``keep`` gets what is known when each part has ended.
    """
    found: dict[str, Any] = {}
    with Model() as model, tempfile.TemporaryDirectory(prefix="harnpy-time-machine-") as all_desks:
        desks = {}
        for name in names:
            place = Path(all_desks) / name
            place.mkdir()
            try:
                desks[name] = desk = Desk(name, installed(name, folder), place, model)
                found[name] = {"on": date.today().isoformat(), "pins": RECORDERS[name].pins}
                if cells:
                    print(f"{name}: asking", file=sys.stderr)
                    found[name]["cells"] = column(desk)
            except (subprocess.CalledProcessError, FileNotFoundError, RuntimeError) as error:
                print(f"  {name} is left out: {getattr(error, 'stderr', error) or error}", file=sys.stderr)
                desks.pop(name, None)
                found.pop(name, None)
        keep(found)
        if turns:
            print("what it costs", file=sys.stderr)
            for name, cost in costs(desks, rounds, turns).items():
                found[name]["costs"] = {key: round(is_now, 3) for key, is_now in cost.items()}
            keep(found)
    return found


def main() -> None:
    known = parser(__doc__, rounds=5)
    known.add_argument("names", nargs="*", metavar="NAME", help=", ".join(RECORDERS))
    known.add_argument(
        "--turns", type=int, default=200, help="of the loop that is timed; 0: nothing is timed"
    )
    known.add_argument("--costs", action="store_true", help="only time the loop")
    known.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "harnpy-time-machine")
    known.add_argument("--write", action="store_true", help=f"write the results into {PAGE.name}")
    options = known.parse_args()
    keep = write if options.write else lambda found: None
    names, timed = options.names or list(RECORDERS), (options.rounds, options.turns)
    found = seen(names, options.folder, *timed, not options.costs, keep)
    print(tables(found) if found and not options.costs else _costs(found))
    late = missed({name: each["costs"] for name, each in found.items() if "costs" in each})
    print(*late, sep="\n")
    if options.check and late:
        sys.exit(1)


if __name__ == "__main__":
    main()
