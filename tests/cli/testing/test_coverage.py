"""`harnpy test --coverage`. Spec: 09 §3.5."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnpy.cli.testing import conformance
from harnpy.cli.testing.conformance import find_cases
from harnpy.cli.testing.coverage import Coverage, FileCoverage, missing, percent
from harnpy.cli.testing.sandbox import run_program
from tests.support import ROOT, Command

LIBRARY = """\
let limit = 3

pub fn grade(n) {
  if n > 90 {
    return "A"
  } else if n > 80 {
    return "B"
  }
  return "C"
}

pub fn sum(xs) {
  var total = 0
  for x in xs {
    guard x > 0 else { continue }
    total = total + x
  }
  return total
}

pub fn never(x) {
  let y = x * limit

  return y
}
"""
TESTS = """\
import "../src/lib"
fn helper(x) { if x { return 1 } else { return 2 } }
pipeline test_grades(task) {
  assert_eq(grade(95), "A")
  assert_eq(grade(10), "C")
}
pipeline test_sum(task) {
  assert_eq(sum([1, 2, 3]), 6)
  assert_eq(helper(true), 1)
}
"""
TABLE = """\
lines         branches       file            missing
  75%   9/12       57%  4/7  src/lib.harn    7, 22-24; 6: else if, 14: not entered, 15: else
 100%    1/1       50%  1/2  tests/lib.harn  2: else
  77%  10/13       56%  5/9  total
"""


@pytest.fixture
def project(write) -> None:
    write("src/lib.harn", LIBRARY)
    write("tests/lib.harn", TESTS)


def covered(program: str, directory: Path, walk: bool = False) -> FileCoverage:
    """What running a program counts."""
    path = directory / "program.harn"
    path.write_text(program, encoding="utf-8")
    coverage = Coverage(left_out=lambda pipeline: False)
    outcome = run_program(path, attach=coverage.attach, evaluator="walk" if walk else "compile")
    assert outcome.error is None, outcome.report
    (file,) = coverage.files()
    return file


def branches(file: FileCoverage) -> list[tuple[int, str, int]]:
    return [(branch.line, branch.outcome, count) for branch, count in file.branches()]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("more", [[], ["--parallel"], ["--walk"]])
def test_the_table(harnpy: Command, more: list[str]) -> None:
    done = harnpy("test", "--coverage", *more)
    _, _, after = done.stdout.partition("2 passed, 2 total")
    assert after.partition("\n\n")[2] == TABLE
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.usefixtures("project")
def test_lcov(harnpy: Command, tmp_path: Path) -> None:
    done = harnpy("test", "--lcov", "out.info")
    assert done.stdout.endswith(TABLE + "report: out.info\n")
    records = (tmp_path / "out.info").read_text(encoding="utf-8").split("end_of_record\n")
    assert records[0].splitlines() == [
        "TN:",
        "SF:src/lib.harn",
        *("FN:3,grade", "FN:12,sum", "FN:21,never", "FNDA:2,grade", "FNDA:1,sum", "FNDA:0,never"),
        *("FNF:3", "FNH:2"),
        *("BRDA:4,1,if,1", "BRDA:6,1,else if,0", "BRDA:6,1,no else,1"),
        *("BRDA:14,2,entered,3", "BRDA:14,2,not entered,0", "BRDA:15,3,else,0", "BRDA:15,3,holds,3"),
        *("BRF:7", "BRH:4"),
        *("DA:1,2", "DA:4,2", "DA:5,1", "DA:7,0", "DA:9,1", "DA:13,1", "DA:14,1", "DA:15,3", "DA:16,3"),
        *("DA:18,1", "DA:22,0", "DA:24,0", "LF:12", "LH:9"),
    ]
    assert records[1].splitlines()[-3:] == ["DA:2,1", "LF:1", "LH:1"]


@pytest.mark.usefixtures("project")
def test_the_page(harnpy: Command, tmp_path: Path) -> None:
    done = harnpy("test", "--html", ".")
    assert done.stdout.endswith("report: index.html\n")
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert '<li class="missed"><span class="at">7</span><span class="count">0×</span>' in page
    assert '<li class="ran"><span class="at">5</span><span class="count">1×</span>' in page
    assert '<span class="branches">never: not entered</span>' in page


def test_a_failing_test_counts_what_it_ran(harnpy: Command, write) -> None:
    write("x.harn", 'fn f() {\n  throw "x"\n  println(1)\n}\npipeline test_a(t) { f() }')
    done = harnpy("test", "x.harn", "--coverage")
    assert done.stdout.endswith("  50%  1/2         –     x.harn  3\n")
    assert done.returncode == 1


def test_nothing_to_count(harnpy: Command, write) -> None:
    write("x.harn", "pipeline test_a(t) { assert(true) }")
    assert harnpy("test", "x.harn", "--coverage").stdout.endswith(
        "\n\ncoverage: no Harn code below this directory ran\n"
    )


@pytest.mark.parametrize("option", [["--coverage"], ["--lcov", "x"], ["--html", "x"]])
def test_conformance_suites_have_none(harnpy: Command, option: list[str]) -> None:
    done = harnpy("test", "conformance", *option)
    assert f"`{option[0]}` does not apply to harnpy test conformance" in done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize("walk", [False, True])
@pytest.mark.parametrize(
    ("program", "outcomes"),
    [
        ("fn f(x) { return if x { 1 } else { 2 } }\nf(true)\nf(true)\nf(nil)", [("if", 2), ("else", 1)]),
        ("let a = 1\nif a > 1 { println(a) }", [("if", 0), ("no else", 1)]),
        ("let a = if false { 1 }\nassert_eq(a, nil)", [("if", 0), ("no else", 1)]),
        ("for x in [] { println(x) }", [("entered", 0), ("not entered", 1)]),
        ("for x in 1 to 3 { 1 }\nlet a = 1", [("entered", 3), ("not entered", 0)]),
        ("var a = 2\nwhile a > 0 { a = a - 1 }", [("entered", 2), ("not entered", 0)]),
        (
            "for x in [1, 2] { if x == 1 { break } }",
            [("entered", 1), ("not entered", 0), ("if", 1), ("no else", 0)],
        ),
        ("fn f(x) { guard x else { return 1 }\n return 2 }\nf(1)\nf(nil)\nf(2)", [("else", 1), ("holds", 2)]),
        ("match 3 { 1 -> { 1 }\n 2 | 3 -> { 2 }\n _ -> { 3 } }", [("arm 1", 0), ("arm 2", 1), ("arm 3", 0)]),
        (
            "fn f(n) { for x in [n] { if n > 0 { f(n - 1) } } }\nf(2)",
            [("entered", 3), ("not entered", 0), ("if", 2), ("no else", 1)],
        ),
        (
            "gen fn g(n) { for i in 0 to n { emit i } }\nfor x in g(-1) { x }",
            [
                *(("entered", 0), ("not entered", 1)),
                *(("entered", 0), ("not entered", 1)),
            ],
        ),
    ],
)
def test_branches(program: str, outcomes: list[tuple[str, int]], walk: bool, tmp_path: Path) -> None:
    found = branches(covered(program, tmp_path, walk))
    assert [(outcome, count) for _, outcome, count in found] == outcomes


def test_lines_in_every_kind_of_block(tmp_path: Path) -> None:
    file = covered(
        "struct P { x }\n"
        "impl P {\n  fn get(self) {\n    return self.x\n  }\n}\n"
        "fn never() {\n  return 1\n}\n"
        "let f = { x ->\n  x + 1\n}\n"
        "try {\n  throw f(P {x: 1}.get())\n} catch (e) {\n  println(e)\n} finally {\n  println(2)\n}\n"
        "let t = spawn {\n  3\n}\n"
        "fn g() {\n  defer {\n    println(4)\n  }\n}\n"
        "g()\nawait(t)\n",
        tmp_path,
    )
    assert file.missing() == [8]
    assert list(file.lines()) == [4, 8, 10, 11, 13, 14, 16, 18, 20, 21, 24, 25, 28, 29]


def test_statements_of_a_file_with_pipelines_never_run(tmp_path: Path) -> None:
    file = covered("let a = 1\nprintln(a)\npipeline main() {\n  println(2)\n}", tmp_path)
    assert (file.lines(), file.missing()) == ({1: 1, 2: 0, 4: 1}, [2])


def test_files_elsewhere_and_bundled_ones_are_not_counted(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "lib.harn").write_text("pub fn f() {\n  return 1\n}\n")
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    covered('import "std/text"\nimport "../lib"\nprintln(int_to_string(f()))\n', tmp_path / "inside")


def test_an_error_is_where_it_is_without_probes(tmp_path: Path) -> None:
    path = tmp_path / "program.harn"
    path.write_text(
        "fn leaf(x) { return x.a.b.c }\nfn f(x) {\n  return leaf(x)\n}\nfor x in [1] { f({a: 1}) }\n"
    )
    probed = run_program(path, attach=Coverage(left_out=lambda pipeline: False).attach)
    assert probed.report == run_program(path).report
    assert "called from f at" in probed.report


#: Areas of the conformance suite with blocks of all kinds.
AREAS = ("control", "errors", "generators", "match", "pipelines")


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("area", AREAS)
def test_probes_change_nothing(area: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    def probed(path: Path, **options: object) -> object:
        attach = Coverage(left_out=lambda pipeline: False).attach
        return run_program(path, attach=attach, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(conformance, "run_program", probed)
    results = [conformance.run_case(case, 30_000) for case in find_cases(Path("conformance"), area)]
    assert [(each.name, each.detail) for each in results if each.status not in ("pass", "skip")] == []


def test_shares_are_rounded_but_never_to_all_or_nothing() -> None:
    assert [percent(*pair) for pair in ((0, 9), (1, 999), (1, 2), (998, 999), (9, 9), (0, 0))] == [
        *("0%", "1%", "50%", "99%", "100%", "100%")
    ]


def test_missing_lines_are_ranges_over_statements(tmp_path: Path) -> None:
    text = "fn f() {\n  let a = 1\n\n  // nothing\n  return a\n}\nprintln(1)\nfn g() {\n  return 2\n}\n"
    assert missing(covered(text, tmp_path)) == "2-5, 9"
