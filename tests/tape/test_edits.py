"""What was edited: the first effect that differs, and the files that do. Spec: 13 §3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.durable.journal import ENV, OUTPUT
from harnpy.tape import Recording, Replaying, TapeDiverged, read_tape
from harnpy.tape.edits import first_difference, places
from harnpy.tape.tapes import Tape
from tests.counts import COUNT
from tests.durable.runs import Outside, job_of
from tests.tape.edited import EditedProgram


def record(tape: Path, program: Path) -> str:
    """Return what a program prints that is recorded."""
    outside = Outside()
    vm = Vm(Recording(tape, outside))
    outside.prepare(vm)
    vm.run_file(str(program))
    return outside.output()


def replay(tape: Path, program: Path | None = None, **options: Any) -> str:
    """Return what a program prints that is replayed, by default the tape's own."""
    outside = Outside()
    vm: Any = Vm(Replaying(tape, outside, **options))
    outside.prepare(vm)
    if program is None:
        vm.run_recorded()
    else:
        vm.run_file(str(program))
    return outside.output()


def effects(tape: Tape) -> list[tuple[str, Any]]:
    """Return the keys of a tape's effects, and what they were asked for."""
    return [
        (step.key, step.output.get("asked"))
        for step in tape.steps
        if not step.key.endswith((f":{ENV}", f":{OUTPUT}"))
    ]


@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.edited_programs))
def test_each_edit_is_reported_at_the_right_effect(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = EditedProgram(seed)
    edit = program.edit()
    monkeypatch.chdir(tmp_path)
    main, prompt = tmp_path / "main.harn", tmp_path / "prompt.txt"
    main.write_text(program.text)
    prompt.write_text(program.prompt)
    printed = record(tmp_path / "run.tape", Path("main.harn"))
    main.write_text(edit.text)
    if edit.prompt is not None:
        prompt.write_text(edit.prompt)
    if not edit.is_seen:
        assert replay(tmp_path / "run.tape", Path("main.harn"), reads_anew=True) == printed
        return
    with pytest.raises(TapeDiverged) as caught:
        replay(tmp_path / "run.tape", Path("main.harn"), reads_anew=True)
    recorded = effects(read_tape(tmp_path / "run.tape"))
    if edit.mark:
        right = next(n for n, (_, asked) in enumerate(recorded, 1) if edit.mark in str(asked))
    else:
        # The edited program runs in one task up to there: what it asks for by itself tells.
        record(tmp_path / "edited.tape", Path("main.harn"))
        both = zip(recorded, effects(read_tape(tmp_path / "edited.tape")), strict=False)
        right = next(n for n, (one, other) in enumerate(both, 1) if one != other)
    assert caught.value.step == right, (edit.kind, str(caught.value))
    assert caught.value.recorded == recorded[right - 1]
    if edit.prompt is not None:
        assert caught.value.edited == ["prompt.txt:2"]
    else:
        assert caught.value.edited == [f"main.harn:{edit.line}"]
    assert caught.value.place.startswith(" at main.harn:")
    if edit.kind in ("literal", "added"):
        assert caught.value.place.startswith(f" at main.harn:{edit.line}:")


def recorded(tmp_path: Path, text: str, **files: str) -> Path:
    """Record a program, with these files beside it; return the tape."""
    for name, content in files.items():
        (tmp_path / name.replace("_", ".")).write_text(content)
    (tmp_path / "main.harn").write_text(text)
    record(tmp_path / "run.tape", Path("main.harn"))
    return tmp_path / "run.tape"


def differs(tape: Path, **options: Any) -> str:
    with pytest.raises(TapeDiverged) as caught:
        replay(tape, Path("main.harn"), **options)
    return str(caught.value).removeprefix(f"the program differs from {tape}")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


_SHELL = """import {process_exec} from "std/runtime"
let word = "one"
println(process_exec("echo ${word}").stdout)
"""


def test_the_place_is_in_the_programs_own_file(here: Path) -> None:
    tape = recorded(here, _SHELL)
    (here / "main.harn").write_text(_SHELL.replace("one", "two"))
    said = differs(tape)
    assert said.startswith(" at main.harn:3:9 (in <stdlib>/runtime.harn:"), said
    assert said.endswith("; edited: main.harn:2")


def test_a_module_is_named_where_it_was_edited(here: Path) -> None:
    module = 'pub fn ask(n) {\n  return exec("tool", n).stdout\n}\n'
    tape = recorded(here, 'import {ask} from "lib"\nprintln(ask("x"))\n', lib_harn=module)
    (here / "lib.harn").write_text(module.replace("n)", 'n + "!")', 2).replace('ask(n + "!")', "ask(n)"))
    assert differs(tape).startswith(" at lib.harn:2:10, at effect 1: recorded was that it runs a process ")
    assert differs(tape).endswith("; edited: lib.harn:2")


def test_a_module_that_is_new_or_gone_is_named(here: Path) -> None:
    tape = recorded(
        here, 'import {n} from "lib"\nexec("tool", n())\n', lib_harn='pub fn n() { return "1" }\n'
    )
    (here / "main.harn").write_text('import {n} from "new"\nexec("tool", n())\n')
    (here / "new.harn").write_text('pub fn n() { return "2" }\n')
    assert differs(tape).endswith("; edited: main.harn:1, new.harn (new)")  # nothing imports the other one
    (here / "lib.harn").unlink()
    assert differs(tape).endswith("; edited: main.harn:1, lib.harn (gone), new.harn (new)")


def test_a_program_that_fails_now_says_with_what(here: Path) -> None:
    tape = recorded(here, 'exec("tool", "a")\nexec("tool", "b")\n')
    (here / "main.harn").write_text('exec("tool", "a")\nthrow "no more"\nexec("tool", "b")\n')
    now = "and now it fails at main.harn:2:1: Thrown: no more; edited: main.harn:2"
    assert differs(tape).endswith(f": recorded was that it runs a process tool b, {now}")
    (here / "main.harn").write_text('exec("tool", "a")\nexit(3)\n')
    assert ", and now it ends with status 3; edited: " in differs(tape)


def test_other_output_differs_at_the_effect_behind_it(here: Path) -> None:
    tape = recorded(here, 'exec("tool", "a")\nprintln("hello")\nexec("tool", "b")\n')
    (here / "main.harn").write_text('exec("tool", "a")\nprintln("hullo")\nexec("tool", "b")\n')
    assert ", at effect 2: " in differs(tape)
    assert differs(tape).endswith("; edited: main.harn:2")


def test_a_program_elsewhere_is_the_same_program(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "pub fn n() { return 1 }\n"
    text = 'import {n} from "lib"\nprintln(read_file("prompt.txt") + "${n()}")\nexec("tool", "a")\n'
    tape = recorded(here, text, lib_harn=module, prompt_txt="hello")
    other = here / "elsewhere"
    other.mkdir()
    (other / "main.harn").write_text(text)
    (other / "lib.harn").write_text(module)
    (other / "prompt.txt").write_text("hello")
    monkeypatch.chdir(other)
    assert replay(tape, Path("main.harn"), reads_anew=True) == "hello1\n"
    (other / "prompt.txt").write_text("hullo")
    assert replay(tape, Path("main.harn")) == "hello1\n"
    assert differs(tape, reads_anew=True).endswith("; edited: prompt.txt:1")


def test_a_file_that_the_program_writes_is_no_edit(here: Path) -> None:
    tape = recorded(here, 'let n = read_file("n.txt")\nwrite_file("n.txt", n + "1")\nprintln(n)\n', n_txt="1")
    assert (here / "n.txt").read_text() == "11"
    assert replay(tape, Path("main.harn"), reads_anew=True) == "1\n"


def test_a_file_that_is_gone_fails_unless_a_process_may_have_made_it(here: Path) -> None:
    tape = recorded(here, 'println(read_file("n.txt"))\n', n_txt="1")
    (here / "n.txt").unlink()
    assert differs(tape, reads_anew=True).endswith("; edited: n.txt (gone)")
    tape = recorded(here, 'exec("tool", "a")\nprintln(read_file("n.txt"))\n', n_txt="1")
    (here / "n.txt").unlink()
    assert replay(tape, Path("main.harn"), reads_anew=True) == "1\n"


@pytest.mark.parametrize(
    ("entry", "path", "now"),
    [
        ("/a/p/main.harn", "/a/p/x", "/a/p/x"),
        ("/b/p/main.harn", "/a/p/x", "/b/p/x"),
        ("/b/p/main.harn", "/etc/x", "/etc/x"),
        ("/b/q/main.harn", "/a/p/x", "/b/q/x"),
        ("/b/q/other.harn", "/a/p/x", "/b/q/x"),
        ("/a/p/sub/main.harn", "/a/p/x", "/a/p/sub/x"),
    ],
)
def test_paths_move_with_the_program(entry: str, path: str, now: str) -> None:
    found = places(job_of("", "/a/p"), entry)
    assert found.now(path) == now
    assert found.then(now) == path


def test_the_first_line_that_differs() -> None:
    assert first_difference("a\nb\n", "a\nc\n") == 2
    assert first_difference("a\nb\n", "a\nb\nc\n") == 3
    assert first_difference("a", "a\n") == 1


def test_a_secret_that_is_a_word_of_the_program(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_PASSWORD", "postgres")
    tape = recorded(here, 'println(exec("tool", "postgres").stdout)\n')
    assert "postgres" not in tape.read_text()
    assert replay(tape, Path("main.harn")) == "ran postgres\n".replace("postgres", "<not on the tape>")


_ASKED = 'llm_call("a", "{}", {{provider: "p", model: "m"{}}})'


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ('write_file("a", "one")', 'write_file("a", "three")', "writes a: 3 bytes, now it writes a: 5 bytes"),
        ('write_file("a", "one")', 'write_file("a", "two")', "now it writes a: another of the same size"),
        ('write_file("a", "one")', 'append_file("a", "one")', "that it writes a, now it appends to a"),
        (
            "random_int(1, 9)",
            "random_int(1, 8)",
            "draws at random from 1 to 9, now it draws at random from 1 to 8",
        ),
        ('env("ONE")', 'env("TWO")', "now it looks up the variable TWO, and the recorded run did not"),
        (
            'println("one")',
            'println("two")',
            'prints something else: recorded were 4 characters, now "two\\n"',
        ),
        ('println("one")', "nil", "recorded was that it prints 4 characters, and now it doesn't"),
        ('println("one")', 'throw "no"', "4 characters, and now it fails at main.harn:1:1: Thrown: no"),
        ('exec("one")', "uuid()", "that it runs a process one, now it makes an id"),
        (
            _ASKED.format("", ", temperature: 0.5"),
            _ASKED.format("", ""),
            "the model is asked with another temperature: recorded was 0.5, now it is nil",
        ),
        (
            _ASKED.format("x" * 300 + "y", ""),
            _ASKED.format("x" * 300 + "z", ""),
            f'system: recorded was "{"x" * 60}…" (301 bytes), now it is another of the same size',
        ),
    ],
)
def test_differences_are_in_plain_words(here: Path, then: str, now: str, said: str) -> None:
    tape = recorded(here, f"{then}\n")
    (here / "main.harn").write_text(f"{now}\n")
    told = differs(tape)
    assert said in told
    assert not any(word in told for word in ("sha256", "$", "write_bytes", "randint", "variable/"))


def test_what_is_written_to_a_session_is_in_plain_words(here: Path) -> None:
    text = """let s = agent_session_open("day", {store: "sqlite:s.db"})
agent_session_inject(s, {role: "user", content: "one"})
"""
    tape = recorded(here, text)
    (here / "main.harn").write_text(text.replace("one", "two"))
    session = "it writes to session day: message_added: user:"
    assert f"recorded was that {session} one, now {session} two; edited: main.harn:2" in differs(tape)
