"""What commands show at 50, 80 and 120 columns, whole: a change of it shows as a diff. Spec: 09 §1.3.

A file of `golden/` for each screen; widths that look alike share a part. This writes those files anew, and
removes those of screens that are no more:

    HARNPY_UPDATE_GOLDEN=1 pytest tests/cli/screens
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import click
import pytest

from harnpy.cli.app import harnpy
from harnpy.cli.profiler import Recorder
from harnpy.cli.repl import Shell
from harnpy.formats.visible import cells
from tests.cli.screens import project
from tests.cli.screens.screen import CODES, shown, written

#: What folded the texts in the files.
FOLDED_BY = {"click": "8.5.", "rich": "15.0."}
GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (50, 80, 120)
UPDATES = "HARNPY_UPDATE_GOLDEN" in os.environ
#: 1 January 2026.
START = 1_767_225_600.0
SESSIONS = f"sessions --store {project.STORE}"

#: Screens by name, each a command line. Each sees what the ones before it did.
COMMANDS = {
    "version": "version",
    "usage": "sessions lst",
    "builtin": "builtins println",
    "builtins-of-lists": "builtins list",
    "explain": "explain operand-type",
    "explain-all": "explain",
    "check": "check wrong.harn",
    "lint": "lint untidy.harn",
    "fmt": "fmt --diff untidy.harn",
    "viz": "viz graph.harn",
    "run-error": "run wrong.harn",
    "test": "test tests",
    "test-failing": "test failing",
    "test-durations": "test --durations tests",
    "coverage": "test --coverage tests",
    "profile": "profile fine.harn",
    "bench": "bench fine.harn -n 3",
    "init": "init --template agent new",
    "trust": "trust shop",
    "trust-list": "trust --list",
    "tokens": "tokens list",
    "waitpoints": "waitpoint list",
    "runs": "runs list",
    "runs-inspect": "runs inspect .harn-runs/run-1.json",
    "runs-diff": "runs diff .harn-runs/run-1.json .harn-runs/run-2.json",
    "replay": "replay .harn-runs/run-1.json",
    "sessions": f"{SESSIONS} list",
    "sessions-show": f"{SESSIONS} show talk",
    "sessions-events": f"{SESSIONS} show talk --events",
    "sessions-tree": f"{SESSIONS} tree",
    "sessions-search": f"{SESSIONS} search deploy",
    "sessions-missing": f"{SESSIONS} show nobody",
    "doctor": "doctor",
    "serve": f"serve --store {project.STORE}",
}
#: What is typed in the REPL.
CONVERSATION = (
    ":help",
    '[{name: "日本", price: 3.5, count: 12}, {name: "pear 🍐", price: 10, count: 1}]',
    '{id: 7, customer: {name: "Ada Lovelace", city: "London"}, items: ["apple", "pear", "plum"], paid: true}',
    "[1, 2, 3].map({ n -> n * n })",
    '"one\ntwo"',
    'let s = agent_session_open("talk")',
    'agent_session_inject(s, {role: "user", content: "Hello"})',
    'agent_session_fork(s, "another-road")',
    ":sessions",
    ":session talk",
    ":tree",
    ":vars",
    ":hlep",
    "total = 3",
    ":doc println",
)
#: Lines that may be longer than the screen: what is copied from it, or comes from a file, stays as it is.
LONG = {
    "messages of diagnostics, a line each": re.compile(r"^(Error|error|warning): |^ +(= help:|\|.*\blint\[)"),
    "source lines, and carets below them": re.compile(r"^ *(\d+ )?\| "),
    "places in files": re.compile(r"^ *(-->|:::) "),
    "what a program compares or throws": re.compile(r"^ *(error: |[-+] |expected: |actual: )"),
    "tests and their files": re.compile(r"^  (PASS|FAIL)  \S+ \[|^ +N ms  \S+ \["),
    "an address": re.compile(r"^\[harn\] serve: "),
    "a path in the end": re.compile(r"(^|.*\s)\S*/\S+$"),
    "JSON": re.compile(r'^.*\s?[\[{]"|^\s+\d+  \S+Z  \w+ +\{'),
    "a diff of a file": re.compile(r"^[-+ ] "),
    "what was said": re.compile(r"^(user|assistant): |^  visible: "),
    "Mermaid": re.compile(r'^    n\d+\["'),
    "programs of explanations": re.compile(r"^  .*[{}()]"),
}
#: Screens of other hands, which may be wider until they fold.
WIDER = {
    "runs-inspect": "texts of the record, one a line",
    "runs-diff": "texts of the records",
    "replay": "texts of the record",
    "usage": "the usage line, to be copied",
    "waitpoints": "one line with a URL",
    "tokens": "one line with a URL",
}


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the words of every command that has a help."""

    def below(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                found = command.get_command(click.Context(command), name)
                if found is not None:
                    yield from below(found, (*words, name))

    return below(harnpy, ())


@pytest.fixture(scope="module")
def scene() -> Iterator[Path]:
    """A project, the working directory, in a world in which everything is the same each time."""
    # Its name is equally long everywhere, as texts with it are folded.
    place = Path(mkdtemp(prefix="screens-", dir="/tmp"))
    ids = project.Ids()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harnpy.world.clock.RealClock.now", staticmethod(lambda: START))
        patch.setattr("harnpy.world.ids.RealIds.new", lambda self: ids.new())
        for name in [
            name for name in os.environ if name.startswith(("HARN_", "XDG_")) or name.endswith("_API_KEY")
        ]:
            patch.delenv(name)
        patch.setattr("harnpy.world.ids.RealEntropy.bytes", staticmethod(ids.bytes))
        patch.setattr("harnpy.serve.server.serve", project.served)
        patch.setattr("harnpy.cli.commands.doctor.setup", lambda world, online: project.FINDINGS)
        for module in ("testing.user_tests", "testing.sandbox", "commands.profile"):
            patch.setattr(f"harnpy.cli.{module}.perf_counter", project.Steps(0.001))
        patch.setattr(Recorder.__init__, "__defaults__", (project.Steps(1000),))
        patch.setenv("HOME", str(place))
        patch.setenv("TZ", "UTC")
        time.tzset()
        patch.chdir(place)
        project.build(place)
        yield place
    rmtree(place)
    time.tzset()


#: Times of a profile: how often its clock is read is CPython's affair.
PROFILED = re.compile(r"\d\.\d\d ms")


def masked(text: str, scene: Path) -> str:
    """What was written, without codes, blanks in the end of lines, and the place of the project."""
    text = CODES.sub("", text).replace(str(scene), "/tmp/screens-00000000")
    text = PROFILED.sub("0.00 ms", text)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def compare(name: str, screens: dict[int, str]) -> None:
    """Compare what a screen shows at each width with its file, or write that.

    Other releases of the libraries that fold texts may do it in other places: then only the law is tested.
    """
    if any(not version(library).startswith(release) for library, release in FOLDED_BY.items()):
        return
    parts: dict[str, list[int]] = {}
    for width, text in screens.items():
        parts.setdefault(text, []).append(width)
    whole = "".join(
        f"──── {', '.join(map(str, widths))} columns\n{text.strip(chr(10))}\n"
        for text, widths in parts.items()
    )
    file = GOLDEN / f"{name}.txt"
    if UPDATES:
        file.parent.mkdir(exist_ok=True)
        file.write_text(whole, encoding="utf-8")
    assert whole == file.read_text(encoding="utf-8"), "see the module's first lines for how to update"


def too_long(name: str, width: int, text: str) -> list[str]:
    """The lines that are longer than the screen, except for those that are listed."""
    if name in WIDER:
        return []
    lines = (line for line in text.split("\n") if cells(line) > width)
    return [
        f"{name}, {width}: {line}" for line in lines if not any(each.match(line) for each in LONG.values())
    ]


def test_screens(scene: Path) -> None:
    long = []
    for name, command in COMMANDS.items():
        screens = {}
        for width in WIDTHS:
            rmtree("new", ignore_errors=True)
            screens[width] = masked(shown(command.split(), width), scene)
            long += too_long(name, width, screens[width])
        compare(name, screens)
    assert not long, "\n".join(long)


def test_the_repl(scene: Path) -> None:
    screens = {}
    for width in WIDTHS:
        shell = Shell()

        def converse(feed: Callable[[str], None] = shell.feed) -> None:
            for line in CONVERSATION:
                print(f"harn〉{line}")
                feed(line)

        screens[width] = masked(written(converse, width), scene)
        said = {f"harn〉{line}" for line in CONVERSATION}
        answers = "\n".join(line for line in screens[width].split("\n") if line not in said)
        assert not too_long("repl", width, answers)
    compare("repl", screens)


def test_helps(scene: Path) -> None:
    for words in commands():
        name = "-".join(("help", *words))
        screens = {}
        for width in WIDTHS:
            screens[width] = masked(shown([*words, "--help"], width), scene)
            assert max(map(cells, screens[width].split("\n"))) <= width, (words, width)
        compare(name, screens)


def test_pipes_get_no_codes(scene: Path) -> None:
    for name, command in COMMANDS.items():
        assert "\x1b" not in shown(command.split(), 80, is_terminal=False), name


def test_no_color(scene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    for name, command in COMMANDS.items():
        text = shown(command.split(), 80)
        assert not re.search(r"\x1b\[(\d+;)*(3|4|9|10)\d(;\d+)*m", text), name


def test_each_file_has_its_screen() -> None:
    names = {*COMMANDS, "repl", *("-".join(("help", *words)) for words in commands())}
    for file in GOLDEN.glob("*.txt"):
        if UPDATES and file.stem not in names:
            file.unlink()
        assert file.stem in names or UPDATES, f"{file.name} is of no screen"
