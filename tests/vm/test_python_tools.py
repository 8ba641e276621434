"""Python's own tools see Harn: tracebacks, pdb, profilers and tracers name its files, functions and lines."""

from __future__ import annotations

import bdb
import cProfile
import faulthandler
import io
import pdb
import pstats
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from types import CodeType, FrameType

import pytest

from harnpy import Vm
from harnpy.vm.errors import VmError
from tests.support import ROOT

#: One program for each kind of failure and of place; `|` is where our own renderer points.
FAILING = {
    "adding": "let x = 1\nprintln(|x + nil)",
    "arithmetic in a tree": 'fn f(a, b) { return a * 2 + (|b - a) }\nf(2, "x")',
    "division": 'let a = {b: 3}\nprintln(1 + |a.b / "x")',
    "negation": 'let s = "s"\nlet t = [1, |-s]',
    "a condition": "fn f(a) { if |a.b.c { return 1 } }\nf({b: 2})",
    "a right side": "let a = 1\nwhile a > 0 && |a.b.c { println(a) }",
    "throw": 'fn f() {\n  |throw "x"\n}\nf()',
    "throw in a closure": "[1].map({ x ->\n  |throw x\n})",
    "rethrow": 'try { throw "a" } catch (e) {\n  |throw "b" + e\n}',
    "a property of nil": "let a = nil\nprintln(|a.b)",
    "a path": "let a = {b: 1}\nprintln(|a.b.c.d)",
    "an index": 'let a = 1\nprintln(|a["x"])',
    "a slice": "let a = 1\nprintln(|a[1:2])",
    "an item's property": "let a = [1]\nprintln(|a[0].b.c)",
    "a property assigned": "var a = 1\n|a.b = 2",
    "a nested target": 'var a = {b: 1}\n|a.b.c["d"] = 2',
    "an immutable variable": "let a = 1\n|a = 2",
    "a method": "let xs = [1]\nprintln(|xs.push({ -> 1 }).first.b.c)",
    "a method's argument": "let xs = [1]\nprintln(xs.contains(|xs[0].b))",
    "a builtin": 'println(|json_parse("{"))',
    "a builtin in a builtin": 'println(len(|json_parse("[1")))',
    "an undefined variable": "println(1 + |nothing)",
    "a value called": "let f = 3\nprintln(|f(1))",
    "spread": "let a = 1\nprintln([0, |...a])",
    "a loop": "for x in |nil.b { println(x) }",
    "destructuring": "|let {a} = 7",
    "destructuring a list": "|let [a, b] = 7",
    "a parameter's type": 'fn f(a: int,\n  |b: int) { return a }\nlet x: any = "x"\nf(1, x)',
    "a default": "fn f(a,\n  b = |a.c.d) { return b }\nf({})",
    "a pipe": "let f = 3\nprintln(|1 |> f)",
    "no arm": "fn f(x) {\n  |match x { 1 -> { return 2 } }\n}\nf(7)",
    "an arm": 'fn f(x) {\n  match x { 1 -> { return 2 }\n _ -> { return |x / "a" } }\n}\nf(7)',
    "propagation": "fn f(x) { return |x? }\nf(7)",
    "interpolation": 'let a = nil\nprintln("é${|a.b.c}")',
    "after letters of several bytes": 'let a = nil\nprintln(["é😀ß", |a.b.c])',
    "far to the right": f"let a = nil\nprintln([{', '.join(['1'] * 50)}, |a.b.c])",
    "several lines": "let a = nil\nprintln(\n  1,\n  |a.b\n    .c,\n)",
    "a task": "let t = spawn {\n  throw |nil.b\n}\nawait(t)",
    "a generator": "gen fn g() {\n  emit 1\n  |throw 2\n}\nfor x in g() { println(x) }",
    "a deferred block": 'fn f() {\n  defer { |throw "x" }\n  return 1\n}\nf()',
    "finally": 'try { println(1) } finally {\n  |throw "x"\n}',
    "a method of a struct": (
        "struct P { x }\nimpl P {\n  fn get(self) { return |self.x.y.z }\n}\nP {x: nil}.get()"
    ),
    "recursion": "fn f(n) {\n  if n == 0 { return |nil.b.c }\n  return 1 + f(n - 1)\n}\nf(20)",
    "a pipeline": 'pipeline main() {\n  |throw "x"\n}',
}


class Failure:
    """A program that failed, and what it is pointed at with."""

    def __init__(self, name: str, directory: Path) -> None:
        before, _, after = FAILING[name].partition("|")
        self.program = before + after
        self.line = before.count("\n") + 1
        self.column = len(before) - before.rfind("\n")
        self.path = directory / "program.harn"
        self.path.write_text(self.program, encoding="utf-8")
        self.profile = cProfile.Profile()
        with pytest.raises(VmError) as caught:
            self.profile.runcall(Vm().run_file, str(self.path))
        self.error = caught.value
        #: What carries the traceback: an error that was not thrown gets its final text afterwards.
        self.origin = caught.value.__cause__ or caught.value

    def is_harn(self, code: CodeType) -> bool:
        return code.co_filename == str(self.path)


@pytest.fixture(params=FAILING)
def failure(request: pytest.FixtureRequest, tmp_path: Path) -> Failure:
    return Failure(request.param, tmp_path)


def test_the_renderer_a_traceback_and_pdb_point_at_the_same_place(failure: Failure) -> None:
    ours = failure.error.frames[0]
    assert (ours.line, ours.column) == (failure.line, failure.column)
    stack = traceback.TracebackException.from_exception(failure.origin).stack
    theirs = [each for each in stack if each.filename == str(failure.path)][-1]
    assert theirs.lineno == failure.line
    line = failure.program.split("\n")[failure.line - 1]
    assert theirs.colno is not None
    assert len(line.encode()[: theirs.colno].decode()) == failure.column - 1
    assert theirs.line == line.strip()
    frames, _ = bdb.Bdb().get_stack(None, failure.origin.__traceback__)
    frame, number = [each for each in frames if failure.is_harn(each[0].f_code)][-1]
    assert (frame.f_code.co_name, number) == (theirs.name, failure.line)


def test_a_profile_names_the_functions_of_the_call_stack(failure: Failure) -> None:
    rows = {name for file, _, name in pstats.Stats(failure.profile).stats if file == str(failure.path)}  # type: ignore[attr-defined]
    assert {frame.name for frame in failure.error.frames} <= {name.removesuffix(".<items>") for name in rows}


def test_a_traceback_shows_the_harn_lines_with_carets(tmp_path: Path) -> None:
    failure = Failure("a path", tmp_path)
    shown = "".join(traceback.format_exception(failure.origin))
    assert (
        f'  File "{failure.path}", line 2, in pipeline\n    println(a.b.c.d)\n            ^^^^^^^\n'
    ) in shown


def test_pdb_goes_up_to_the_harn_function(tmp_path: Path) -> None:
    path = tmp_path / "program.harn"
    path.write_text("fn inner(a) {\n  return a.b.c\n}\nfn outer() { return 1 + inner({b: 1}) }\nouter()\n")
    with pytest.raises(VmError) as caught:
        Vm().run_file(str(path))
    shown = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("up\nup\nup\nquit\n"), stdout=shown, nosigint=True, readrc=False)
    debugger.reset()
    assert caught.value.__cause__ is not None
    debugger.interaction(None, caught.value.__cause__.__traceback__)
    assert f"> {path}(2)inner()\n" in shown.getvalue()
    assert "-> return a.b.c\n" in shown.getvalue()
    assert f"> {path}(4)outer()\n" in shown.getvalue()


def test_a_profile_counts_the_calls_of_harn_functions(tmp_path: Path) -> None:
    path = tmp_path / "program.harn"
    path.write_text(
        "fn total(xs) {\n  var sum = 0\n  for x in xs { sum = sum + x }\n  return sum\n}\n"
        "gen fn items() {\n  emit 1\n  emit 2\n}\n"
        "pipeline main() {\n  for n in 0 to 5 { total([n]) }\n  [1, 2, 3].map({ x ->\n  to_string(x) })\n"
        "  for i in items() { println(i) }\n}\n"
    )
    profile = cProfile.Profile()
    profile.runcall(Vm().run_file, str(path))
    calls = {
        (line, name): row[1]
        for (file, line, name), row in pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
        if file == str(path)
    }
    assert calls[1, "total"] == 6
    assert calls[12, "<closure>"] == 3
    assert calls[6, "items"] == 1
    assert calls[6, "items.<items>"] == 3
    assert calls[10, "pipeline"] == 1


def test_a_tracer_sees_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "program.harn"
    path.write_text(
        "fn f(x) {\n  let y = x + 1\n  if y > 5 {\n    return 1\n  }\n  return y\n}\nlet z = f(1)\n"
    )
    seen: list[tuple[str, int]] = []

    def trace(frame: FrameType, event: str, argument: object) -> object:
        if frame.f_code.co_filename != str(path):
            return None
        if event == "line" and frame.f_code.co_name == "f":
            seen.append((frame.f_code.co_name, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        Vm().run_file(str(path))
    finally:
        sys.settrace(before)
    assert [line for _, line in seen] == [1, 2, 3, 6]


def test_faulthandler_names_functions_and_lines(tmp_path: Path) -> None:
    path = tmp_path / "program.harn"
    path.write_text("fn inner() {\n  look()\n}\ninner()\n")
    vm = Vm()
    with tempfile.TemporaryFile() as output:
        vm.register("look()", lambda: faulthandler.dump_traceback(output))
        vm.run_file(str(path))
        output.seek(0)
        shown = output.read().decode()
    assert f'File "{path}", line 2 in inner\n' in shown
    assert f'File "{path}", line 4 in pipeline\n' in shown


def test_an_imported_module_is_its_own_file(tmp_path: Path) -> None:
    module, program = tmp_path / "lib.harn", tmp_path / "program.harn"
    module.write_text("// one\npub fn f(x) {\n  return x.a.b\n}\n")
    program.write_text('import "lib"\nf({a: 1})\n')
    with pytest.raises(VmError) as caught:
        Vm().run_file(str(program))
    assert caught.value.__cause__ is not None
    shown = "".join(traceback.format_exception(caught.value.__cause__))
    assert f'File "{module.resolve()}", line 3, in f\n    return x.a.b\n' in shown
    assert f'File "{program}", line 2, in pipeline\n    f({{a: 1}})\n' in shown


def test_a_bundled_module_shows_its_text() -> None:
    """`<stdlib>/…` is no path: the text comes from the unit."""
    with pytest.raises(VmError) as caught:
        Vm().run_source('import "std/text"\nint_to_string("x")')
    (shown,) = traceback.extract_tb(caught.value.__traceback__)[-1:]
    assert (shown.filename, shown.name) == ("<stdlib>/text.harn", "int_to_string")
    assert shown.line is not None
    assert shown.line.startswith("require number != nil")


def test_a_file_that_is_gone_still_shows_its_lines(tmp_path: Path) -> None:
    failure = Failure("a path", tmp_path)
    failure.path.unlink()
    assert "println(a.b.c.d)" in "".join(traceback.format_exception(failure.origin))


@pytest.mark.parametrize("name", ["first.harn", "second.harn"])
def test_the_same_text_under_two_names_is_two_files(name: str, tmp_path: Path) -> None:
    """What is kept between runs is found by the text, not by the name."""
    with pytest.raises(VmError) as caught:
        Vm().run_source("let a = nil\nlet same_text = [1].map({ x -> a.b })", file=str(tmp_path / name))
    assert caught.value.__cause__ is not None
    codes = [frame.f_code for frame, _ in traceback.walk_tb(caught.value.__cause__.__traceback__)]
    harn = [code.co_filename for code in codes if code.co_qualname in ("pipeline", "<closure>")]
    assert harn == [str(tmp_path / name)] * 2


def test_a_relative_path_becomes_a_full_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.harn").write_text('throw "x"')
    with pytest.raises(VmError) as caught:
        Vm().run_file("program.harn")
    assert caught.value.frames[0].file == "program.harn"
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == str(tmp_path / "program.harn")


def test_an_input_of_a_repl_is_named_by_its_number() -> None:
    session = Vm().repl()
    session.run("fn f(x) {\n  throw x\n}")
    with pytest.raises(VmError) as caught:
        session.run("f(1)")
    stack = traceback.extract_tb(caught.value.__traceback__)
    programs = [each for each in stack if each.filename.startswith("<repl")]
    assert [(each.filename, each.lineno, each.name) for each in programs] == [
        ("<repl:2>", 1, "pipeline"),
        ("<repl:1>", 2, "f"),
    ]


def test_cprofile_shows_its_table_after_a_command(tmp_path: Path) -> None:
    path = tmp_path / "program.harn"
    path.write_text("fn total(x) {\n  return x.count\n}\ntotal([1])\n")
    command = [sys.executable, "-m", "cProfile", "-m", "harnpy", "run", str(path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert "program.harn:1(total)\n" in shown
