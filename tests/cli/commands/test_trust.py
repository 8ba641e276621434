"""`harnpy trust`, and who needs it: programs, commands that keep something, a `Vm`. Spec: 09 §12.1."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import Command

Write = Callable[[str, str], str]

SERVERS = '[[mcp]]\nname = "shop"\ncommand = "touch"\nargs = ["started"]\nlazy = true\n'
LOG = '[event_log]\nstore = "sqlite:../events.db"\n'


def needs(parts: str) -> str:
    verb = "take" if "," in parts else "takes"
    return f"error: {parts} {verb} effect only once you trust the project: look at "


@pytest.fixture
def main(write: Write) -> None:
    write("main.harn", 'println("ran")\n')


@pytest.mark.parametrize(
    "words",
    [
        ["run", "main.harn"],
        ["run", "--llm-mock-record", "written", "main.harn"],
        ["main.harn"],
        ["repl"],
        ["profile", "--html", "written", "main.harn"],
        ["bench", "main.harn"],
        ["debug", "main.harn"],
        ["test", "tests"],
        ["eval", "--structural-experiment", "prompt_order_permutation", "main.harn"],
        ["mcp", "serve", "main.harn"],
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
@pytest.mark.usefixtures("main")
def test_a_program_does_not_start_untrusted(
    harnpy: Command, write: Write, tmp_path: Path, words: list[str]
) -> None:
    write("harn.toml", SERVERS + LOG)
    write("tests/test_a.harn", 'pipeline test_a(task) { println("ran") }\n')
    done = harnpy(*words, stdin='println("ran")\n')
    assert done.returncode == 1
    assert done.stderr.startswith(needs("mcp, event_log.store"))
    assert "harn.toml, and run `harnpy trust`; in CI, set HARN_TRUST=1 or pass --trust\n" in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "written").exists()


@pytest.mark.usefixtures("main")
def test_it_starts_once_the_user_has_decided_and_until_the_parts_change(
    harnpy: Command, write: Write, tmp_path: Path
) -> None:
    write("harn.toml", SERVERS)
    done = harnpy("trust")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        'mcp = [{"args":["started"],"command":"touch","lazy":true,"name":"shop"}]\n'
        f"trusted: {os.path.realpath(tmp_path)}\n"
    )
    assert harnpy("run", "main.harn").stdout == "ran\n"
    write("harn.toml", f'[package]\nname = "shop"\n{SERVERS}')
    assert harnpy("run", "main.harn").stdout == "ran\n"
    write("harn.toml", SERVERS.replace("started", "other"))
    assert harnpy("run", "main.harn").stderr.startswith(needs("mcp"))
    assert harnpy("trust", "--list").stdout == f"{os.path.realpath(tmp_path)} (has changed)\n"
    assert harnpy("trust").returncode == 0
    assert harnpy("trust", "--list").stdout == f"{os.path.realpath(tmp_path)}\n"
    assert harnpy("trust", "--revoke").stdout.endswith("is not trusted any more\n")
    assert harnpy("trust", "--list").stdout == ""
    assert harnpy("run", "main.harn").returncode == 1


@pytest.mark.usefixtures("main")
def test_for_one_command_and_for_a_machine(harnpy: Command, write: Write) -> None:
    write("harn.toml", SERVERS)
    assert harnpy("run", "--trust", "main.harn").stdout == "ran\n"
    assert harnpy("run", "main.harn", HARN_TRUST="1").stdout == "ran\n"
    assert harnpy("run", "main.harn", HARN_TRUST="0").returncode == 1


@pytest.mark.usefixtures("main")
def test_others_neither_need_it_nor_say_so(harnpy: Command, write: Write) -> None:
    write("harn.toml", SERVERS.replace("lazy = true", ""))
    write("uses.harn", 'println(mcp["shop"])\n')
    for words in (
        ["check", "uses.harn"],
        ["lint", "main.harn"],
        ["sessions", "list"],
        ["tokens", "create", "me"],
    ):
        done = harnpy(*words)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("manifest", "words", "parts"),
    [
        (LOG, ["tokens", "create", "me"], "event_log.store"),
        (LOG, ["waitpoint", "list"], "event_log.store"),
        ('[sessions]\nstore = "postgresql://h/db"', ["sessions", "list"], "sessions.store"),
        ('[sessions]\nstore = "jsonl:/elsewhere"', ["sessions", "list"], "sessions.store"),
        (
            '[workspace]\npipelines = ["main.harn", "../a.harn"]',
            ["check", "--workspace"],
            "workspace.pipelines",
        ),
        ('[package]\nevals = ["/a.toml"]', ["test", "package", "--evals"], "package.evals"),
    ],
)
@pytest.mark.usefixtures("main")
def test_a_command_needs_it_for_what_it_uses(
    harnpy: Command, write: Write, tmp_path: Path, manifest: str, words: list[str], parts: str
) -> None:
    write("harn.toml", manifest)
    before = sorted(tmp_path.rglob("*"))
    done = harnpy(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(needs(parts))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_place_in_the_project_needs_none(harnpy: Command, write: Write, tmp_path: Path) -> None:
    write(
        "harn.toml", '[event_log]\nstore = "sqlite:kept/events.db"\n[sessions]\nstore = "jsonl:kept/logs"\n'
    )
    assert harnpy("tokens", "create", "me").returncode == 0
    assert harnpy("sessions", "list").returncode == 0
    assert (tmp_path / "kept/events.db").exists()
    assert harnpy("trust").stdout.endswith("says nothing that needs trust\n")


def test_a_link_out_of_the_project_needs_it(
    harnpy: Command, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (tmp_path / ".harn").symlink_to(elsewhere)
    for words in (["tokens", "create", "me"], ["sessions", "list"], ["run", "-e", "nil"], ["repl"]):
        assert harnpy(*words).stderr.startswith(needs(".harn"))
    assert not list(elsewhere.iterdir())
    assert harnpy("trust").stdout.startswith(f'.harn = "{os.path.realpath(elsewhere)}"\n')
    assert harnpy("tokens", "create", "me").returncode == 0


def test_a_file_that_a_directory_links_to_outside_is_not_rewritten(
    harnpy: Command, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    messy = tmp_path_factory.mktemp("elsewhere") / "a.harn"
    messy.write_text("let  a=1\n")
    (tmp_path / "link.harn").symlink_to(messy)
    harnpy("fmt", ".")
    harnpy("lint", "--fix", ".")
    assert messy.read_text() == "let  a=1\n"
    harnpy("fmt", "link.harn")
    assert messy.read_text() == "let a = 1\n"


def test_modules_of_the_working_directory_are_not_imported(
    harnpy: Command, write: Write, tmp_path: Path
) -> None:
    for name in ("click", "multiprocessing", "concurrent", "signal", "greenlet"):
        write(f"{name}.py", f'open({str(tmp_path / "imported")!r}, "w")\nraise SystemExit(3)\n')
    for name in ("a", "b"):
        write(f"tests/test_{name}.harn", "pipeline test_a(task) { assert(true) }\n")
    # In interpreters of their own: one for the command, and more for the files.
    done = harnpy("test", "--parallel", "tests", PYTHONWARNINGS="default")
    assert (done.returncode, "2 passed" in done.stdout) == (0, True)
    assert not (tmp_path / "imported").exists()
