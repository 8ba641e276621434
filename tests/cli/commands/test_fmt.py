"""`harnpy fmt`: what it writes, says and returns. Spec: 09 §4.3."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harnpy.cli.commands import fmt
from tests.support import Command

UGLY = "let  x=1 // one\n"
PLAIN = "let x = 1 // one\n"


def test_files_are_rewritten_and_named(harnpy: Command, write, tmp_path: Path) -> None:
    write("b/ugly.harn", UGLY)
    write("b/plain.harn", PLAIN)
    write("b/other.txt", UGLY)
    write("a.harn", UGLY)
    done = harnpy("fmt", "b", "a.harn", "b/ugly.harn")
    assert (done.stdout, done.stderr, done.returncode) == ("formatted a.harn\nformatted b/ugly.harn\n", "", 0)
    assert (tmp_path / "b/ugly.harn").read_text() == PLAIN
    assert (tmp_path / "b/other.txt").read_text() == UGLY
    again = harnpy("fmt", "--check", "a.harn", "b")
    assert (again.stdout, again.stderr, again.returncode) == ("", "", 0)


def test_check_and_diff_write_nothing(harnpy: Command, write, tmp_path: Path) -> None:
    write("a.harn", UGLY)
    done = harnpy("fmt", "--check", "a.harn")
    assert (done.stdout, done.stderr, done.returncode) == ("", "a.harn: would be reformatted\n", 1)
    shown = "--- a.harn\n+++ a.harn (formatted)\n@@ -1 +1 @@\n-let  x=1 // one\n+let x = 1 // one\n"
    done = harnpy("fmt", "--diff", "a.harn")
    assert (done.stdout, done.stderr, done.returncode) == (shown, "", 0)
    done = harnpy("fmt", "--diff", "--check", "a.harn")
    assert (done.stdout, done.returncode) == (shown, 1)
    assert (tmp_path / "a.harn").read_text() == UGLY


def test_what_is_no_program_is_told_and_the_rest_is_formatted(harnpy: Command, write, tmp_path: Path) -> None:
    write("a.harn", "let x =\n")
    write("c.harn", UGLY)
    write("bom.harn", "\ufefflet x = 1\n")
    (tmp_path / "b.harn").write_bytes(b'let x = 1\nlet y = "\xff"\n')
    done = harnpy("fmt", "bom.harn", "a.harn", "b.harn", "c.harn", "gone.harn")
    assert done.stderr.splitlines() == [
        "a.harn: Unexpected end of file, expected expression",
        "b.harn: not UTF-8 at line 2: byte 0xff",
        r"bom.harn: Unexpected character '\ufeff' at 1:1",
        "gone.harn: No such file or directory",
    ]
    assert (done.stdout, done.returncode) == ("formatted c.harn\n", 1)
    assert (tmp_path / "b.harn").read_bytes() == b'let x = 1\nlet y = "\xff"\n'


def test_stdin_to_stdout(tmp_path: Path) -> None:
    def run(text: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "harnpy", "fmt", "-", *options]
        return subprocess.run(command, input=text, capture_output=True, cwd=tmp_path, check=False)

    done = run('let  x="ü"\r\n'.encode())
    assert (done.stdout.decode(), done.stderr, done.returncode) == ('let x = "ü"\r\n', b"", 0)
    done = run(b"let x =")
    assert (done.stdout, done.returncode) == (b"", 1)
    assert done.stderr == b"<stdin>: Unexpected end of file, expected expression\n"
    done = run(UGLY.encode(), "--check")
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"<stdin>: would be reformatted\n", 1)


def test_widths_come_from_options_then_from_the_manifest(harnpy: Command, write, tmp_path: Path) -> None:
    write("harn.toml", "[fmt]\nline-width = 10\nseparator_width = 12\n")
    write("a.harn", "f(aaa, bbbb)\n// ----\n")
    assert harnpy("fmt", "a.harn").returncode == 0
    assert (tmp_path / "a.harn").read_text() == "f(\n  aaa,\n  bbbb,\n)\n\n// ---------\n"
    assert harnpy("fmt", "--line-width", "12", "--separator-width=7", "a.harn").returncode == 0
    assert (tmp_path / "a.harn").read_text() == "f(aaa, bbbb)\n\n// ----\n"
    write("harn.toml", '[fmt]\nline_width = "wide"\n')
    done = harnpy("fmt", "a.harn")
    assert done.stderr == "error: [fmt] of harn.toml: `line_width` must be an integer above 0, not 'wide'\n"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("args", "status", "says"),
    [
        ([], 2, "error: `harnpy fmt` requires at least one target path, or `-` for stdin\n"),
        (["-", "a.harn"], 2, "error: `-` stands alone: stdin is one program\n"),
        (["."], 1, "No .harn files found\n"),
    ],
)
def test_nothing_to_format(harnpy: Command, args: list[str], status: int, says: str) -> None:
    done = harnpy("fmt", *args)
    assert done.stderr.startswith(says)
    assert done.returncode == status


def test_a_file_keeps_its_mode_and_its_links(harnpy: Command, write, tmp_path: Path) -> None:
    write("real.harn", UGLY)
    (tmp_path / "real.harn").chmod(0o750)
    (tmp_path / "link.harn").symlink_to("real.harn")
    assert harnpy("fmt", "link.harn").returncode == 0
    assert (tmp_path / "link.harn").is_symlink()
    assert (tmp_path / "real.harn").read_text() == PLAIN
    assert (tmp_path / "real.harn").stat().st_mode & 0o777 == 0o750
    write("fixed.harn", UGLY)
    (tmp_path / "fixed.harn").chmod(0o444)
    done = harnpy("fmt", "fixed.harn")
    assert (done.stderr, done.returncode) == ("fixed.harn: Permission denied\n", 1)
    assert sorted(os.listdir(tmp_path)) == ["fixed.harn", "link.harn", "real.harn"]


def test_many_files_are_formatted_by_several_processes(
    write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fmt, "_PER_PROCESS", 10)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    files = [tmp_path / write(f"{number}.harn", UGLY if number % 2 else "(") for number in range(6)]
    with fmt._formatting(files, fmt.Widths()) as results:
        found = list(results)
    assert [result.name for result in found] == list(map(str, files))
    assert [result.after for result in found] == ["", PLAIN] * 3
