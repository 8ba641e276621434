"""`harnpy profile`. Spec: 09 §6.6."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harnpy.cli import app
from tests.support import Command

PROGRAM = """\
fn fib(n) {
  if n < 2 { return n }
  return fib(n - 1) + fib(n - 2)
}

gen fn items() {
  emit fib(1)
  emit 2
}

fn wait_a_little() {
  sleep(1ms)
  return 1
}

pipeline main() {
  println(fib(5))
  for i in items() { println(i) }
  let t = spawn { wait_a_little() }
  let u = spawn { wait_a_little() }
  println([1, 2, 3].map({ x -> fib(0) }))
  println(await(t) + await(u))
}
"""


def profiled(harnpy: Command, file: str, *more: str) -> dict[str, Any]:
    done = harnpy("profile", file, "--json", *more)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_calls_are_counted_by_function(harnpy: Command, write) -> None:
    found = profiled(harnpy, write("a.harn", PROGRAM))
    assert {(each["name"], each["line"]): each["calls"] for each in found["functions"]} == {
        ("pipeline", 16): 1,
        ("fib", 1): 15 + 1 + 3,
        ("items", 6): 1,
        ("wait_a_little", 11): 2,
        ("<task>", 19): 1,
        ("<task>", 20): 1,
        ("<closure>", 21): 3,
    }
    assert {each["file"] for each in found["functions"]} == {"a.harn"}


def test_the_tree_tells_who_called_whom_and_on_which_line(harnpy: Command, write) -> None:
    found = profiled(harnpy, write("a.harn", PROGRAM))

    def shape(call: dict[str, Any]) -> list[Any]:
        inside = sorted((shape(child) for child in call["children"]), key=str)
        return [call["name"], call["called_on"], call["calls"], *([inside] if inside else [])]

    calls = {call["name"]: shape(call) for call in found["calls"] if call["name"] == "pipeline"}
    assert calls["pipeline"][:3] == ["pipeline", 0, 1]
    inside = calls["pipeline"][3]
    assert next(each for each in inside if each[0] == "fib")[:3] == ["fib", 17, 1]
    assert ["<closure>", 21, 3, [["fib", 21, 3]]] in inside
    tasks = sorted(shape(call) for call in found["calls"] if call["name"] == "<task>")
    assert tasks == [
        ["<task>", 0, 1, [["wait_a_little", 19, 1]]],
        ["<task>", 0, 1, [["wait_a_little", 20, 1]]],
    ]


def test_times_add_up(harnpy: Command, write) -> None:
    found = profiled(harnpy, write("a.harn", PROGRAM))
    whole = found["seconds"]
    for key in ("functions", "lines"):
        assert abs(sum(each["own"] for each in found[key]) - whole) < 1e-9
        assert all(0 <= each["own"] <= each["total"] + 1e-9 for each in found[key])
        assert max(each["total"] for each in found[key]) <= whole + 1e-9


def test_lines_are_those_that_ran(harnpy: Command, write) -> None:
    found = profiled(harnpy, write("a.harn", "let a = 1\nif a > 1 {\n  println(2)\n}\nprintln(3)\n"))
    assert sorted(each["line"] for each in found["lines"]) == [1, 2, 5]


def test_the_table_comes_after_the_output(harnpy: Command, write) -> None:
    done = harnpy("profile", write("a.harn", PROGRAM))
    assert done.returncode == 0
    output, table = done.stdout.split("\n\n", 1)
    assert output == "5\n1\n2\n[0, 0, 0]\n2"
    assert re.match(r"[\d.,]+ ms in 28 calls of 7 functions\n\n", table)
    assert re.search(r"^ +19 +[\d.]+ ms +[\d.]+ ms  fib +a\.harn:1$", table, re.MULTILINE)
    assert re.search(r"^ *[\d.]+ ms +[\d.]+ ms  a\.harn:12 +sleep\(1ms\)$", table, re.MULTILINE)


def test_only_the_top_is_shown(harnpy: Command, write) -> None:
    shown = harnpy("profile", write("a.harn", PROGRAM), "--top", "1").stdout
    assert "… 6 more functions\n" in shown
    assert len(re.findall(r"a\.harn:\d+", shown)) == 2


def test_a_failing_program_is_profiled_until_it_fails(harnpy: Command, write) -> None:
    done = harnpy("profile", write("a.harn", 'fn f() {\n  throw "x"\n}\nf()\n'))
    assert done.returncode == 1
    assert done.stderr.startswith("error: Thrown: x\n  --> a.harn:2:3\n")
    assert "in 2 calls of 2 functions" in done.stdout


def test_arguments_status_and_modules(harnpy: Command, write) -> None:
    write("lib.harn", "pub fn twice(x) {\n  return x * 2\n}\n")
    main = write("a.harn", 'import "lib"\npipeline main() {\n  println(argv)\n  return twice(3)\n}\n')
    done = harnpy("profile", main, "--json", "--", "one", "--two")
    assert done.returncode == 6
    assert done.stderr == "[one, --two]\n"
    assert [
        (Path(each["file"]).name, each["line"])
        for each in json.loads(done.stdout)["functions"]
        if each["name"] == "twice"
    ] == [("lib.harn", 1)]


class _Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_is_whole_and_loads_nothing(harnpy: Command, write, tmp_path: Path) -> None:
    done = harnpy("profile", write("a.harn", PROGRAM), "--html", "out.html")
    assert done.stdout.endswith("report: out.html\n")
    text = (tmp_path / "out.html").read_text(encoding="utf-8")
    tags = _Page(text).tags
    assert not [name for name, _ in tags if name in ("script", "link", "img", "iframe")]
    assert "http:" not in text
    assert "https:" not in text
    titles = [attributes["title"] or "" for name, attributes in tags if "title" in attributes]
    assert any(title.startswith("pipeline at a.harn:16\n") for title in titles)
    ids = {attributes["id"] for _, attributes in tags if "id" in attributes}
    assert {attributes["href"] for name, attributes in tags if name == "a"} <= {f"#{each}" for each in ids}


def test_an_interrupted_program_is_profiled_too(
    write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    write("a.harn", "fn f() {\n  sleep(1ms)\n}\nf()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harnpy.vm.run.scheduler.Scheduler.sleep", interrupted)
    assert app.main(["profile", "a.harn"]) == 124
    assert "in 2 calls of 2 functions" in capsys.readouterr().out


def test_a_missing_file(harnpy: Command) -> None:
    done = harnpy("profile", "gone.harn")
    assert done.returncode == 1
    assert "gone.harn" in done.stderr


def test_small_functions_are_counted_like_others(harnpy: Command, write) -> None:
    program = "fn add(a, b) { return a + b }\nvar s = 0\nfor i in 0 to 9 { s = add(s, i) }\nprintln(s)"
    result = harnpy("profile", "--json", str(write("main.harn", program)))
    counts = {each["name"]: each["calls"] for each in json.loads(result.stdout)["functions"]}
    assert counts["add"] == 10
