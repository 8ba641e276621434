"""The documentation is true: its snippets run and print what it says.

In README.md and docs/*.md a `harn` block is a whole program. The `python` blocks of a page are one
script, cut into pieces. A `text` block straight after either is what it prints. A `console` block that
begins with the REPL's prompt is a conversation with it. Links within the repository lead somewhere,
and the modules that pages name exist.
"""

from __future__ import annotations

import os
import pkgutil
import re
import shlex
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.util._once import Once

from harnpy.cli.repl import Shell, is_unfinished
from harnpy.cli.testing.sandbox import run_program
from harnpy.storage.errors import LeaseHeld
from tests import peers
from tests.support import Popen

pytestmark = pytest.mark.usefixtures("clock")

ROOT = Path(__file__).parent.parent
SPEC = ROOT / "docs" / "spec"
#: Every page, without the specification, whose blocks are fragments.
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if SPEC not in page.parents),
]

#: The server that the programs of docs/mcp.md connect to.
MCP_SERVER = ROOT / "examples/mcp_server.py"

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """A code block, the line it starts on, and the output that follows it (None: not stated)."""

    language: str
    code: str
    line: int
    output: str | None


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(match[1], match[2], text.count("\n", 0, match.start(2)) + 1, match[3])
        for match in _BLOCK.finditer(text)
    ]


PROMPTS = ("harn〉", "::: ")
#: The first line of a block that is a file of a tutorial.
_FILE = re.compile(r"(?://|#) (\w+\.(?:harn|toml|py|yaml))\n")
ALL = [
    pytest.param(snippet, id=f"{page.name}:{snippet.line}") for page in PAGES for snippet in snippets(page)
]
#: Half of its programs are wrong on purpose; tests/check/test_explanations.py looks at all of them.
EXPLANATIONS = ROOT / "docs/diagnostics.md"
PROGRAMS = [
    each
    for each in ALL
    if each.values[0].language == "harn"
    and not _FILE.match(each.values[0].code)
    and not each.id.startswith(f"{EXPLANATIONS.name}:")
]
CONVERSATIONS = [each for each in ALL if each.values[0].code.startswith(PROMPTS)]
PYTHON_PAGES = [page for page in PAGES if any(s.language == "python" for s in snippets(page))]


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("snippet", PROGRAMS)
def test_harn_snippet(
    snippet: Snippet, evaluator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARN_RUN_DIR", str(tmp_path / ".harn-runs"))
    (tmp_path / MCP_SERVER.name).write_bytes(MCP_SERVER.read_bytes())
    program = tmp_path / "snippet.harn"
    program.write_text(snippet.code, encoding="utf-8")
    outcome = run_program(program, evaluator=evaluator)
    assert outcome.error is None, outcome.report
    if snippet.output is not None:
        assert outcome.output == snippet.output


#: Sections that readers copy alone, by page: the heading's level, and where the part with them begins.
ALONE = {"adapters.md": ("## ", ""), "import.md": ("### ", "## Move an app\n")}
#: Sections that look at what another one has stored, which they name.
_AFTER = {"What a store has": "LangGraph"}


def sections() -> list[Any]:
    """The line ranges of what runs to run a section that is copied alone."""
    found = []
    for name, (level, start) in ALONE.items():
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        first = text.count("\n", 0, text.index(start)) if start else 0
        lines = text.split("\n")
        heads = [n for n, line in enumerate(lines, 1) if n > first and line.startswith(level)]
        parts = {
            lines[head - 1].removeprefix(level): range(head, end)
            for head, end in zip(heads, [*heads[1:], len(lines) + 1], strict=True)
        }
        for title, lines_of in parts.items():
            needed = [parts[_AFTER[title]], lines_of] if title in _AFTER else [lines_of]
            found.append(pytest.param(ROOT / "docs" / name, needed, id=f"{name}:{title}"))
    return found


@pytest.mark.parametrize(("page", "lines"), sections())
def test_a_section_runs_alone(
    page: Path,
    lines: list[range],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    python_snippets(page, tmp_path, monkeypatch, capsys, lines)


@pytest.mark.parametrize("page", PYTHON_PAGES, ids=lambda page: page.name)
def test_python_snippets(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python_snippets(page, tmp_path, monkeypatch, capsys)


def python_snippets(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lines: list[range] | None = None,
) -> None:
    """Run the blocks of a page, or those in ``lines``, as one program."""
    monkeypatch.chdir(tmp_path)
    # A page may set it, once in a process.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    namespace: dict[str, Any] = {"__name__": page.stem}
    missing = []
    for snippet in snippets(page):
        if snippet.language != "python" or _FILE.match(snippet.code):
            continue
        if lines is not None and not any(snippet.line in part for part in lines):
            continue
        # Blank lines in front make the line numbers of a traceback those of the page.
        code = compile("\n" * (snippet.line - 1) + snippet.code, str(page), "exec")
        try:
            exec(code, namespace)  # noqa: S102
        except ImportError as error:
            reason = peers.missing(error)
            if reason is not None:  # later blocks look at what this one does
                pytest.skip(f"{page.name}:{snippet.line} {reason}")
            if not isinstance(error.__cause__, ModuleNotFoundError):
                raise
            missing.append(str(error))  # an extra that isn't installed
            continue
        printed = capsys.readouterr().out
        if snippet.output is not None:
            assert printed == snippet.output, f"{page.name}:{snippet.line}"
    if missing:
        pytest.skip("; ".join(missing))


@pytest.mark.parametrize("snippet", CONVERSATIONS)
def test_conversation(snippet: Snippet) -> None:
    shell, screen, text = Shell(), StringIO(), ""
    with redirect_stdout(screen), redirect_stderr(screen):
        for line in snippet.code.splitlines(keepends=True):
            if not line.startswith(PROMPTS):
                continue
            screen.write(line)
            text += line.removeprefix(PROMPTS[0]).removeprefix(PROMPTS[1])
            if not is_unfinished(text):
                shell.feed(text)
                text = ""
    assert screen.getvalue() == snippet.code


TUTORIAL = ROOT / "docs/durable-sessions.md"
TUTORIALS = [TUTORIAL, ROOT / "docs/durable-workflows.md"]
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d{8}T\d{6}\.\d{6}Z")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_tutorial_of(
    page: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, postgres: str, popen: Popen
) -> None:
    """From top to bottom in one directory: blocks that begin with the name of a file are written there,
    commands behind `$` print what follows them. One with ``--follow`` runs until the end, as in a second
    terminal: a `text` block behind other commands is what it has printed meanwhile.
    """
    followed_from_top_to_bottom(page, tmp_path, tmp_path_factory.mktemp("user"), popen, postgres)


@pytest.mark.parametrize("page", ["README.md", "docs/compatibility.md", "docs/time-machine.md"])
def test_what_is_followed_without_a_server(
    page: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, popen: Popen
) -> None:
    followed_from_top_to_bottom(ROOT / page, tmp_path, tmp_path_factory.mktemp("user"), popen)


def followed_from_top_to_bottom(
    page: Path, tmp_path: Path, user: Path, popen: Popen, postgres: str = ""
) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HARN")}
    shell = Shells(popen, tmp_path, {**inherited, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(user)})
    server = "postgresql://postgres:secret@localhost/postgres"
    with shell:
        for snippet in snippets(page):
            code = snippet.code.replace(server, postgres)
            if named := _FILE.match(code):
                (tmp_path / named[1]).write_text(code, encoding="utf-8")
            elif snippet.language == "console":
                printed = shell.type(code)
                assert _MOMENT.sub("TIME", printed) == _MOMENT.sub("TIME", code), snippet.line
                if snippet.output is not None:
                    assert shell.followed(snippet.output) == snippet.output


def test_the_tutorial_shows_the_lease_that_another_process_has() -> None:
    """A loop would wait half a minute before it says so."""
    owner, until = "vm:bb282fa4-f128-450a-83f7-e388d5dc13b2:12555:3077341", 1795400166
    assert f"{LeaseHeld('session:support', owner, until)}: " in TUTORIAL.read_text(encoding="utf-8")


#: What a shell does with a command's output.
_OPERATORS = frozenset(("|", ">", "2>"))


class Shells:
    """Two terminals in a directory: one for commands, and one that follows a session."""

    def __init__(self, popen: Popen, directory: Path, environment: dict[str, str]) -> None:
        self._popen = popen
        self._directory = directory
        self._environment = environment
        self._follower: subprocess.Popen[str] | None = None

    def __enter__(self) -> Shells:
        return self

    def __exit__(self, *_: object) -> None:
        if self._follower is not None:
            self._follower.kill()
            self._follower.communicate()

    def type(self, block: str) -> str:
        """Run the commands of a block and return it with what they print."""
        screen = ""
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            follow = command.endswith("--follow")
            screen += f"$ {command}\n{self._follow(command, expected) if follow else self._run(command)}"
        return screen

    def followed(self, expected: str) -> str:
        """As many lines of the second terminal as are expected."""
        assert self._follower is not None
        assert self._follower.stdout is not None
        return "".join(self._follower.stdout.readline() for _ in expected.splitlines())

    def _follow(self, command: str, expected: str) -> str:
        self._follower = self._started(command)
        return self.followed(expected)

    def _run(self, command: str) -> str:
        process = self._started(command)
        printed, _ = process.communicate(timeout=60)
        lines = [line.rstrip() for line in printed.replace(str(self._directory), "/home/me").splitlines()]
        if process.returncode == -signal.SIGKILL:
            lines.append("Killed")  # as a shell says it
        return "".join(f"{line}\n" for line in lines)

    def _started(self, command: str) -> subprocess.Popen[str]:
        name, *words = shlex.split(command)
        programs = {"harnpy": [sys.executable, "-m", "harnpy"], "python": [sys.executable]}
        is_plain = name in programs and _OPERATORS.isdisjoint(words)
        start: Popen = self._popen if is_plain and name == "harnpy" else subprocess.Popen
        ours = f'harnpy() {{ {shlex.join(programs["harnpy"])} "$@"; }}\n'
        return start(
            [*programs[name], *words] if is_plain else ["bash", "-c", ours + command],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The headings of a page as a link names them."""
    headings = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


#: Lists of the repository that aren't pages of the documentation.
LISTS = [ROOT / "examples" / "README.md"]


@pytest.mark.parametrize("page", [*PAGES, *LISTS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name} links to {path}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {path}#{anchor}"


_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
#: Paths and modules in code spans: `vm/emit/`, `vm/vm.py`, `tests/test_docs.py`, `harnpy.faults`.
_PATH = re.compile(r"(?:\w+/)+(?:\w+\.py)?|\w+\.py")
_MODULE = re.compile(r"harnpy(?:\.\w+)+")


def _exists(path: str) -> bool:
    """Whether a path leads somewhere, from the repository or from the package."""
    return any((base / path).exists() for base in (ROOT, ROOT / "harnpy"))


def _resolves(name: str) -> bool:
    """Whether a dotted name is a module or what a module has."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_code_that_a_page_names_exists(page: Path) -> None:
    spans = _CODE.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    modules = [span for span in spans if _MODULE.fullmatch(span)]
    assert [name for name in modules if not _resolves(name)] == []
    if page.parent.name == "internals" or page.name == "CONTRIBUTING.md":
        paths = [span for span in spans if _PATH.fullmatch(span)]
        assert [path for path in paths if not _exists(path)] == []


def test_the_vocabulary_has_each_word_once_and_says_what_it_is_elsewhere() -> None:
    page = (ROOT / "docs/internals/vocabulary.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[0] != "word"]
    words = [row[0] for row in rows]
    assert sorted(set(words)) == sorted(words)
    assert [row for row in rows if len(row) != 4 or not all(map(str.strip, row))] == []


def test_every_bundled_module_is_listed() -> None:
    listed = (ROOT / "docs/modules.md").read_text(encoding="utf-8")
    for module in sorted((ROOT / "stdlib").glob("*.harn")):
        assert f"| `std/{module.stem}` |" in listed


def test_the_readme_promises_two_commands() -> None:
    commands = [s.code for s in snippets(ROOT / "README.md") if s.language == "sh"]
    assert len(commands) == 2
    assert commands[0].endswith("harnpy run examples/quick_tour.harn\n")
    # `.ci/run` runs the first line of the page that names pytest.
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert commands[1] == next(line for line in page.splitlines(keepends=True) if "pytest" in line)


def test_the_pictures_of_the_readme_are_there_light_and_dark_and_small() -> None:
    shown = re.findall(r'(?:src|srcset)="([^"]+)"', (ROOT / "README.md").read_text(encoding="utf-8"))
    folder = ROOT / "docs" / "pictures"
    assert sorted(shown) == sorted(str(each.relative_to(ROOT)) for each in folder.iterdir())
    assert {name.replace("light", "dark") for name in shown if "light" in name} == {
        name for name in shown if "dark" in name
    }
    assert [name for name in shown if (ROOT / name).stat().st_size > 150_000] == []


def test_every_example_is_listed() -> None:
    page = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    programs = {each.name for each in (ROOT / "examples").iterdir() if each.suffix in (".harn", ".py")}
    # Those are servers for other examples.
    assert programs - set(re.findall(r"\]\((\w+\.\w+)\)", page)) == {
        "mcp_server.py",
        "two_tabs.py",
        "two_tabs_fastapi_server.py",
    }
