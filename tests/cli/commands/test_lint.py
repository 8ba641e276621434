"""`harnpy lint`: what it says of files, what it mends, when it fails. Spec: 09 §4.2, 03 §1, §15."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from harnpy.cli.app import main

UNUSED = "let a = 1\n"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture
def harnpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, since it needs nothing of another."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Done:
        return Done(main(args), *capsys.readouterr())

    return run


def test_a_finding_has_its_rule_as_label(harnpy: Command, write) -> None:
    done = harnpy("lint", write("a.harn", UNUSED))
    assert done.stderr == (
        "warning: variable `a` is declared but never used\n"
        "  --> a.harn:1:5\n"
        "   |\n"
        " 1 | let a = 1\n"
        "   |     ^ lint[unused-variable]\n"
        "   = help: prefix it with an underscore: `_a`\n"
    )
    assert (done.stdout, done.returncode) == ("", 0)


def test_did_you_mean_is_an_unsafe_fix(harnpy: Command, write) -> None:
    source = "let total = 1\nprintln(total, totel)\n"
    write("a.harn", source)
    harnpy("lint", "--fix", "a.harn")
    assert Path("a.harn").read_text() == source
    harnpy("lint", "--unsafe-fixes", "a.harn")
    assert Path("a.harn").read_text() == source.replace("totel", "total")


def test_files_and_directories(harnpy: Command, write) -> None:
    write("sub/b.harn", "println(1)\n")
    done = harnpy("lint", write("a.harn", "println(2)\n"), "sub", "a.harn")
    assert done.stdout == "a.harn: no issues found\nsub/b.harn: no issues found\n"
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("args", "status", "text"),
    [
        ((), 2, "error: `harnpy lint` requires at least one target path"),
        ((".",), 1, "no .harn files found under the given target(s)"),
        (("gone.harn",), 1, "Error reading gone.harn: No such file or directory"),
        (("--disable", "unused-variabel", "."), 2, "did you mean `unused-variable`?"),
        (("--selct", "x", "."), 2, "--select"),
    ],
)
def test_wrong_usage(harnpy: Command, args: tuple[str, ...], status: int, text: str) -> None:
    done = harnpy("lint", *args)
    assert done.returncode == status
    assert text in done.stderr


def test_an_error_fails_and_so_does_a_warning_where_the_project_is_strict(harnpy: Command, write) -> None:
    assert harnpy("lint", write("a.harn", "break\n")).returncode == 1
    program = write("b.harn", UNUSED)
    assert harnpy("lint", program).returncode == 0
    write("harn.toml", "[check]\nstrict = true\n")
    assert harnpy("lint", program).returncode == 1


def test_a_file_that_is_no_program_fails_and_the_others_are_linted(harnpy: Command, write) -> None:
    write("b.harn", UNUSED)
    done = harnpy("lint", write("a.harn", "let = 1\n"), "b.harn")
    assert done.returncode == 1
    assert done.stderr.startswith("error: expected variable name")
    assert "lint[unused-variable]" in done.stderr


@pytest.mark.parametrize(
    "manifest",
    [
        '[lint]\ndisabled = ["unused-variable"]\n',
        '[check]\ndisable-rules = ["unused-variable"]\n',
    ],
)
def test_rules_that_the_manifest_disables(harnpy: Command, write, manifest: str) -> None:
    write("harn.toml", manifest)
    assert harnpy("lint", write("a.harn", UNUSED)).stdout == "a.harn: no issues found\n"


def test_rules_by_names_of_old_and_names_of_none(harnpy: Command, write) -> None:
    write("harn.toml", '[lint]\ndisabled = ["unreachable-code", "unused-vars"]\n')
    done = harnpy("lint", write("a.harn", "throw 1\nprintln(2)\n"))
    assert done.stdout == "a.harn: no issues found\n"
    assert done.stderr == (
        "warning: harn.toml disables the lint rule `unused-vars`, which isn't one; "
        "known are " + done.stderr.partition("known are ")[2]
    )


def test_settings_of_another_kind_are_told_once(harnpy: Command, write) -> None:
    write(
        "harn.toml",
        '[lint]\ndisabled = "unused-variable"\nrequire_file_header = 1\ncomplexity_threshold = true\n',
    )
    done = harnpy("lint", write("a.harn", "println(1)\n"), write("b.harn", "println(2)\n"))
    assert done.stderr.splitlines() == [
        "warning: [lint] of harn.toml: `disabled` must be a list of rules, not 'unused-variable'",
        "warning: [lint] of harn.toml: `require_file_header` must be true or false, not 1",
        "warning: [lint] of harn.toml: `complexity_threshold` must be an integer, not True",
    ]
    assert done.stdout == "a.harn: no issues found\nb.harn: no issues found\n"


def test_rules_that_the_command_selects_and_disables(harnpy: Command, write) -> None:
    program = write("a.harn", "let a = 1\nthrow 1\nprintln(2)\n")
    found = {
        args: json_codes(harnpy("lint", "--json", *args, program).stdout)
        for args in [
            (),
            ("--select", "dead-code-after-return"),
            ("--disable", "unused-variable"),
            ("--select", "unused-variable", "--disable", "unused-variable"),
        ]
    }
    dead = ["dead-code-after-return"]
    assert list(found.values()) == [["unused-variable", *dead], dead, dead, []]


def json_codes(text: str) -> list[str]:
    return [json.loads(line)["code"] for line in text.splitlines()]


def test_the_complexity_that_a_project_allows(harnpy: Command, write) -> None:
    program = write("a.harn", "fn f(a) {\n  return a && a && a\n}\n\nprintln(f(1))\n")
    assert harnpy("lint", program).stdout == "a.harn: no issues found\n"
    write("harn.toml", "[lint]\ncomplexity_threshold = 2\n")
    assert "function `f` has cyclomatic complexity 3 (> 2)" in harnpy("lint", program).stderr


def test_what_another_file_imports_is_used(harnpy: Command, write) -> None:
    """Even if that file is given as well, and this one is a program of its own."""
    library = write("lib/area.harn", "fn area(n) {\n  return n\n}\n\nprintln(1)\n")
    assert "function `area` is declared but never used" in harnpy("lint", library).stderr
    user = write("user.harn", 'import { area } from "lib/area"\n\nprintln(area(1))\n')
    assert harnpy("lint", library, user).stdout.count("no issues found") == 2


def test_safe_fixes(harnpy: Command, write, tmp_path: Path) -> None:
    write("a.harn", "var n = 1 // kept\nlet unused = 2\nprintln(n)\n")
    done = harnpy("lint", "--fix", "a.harn")
    assert done.stdout == "a.harn: applied 2 fix(es)\na.harn: no issues found\n"
    assert (tmp_path / "a.harn").read_text() == "let n = 1 // kept\nlet _unused = 2\nprintln(n)\n"
    again = harnpy("lint", "--fix", "a.harn")
    assert (again.stdout, again.returncode) == ("a.harn: no issues found\n", 0)


def test_fixes_of_types_are_applied_too(harnpy: Command, write, tmp_path: Path) -> None:
    program = write("a.harn", 'println("n: " + 3)\n')
    assert harnpy("lint", program).stdout == "a.harn: no issues found\n"
    assert harnpy("lint", "--fix", program).stdout.startswith("a.harn: applied 1 fix(es)\n")
    assert (tmp_path / "a.harn").read_text() == 'println("n: ${3}")\n'


def test_a_comment_silences_a_rule_and_its_fix(harnpy: Command, write) -> None:
    program = write("a.harn", "let a = 1 // harnpy: allow unused-variable\n")
    assert harnpy("lint", "--fix", program).stdout == "a.harn: no issues found\n"


def test_fixes_that_need_to_be_asked_for(harnpy: Command, write, tmp_path: Path) -> None:
    source = "fn f(x) {\n  let y = text(x)\n  return y\n}\n\nfn text(x) {\n  return x\n}\n\nprintln(f(1))\n"
    write("a.harn", source)
    done = harnpy("lint", "--fix", "a.harn")
    assert "lint[let-then-return]" in done.stderr
    assert (done.stdout, done.returncode) == ("", 0)
    assert (tmp_path / "a.harn").read_text() == source
    assert harnpy("lint", "--unsafe-fixes", "a.harn").stdout.startswith("a.harn: applied 1 fix(es)\n")
    assert "  return text(x)\n" in (tmp_path / "a.harn").read_text()


def test_line_ends_and_bytes_that_are_no_text_stay(harnpy: Command, write, tmp_path: Path) -> None:
    file = tmp_path / "a.harn"
    file.write_bytes(b'var n = "\xff"\r\nprintln(n)\r\n')
    assert harnpy("lint", "--fix", "a.harn").stdout.startswith("a.harn: applied 1 fix(es)\n")
    assert file.read_bytes() == b'let n = "\xff"\r\nprintln(n)\r\n'


def test_fix_mends_what_the_type_checker_knows_to_mend(harnpy: Command, write, tmp_path: Path) -> None:
    """Text joined with a number is interpolated (03 §8.1); without `--fix` no types are checked."""
    source = 'let left = 3 // of them\n\nfn told(n: int) {\n  println("left: " + n)\n}\n\ntold(left)\n'
    write("a.harn", source)
    assert harnpy("lint", "a.harn").stdout == "a.harn: no issues found\n"
    fixed = harnpy("lint", "--fix", "a.harn")
    assert fixed.stdout == "a.harn: applied 1 fix(es)\na.harn: no issues found\n"
    assert (tmp_path / "a.harn").read_text() == source.replace('"left: " + n', '"left: ${n}"')


def test_a_file_that_nobody_may_write_to_stays_and_the_others_are_mended(
    harnpy: Command, write, tmp_path: Path
) -> None:
    write("a.harn", UNUSED)
    (tmp_path / "a.harn").chmod(0o444)
    write("b.harn", UNUSED)
    done = harnpy("lint", "--fix", "a.harn", "b.harn")
    assert done.stderr.startswith(
        "a.harn: Permission denied\nwarning: variable `a` is declared but never used\n"
    )
    assert done.stdout == "b.harn: applied 1 fix(es)\nb.harn: no issues found\n"
    assert (done.returncode, (tmp_path / "a.harn").read_text()) == (1, UNUSED)


def test_a_mended_file_keeps_its_mode_and_its_links(harnpy: Command, write, tmp_path: Path) -> None:
    write("real.harn", UNUSED)
    (tmp_path / "real.harn").chmod(0o750)
    (tmp_path / "link.harn").symlink_to("real.harn")
    assert harnpy("lint", "--fix", "link.harn").returncode == 0
    assert (tmp_path / "link.harn").is_symlink()
    assert (tmp_path / "real.harn").read_text() == "let _a = 1\n"
    assert (tmp_path / "real.harn").stat().st_mode & 0o777 == 0o750


def test_an_import_goes_with_its_line(harnpy: Command, write, tmp_path: Path) -> None:
    for end in ("\n", "\r\n"):
        text = end.join(['import { sum } from "std/math"', "", "println(1)", ""])
        (tmp_path / "a.harn").write_bytes(text.encode())
        assert harnpy("lint", "--fix", "a.harn").returncode == 0
        assert (tmp_path / "a.harn").read_bytes() == f"println(1){end}".encode()
