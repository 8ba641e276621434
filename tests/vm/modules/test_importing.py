"""What programs can't show of modules: who shares them, what is compiled anew, how they fail. Spec: 06."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

import harnpy.vm.compile
from harnpy import Vm, VmError, shipped
from harnpy.syntax.diagnostic import SourceFault
from harnpy.vm.run.backtrace import render
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.worlds import OwnWorld

COUNTER = "var n = 0\npub fn next() {\n  n = n + 1\n  return n\n}\n"

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a file of the project, which is the working directory; answers its path."""
    monkeypatch.chdir(tmp_path)

    def write(path: str, text: str) -> str:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The files that are compiled rather than found in the cache, which is empty at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files: list[str] = []
    make = harnpy.vm.compile._unit

    def counting(*given):  # type: ignore[no-untyped-def]
        files.append(Path(given[-1]).name)
        return make(*given)

    monkeypatch.setattr(harnpy.vm.compile, "_unit", counting)
    return files


# --- who shares what ------------------------------------------------------------------------------------


def test_two_vms_share_no_module(write: Write) -> None:
    write("counter.harn", COUNTER)
    program = write("main.harn", 'import "counter"\nnext()\nreturn next()')
    one, other = Vm(), Vm()
    assert [one.run_file(program), other.run_file(program)] == [2, 2]


def test_a_second_run_of_a_vm_begins_anew(write: Write) -> None:
    write("counter.harn", COUNTER)
    program = write("main.harn", 'import "counter"\nreturn next()')
    vm = Vm()
    assert [vm.run_file(program), vm.run_file(program)] == [1, 1]


def test_functions_outlive_their_run(write: Write) -> None:
    write("counter.harn", COUNTER)
    vm = Vm()
    function = vm.run_file(write("main.harn", 'import "counter"\nreturn next'))
    assert [vm.call(function), vm.call(function)] == [1, 2]


def test_imports_of_a_text_are_looked_for_in_the_working_directory(write: Write) -> None:
    write("counter.harn", COUNTER)
    assert Vm().run_source('import "counter"\nreturn next()') == 1


def test_imports_of_a_named_text_are_looked_for_beside_it(write: Write) -> None:
    write("lib/counter.harn", COUNTER)
    assert Vm().run_source('import "counter"\nreturn next()', file="lib/main.harn") == 1


def test_imports_are_looked_for_in_the_given_directory(write: Write, tmp_path: Path) -> None:
    write("lib/counter.harn", COUNTER)
    source = 'import "counter"\nreturn next()'
    assert Vm().run_source(source, file="main.harn", directory=str(tmp_path / "lib")) == 1


def test_a_run_inside_asyncio_imports_too(write: Write) -> None:
    write("counter.harn", COUNTER)
    assert asyncio.run(Vm().run_async('import "counter"\nreturn next()')) == 1


def test_modules_are_read_through_the_host() -> None:
    class Library(OwnWorld):
        """A world with one file."""

        def exists(self, path: str) -> bool:
            return path == "/app/m.harn"

        def real_path(self, path: str) -> str:
            return path

        def read_text(self, path: str) -> str:
            assert path == "/app/m.harn"
            return "fn f() { return 7 }"

    source = 'import "m"\nreturn f()'
    assert Vm(world=Library()).run_source(source, file="/app/main.harn") == 7


# --- the cache ------------------------------------------------------------------------------------------


def test_a_program_and_its_modules_are_compiled_once(write: Write, compiled: list[str]) -> None:
    write("counter.harn", COUNTER)
    program = write("main.harn", 'import "counter"\nreturn next()')
    Vm().run_file(program)
    assert compiled == ["main.harn", "counter.harn"]
    Vm().run_file(program)
    assert compiled == ["main.harn", "counter.harn"]


def test_a_new_export_is_seen(write: Write, compiled: list[str]) -> None:
    write("m.harn", "pub fn f() { return 1 }")
    program = write("main.harn", 'import "m"\nreturn len("abc") + f()')
    assert Vm().run_file(program) == 4
    write("m.harn", "pub fn f() { return 1 }\npub fn len(x) { return 10 }")
    assert Vm().run_file(program) == 11


def test_an_export_that_is_gone_is_missed(write: Write) -> None:
    write("m.harn", "pub fn f() { return 1 }")
    program = write("main.harn", 'import "m"\nreturn f()')
    Vm().run_file(program)
    write("m.harn", "pub fn g() { return 1 }")
    with pytest.raises(SourceFault, match="call target `f` is not defined or imported"):
        Vm().run_file(program)


def test_other_parameters_are_passed_otherwise(write: Write) -> None:
    write("m.harn", "fn f(a) { return [a] }")
    program = write("main.harn", 'import "m"\nreturn f(1, 2, 3)')
    assert Vm().run_file(program) == [1]
    write("m.harn", "fn f(a, b = 9, ...rest) { return [a, b, rest] }")
    assert Vm().run_file(program) == [1, 2, [3]]


def test_a_change_behind_a_facade_is_seen(write: Write) -> None:
    write("m.harn", "pub fn f() { return 1 }")
    write("facade.harn", 'pub import "m"')
    program = write("main.harn", 'import "facade"\nreturn f()')
    assert Vm().run_file(program) == 1
    write("m.harn", "pub fn f(x = 2) { return x }")
    assert Vm().run_file(program) == 2


def test_another_body_is_no_reason_to_compile_the_importer(write: Write, compiled: list[str]) -> None:
    write("m.harn", "pub fn f() { return 1 }")
    program = write("main.harn", 'import "m"\nreturn f()')
    Vm().run_file(program)
    write("m.harn", "pub fn f() { return 2 }")
    assert Vm().run_file(program) == 2
    assert compiled == ["main.harn", "m.harn", "m.harn"]


def test_a_file_that_appears_is_found(write: Write) -> None:
    program = write("main.harn", 'import "m"\nreturn f()')
    with pytest.raises(VmError, match="cannot read"):
        Vm().run_file(program)
    write("m.harn", "fn f() { return 3 }")
    assert Vm().run_file(program) == 3


# --- failures -------------------------------------------------------------------------------------------


def failure(program: str) -> VmError:
    with pytest.raises(VmError) as caught:
        Vm().run_file(program)
    return caught.value


def access_refused(place: str, source: str, caller: str) -> str:
    """Return how a property access on an int is shown; ``place`` is ``file:line:column``."""
    _, line, column = place.rsplit(":", 2)
    return (
        f"error: Type error: cannot access property `name` on int (line {line})\n"
        f"  --> {place}\n"
        "   |\n"
        f" {line} | {source}\n"
        f"   | {'^':>{column}}\n"
        f"  = note: called from pipeline at {caller}\n"
    )


def test_an_error_inside_a_module_shows_its_own_line(write: Write) -> None:
    module = write("lib/m.harn", "// of the module\npub fn f(x) {\n  return x.name\n}\n")
    write("main.harn", 'import "lib/m"\n\npipeline main(task) {\n  f(3)\n}\n')
    shown = render(failure("main.harn"))
    assert shown == access_refused(f"{module}:3:10", "  return x.name", "main.harn:4")


def test_an_error_while_a_module_is_loaded_shows_who_imported_it(write: Write) -> None:
    module = write("m.harn", "let x = 3\nlet y = x.name\n")
    write("main.harn", 'import "m"\n')
    shown = render(failure("main.harn"))
    assert shown == access_refused(f"{module}:2:9", "let y = x.name", "main.harn:1")


def test_a_failed_import_shows_its_statement(write: Write) -> None:
    middle = write("lib/middle.harn", 'pub import { f } from "gone"\n')
    write("main.harn", 'import "lib/middle"\n')
    shown = render(failure("main.harn"))
    missing = Path(middle).parent / "gone.harn"
    reason = "No such file or directory (os error 2) (line 1)"
    text = f"Runtime error: Import error: cannot read '{missing}': {reason}"
    assert shown.startswith(f"error: {text}\n  --> {middle}:1:1\n")
    assert shown.endswith("  = note: called from pipeline at main.harn:1\n")


def test_a_module_that_is_no_text(write: Write, tmp_path: Path) -> None:
    (tmp_path / "m.harn").write_bytes(b"fn f() { return '\xff' }")
    error = failure(write("main.harn", 'import "m"'))
    reason = f"cannot read '{tmp_path / 'm.harn'}': stream did not contain valid UTF-8"
    assert error.text == f"Runtime error: Import error: {reason} (line 1)"


def test_a_path_that_can_be_no_file(write: Write, tmp_path: Path) -> None:
    error = failure(write("main.harn", 'import "a\0b"'))
    assert error.text.endswith("': file name contained an unexpected NUL byte (line 1)")


def test_a_broken_bundled_module_is_named(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "library", lambda: str(tmp_path))
    write("broken.harn", "pub fn f( {")
    write("unended.harn", 'let x = "')
    for name, stage in (("broken", "parse"), ("unended", "lex")):
        text = failure(write("main.harn", f'import "std/{name}"')).text
        assert text.startswith(f"Runtime error: Import {stage} error in <stdlib>/{name}.harn: ")


# --- the REPL -------------------------------------------------------------------------------------------


def test_inputs_share_what_one_imports(write: Write) -> None:
    write("counter.harn", COUNTER)
    repl = Vm().repl()
    repl.run('import "counter"')
    repl.run("fn twice() { next(); return next() }")
    assert [repl.run("next()"), repl.run("twice()")] == [1, 3]


def test_another_input_may_import_more_of_a_module(write: Write) -> None:
    write("m.harn", "pub fn f() { return n }\nlet n = 2\nfn g() { return n + 1 }")
    repl = Vm().repl()
    repl.run('import "m"')
    repl.run('import { g } from "m"')
    assert repl.run("f() + g()") == 5


def test_an_input_imports_a_name_again(write: Write) -> None:
    write("m.harn", "fn f() { return 1 }")
    write("n.harn", "fn f() { return 2 }")
    repl = Vm().repl()
    repl.run('import "m"')
    repl.run('import { f } from "n"')
    assert repl.run("f()") == 2
    with pytest.raises(VmError, match=r"Import collision: 'f' is already defined when importing .*n\.harn"):
        repl.run('import "m"\nimport "n"')


def test_what_a_failing_input_imported_stays(write: Write) -> None:
    write("m.harn", "fn f() { return 1 }")
    repl = Vm().repl()
    with pytest.raises(VmError, match="no"):
        repl.run('import "m"\nthrow "no"')
    assert repl.run("f()") == 1


def test_a_module_that_failed_is_read_again(write: Write) -> None:
    write("m.harn", "fn f( {")
    repl = Vm().repl()
    with pytest.raises(VmError, match="Import parse error"):
        repl.run('import "m"')
    write("m.harn", "fn f() { return 1 }")
    repl.run('import "m"')
    assert repl.run("f()") == 1


def test_imported_types_stay_known(write: Write) -> None:
    write("m.harn", "type Name = {it: string}\npub struct Point {\n  x: int\n}")
    out = StringIO()
    repl = Vm(world=World(streams=RealStreams(stdout=out.write))).repl()
    repl.run('import "m"')
    repl.run("println(Point {x: 1, y: 2})\nprintln(schema_of(Name).required)")
    assert out.getvalue() == "Point {x: 1}\n[it]\n"
