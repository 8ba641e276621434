"""The rules of `harnpy test conformance`, on tiny suites. Spec: 09 §3.3."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harnpy.cli.testing.conformance import SelectionError, error_matches, find_cases, name_filter, normalise
from tests.support import Command


@pytest.fixture
def suite(tmp_path: Path):
    """Write files below ./conformance: `suite({"a/x.harn": "…", "a/x.expected": "…"})`."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "conformance" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / "conformance"

    return write


MIXED = {
    "a/good.harn": 'println("yes")',
    "a/good.expected": "yes\n",
    "a/bad.harn": 'println("one")\nprintln("two")',
    "a/bad.expected": "one\n2\n3\n",
    "b/fails.harn": 'throw "boom now"',
    "b/fails.error": "boom",
    "b/other.harn": 'throw "boom"',
    "b/other.error": "bang",
    "b/succeeds.harn": "let a = 1",
    "b/succeeds.error": "anything",
    "b/breaks.harn": "println(1)\nthrow 5",
    "b/breaks.expected": "1\n",
    "helper.harn": "let helper = 1",
    "out.harn": "throw 1",
    "out.expected": "never",
    "out.conformance-skip": "",
}


def test_report(harnpy: Command, suite) -> None:
    suite(MIXED)
    done = harnpy("test", "conformance")
    assert done.stdout == (
        "  FAIL  a/bad.harn\n"
        "  PASS  a/good.harn\n"
        "  FAIL  b/breaks.harn\n"
        "  PASS  b/fails.harn\n"
        "  FAIL  b/other.harn\n"
        "  FAIL  b/succeeds.harn\n"
        "\n"
        "2 passed, 4 failed, 6 total\n"
        "\n"
        "Failures:\n"
        "  a/bad.harn:\n"
        "    one\n"
        "  - 2\n"
        "  + two\n"
        "  - 3\n"
        "  b/breaks.harn: runtime error: Thrown: 5\n"
        "  b/other.harn:\n"
        "    expected error containing: bang\n"
        "    actual error: Thrown: boom\n"
        "  b/succeeds.harn: expected error containing 'anything', but succeeded\n"
    )
    assert (done.stderr, done.returncode) == ("", 1)


def test_all_green(harnpy: Command, suite) -> None:
    suite({"x.harn": "println(1)", "x.expected": "1"})
    done = harnpy("test", "conformance")
    assert done.stdout == "  PASS  x.harn\n\n1 passed, 0 failed, 1 total\n"
    assert done.returncode == 0


def test_json_lines(harnpy: Command, suite) -> None:
    suite(MIXED)
    done = harnpy("test", "conformance", "--json")
    *programs, counts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(program["name"], program["status"]) for program in programs] == [
        ("a/bad.harn", "fail"),
        ("a/good.harn", "pass"),
        ("b/breaks.harn", "fail"),
        ("b/fails.harn", "pass"),
        ("b/other.harn", "fail"),
        ("b/succeeds.harn", "fail"),
        ("out.harn", "skip"),
    ]
    assert all(set(program) == {"name", "status", "ms", "detail"} for program in programs)
    assert programs[2]["detail"] == "b/breaks.harn: runtime error: Thrown: 5"
    assert counts == {"passed": 2, "failed": 4, "skipped": 1}
    assert done.returncode == 1


def test_jobs_give_the_same_report(harnpy: Command, suite) -> None:
    suite(MIXED)
    assert harnpy("test", "conformance", "--jobs", "2").stdout == harnpy("test", "conformance").stdout


def test_junit(harnpy: Command, suite, tmp_path: Path) -> None:
    suite({**MIXED, "a/bad.harn": 'println("<&>\\"\'")'})
    done = harnpy("test", "conformance", "--junit", "report.xml")
    assert done.stdout.endswith("JUnit XML written to report.xml\n")
    root = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (root.tag, root.get("name"), root.get("tests"), root.get("failures")) == (
        "testsuite",
        "harn",
        "6",
        "4",
    )
    bad = root.find("testcase[@name='a/bad.harn']/failure")
    assert bad is not None
    assert bad.get("message") == "test failed"
    assert "+ <&>\"'" in (bad.text or "")


def test_junit_that_cannot_be_written(harnpy: Command, suite) -> None:
    suite(MIXED)
    suite({"kept": ""})
    done = harnpy("test", "conformance", "--junit", "conformance/kept/report.xml")
    assert done.stderr.startswith("error: cannot write conformance/kept/report.xml: ")
    assert (done.stdout, done.returncode) == ("", 1)  # and no test has run


def test_timing_statistics(harnpy: Command, suite) -> None:
    suite(MIXED)
    lines = harnpy("test", "conformance", "--timing").stdout.splitlines()
    assert lines[0].startswith("  FAIL  a/bad.harn (")
    total = lines.index("2 passed, 4 failed, 6 total") + 2
    assert lines[total].startswith("Total time: ")
    assert lines[total + 1].startswith("Per-test: avg=")
    assert lines[total + 3] == "Slowest 6 tests:"


def test_verbose_adds_expected_and_actual(harnpy: Command, suite) -> None:
    suite(MIXED)
    out = harnpy("test", "conformance", "-v", "a").stdout
    assert "  expected:\n  one\n  2\n  3\n  actual:\n  one\n  two\n" in out


def test_another_root(harnpy: Command, suite, tmp_path: Path) -> None:
    suite({"x.harn": "println(1)", "x.expected": "1"}).rename(tmp_path / "mine")
    assert "1 passed" in harnpy("test", "conformance", "--root", "mine").stdout


def test_a_timeout_is_a_failure_of_either_kind(harnpy: Command, suite) -> None:
    loop = "while true { }"
    suite(
        {
            "a.harn": loop,
            "a.expected": "",
            "b.harn": loop,
            "b.error": "timed out",
        }
    )
    done = harnpy("test", "conformance", "--timeout", "200")
    assert "  a.harn: timed out after 200ms\n  b.harn: timed out after 200ms\n" in done.stdout
    assert "0 passed, 2 failed" in done.stdout


def test_a_timeout_cannot_be_caught(harnpy: Command, suite) -> None:
    suite({"a.harn": "try { while true { } } catch (e) { println(1) }", "a.expected": "1"})
    assert "a.harn: timed out after 200ms" in harnpy("test", "conformance", "--timeout", "0.2s").stdout


def test_programs_do_not_see_each_other(harnpy: Command, suite) -> None:
    program = 'println(agent_session_exists("s"))\nagent_session_open("s")'
    suite({"a.harn": program, "a.expected": "false", "b.harn": program, "b.expected": "false"})
    assert "2 passed" in harnpy("test", "conformance").stdout


def test_stderr_and_the_value_are_not_output(harnpy: Command, suite) -> None:
    suite({"a.harn": 'pipeline main(t) { eprintln("x")\nprintln("y")\n 3 }', "a.expected": "y"})
    assert "1 passed" in harnpy("test", "conformance").stdout


def test_a_syntax_error_has_its_message_form(harnpy: Command, suite) -> None:
    suite({"a.harn": "let v = (1\nlet w = 2", "a.error": "re:^Expected \\), got let at 2:1$"})
    assert "1 passed" in harnpy("test", "conformance").stdout


def test_stdin_is_empty(harnpy: Command, suite) -> None:
    suite({"a.harn": "println(read_line())", "a.expected": "nil"})
    assert "1 passed" in harnpy("test", "conformance", stdin="not for tests\n").stdout


def test_a_selection_is_seen_from_here_or_from_the_suite(harnpy: Command, suite) -> None:
    suite(MIXED)
    for selection in ("conformance/a/good.harn", "a/good.harn"):
        assert harnpy("test", "conformance", selection).stdout.startswith("  PASS  a/good.harn\n\n1 passed")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "Conformance target not found: nope. Expected a file or directory under conformance"),
        (["outside.harn"], "Conformance target must be inside conformance: outside.harn"),
        (
            ["a/good.expected"],
            "Conformance target must be a .harn file or directory: conformance/a/good.expected",
        ),
        (["empty"], "No .harn conformance tests found under conformance/empty"),
        (["--root", "gone"], "Directory not found: gone"),
        (["--filter", "re:("], "--filter: invalid regex `(`"),
    ],
)
def test_wrong_selections(harnpy: Command, suite, tmp_path: Path, arguments: list[str], message: str) -> None:
    suite({**MIXED, "empty/readme.txt": ""})
    (tmp_path / "outside.harn").write_text("", encoding="utf-8")
    done = harnpy("test", "conformance", *arguments)
    assert done.stderr.startswith(message)
    assert (done.stdout, done.returncode) == ("", 5 if arguments == ["empty"] else 1)


@pytest.mark.parametrize("option", ["--parallel", "--watch", "--record", "--replay", "--determinism"])
def test_options_that_do_not_apply(harnpy: Command, suite, option: str) -> None:
    suite(MIXED)
    done = harnpy("test", "conformance", option)
    assert done.stderr.startswith(f"error: `{option}` ")
    assert done.returncode == 2


@pytest.mark.parametrize("time", ["0", "-1", "soon", "5m"])
def test_timeouts_that_are_no_times(harnpy: Command, time: str) -> None:
    done = harnpy("test", "conformance", f"--timeout={time}")
    assert f"'{time}' is not a time such as 500, 500ms or 2.5s" in done.stderr
    assert done.returncode == 2


def test_order_descends_in_place(suite) -> None:
    names = ["b.harn", "a/z.harn", "a.harn", "a/b/c.harn", "a-b/x.harn"]
    root = suite(dict.fromkeys(names, "") | {name[:-5] + ".expected": "" for name in names})
    assert [case.name for case in find_cases(root)] == [
        "a/b/c.harn",
        "a/z.harn",
        "a-b/x.harn",
        "a.harn",
        "b.harn",
    ]


def test_expected_wins_over_error(suite) -> None:
    root = suite({"a.harn": "", "a.expected": "", "a.error": "x"})
    assert [case.kind for case in find_cases(root)] == ["expected"]


def test_an_empty_directory_is_an_error(suite) -> None:
    with pytest.raises(SelectionError, match=r"No \.harn conformance tests found under "):
        find_cases(suite({"readme.md": ""}))


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        (None, ["a/one.harn", "a/two.harn", "b/one.harn"]),
        ("one", ["a/one.harn", "b/one.harn"]),
        ("two | b/", ["a/two.harn", "b/one.harn"]),
        ("a*e", ["a/one.harn"]),
        ("/?wo", ["a/two.harn"]),
        ("re:^b/|two", ["a/two.harn", "b/one.harn"]),
        (".harn$", []),
    ],
)
def test_filters(pattern: str | None, matches: list[str]) -> None:
    names = ["a/one.harn", "a/two.harn", "b/one.harn"]
    assert [name for name in names if name_filter(pattern)(name)] == matches


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("a\n", "a"),
        ("a \n\n \n", "a"),
        (" a \r\nb", " a \nb"),
        ("\na", "\na"),
        ("[timer] load: 12ms\nx", "[timer] load: <ms>\nx"),
        ("  [timer] load: 12ms", "  [timer] load: 12ms"),
    ],
)
def test_normalisation(text: str, normal: str) -> None:
    assert normalise(text) == normal


@pytest.mark.parametrize(
    ("wanted", "error", "matches"),
    [
        ("boom", "Thrown: boom!", True),
        ("  boom \n", "Thrown: boom!", True),
        ("bang", "Thrown: boom!", False),
        ("bang\nboom", "Thrown: boom!", True),
        ("bang\n\nbong", "Thrown: boom!", False),
        ("re: bo+m", "Thrown: booom", True),
        ("re:^boom", "Thrown: boom", False),
        ("re:(", "Thrown: (", False),
    ],
)
def test_error_matching(wanted: str, error: str, matches: bool) -> None:
    assert error_matches(wanted, error) is matches
