"""`harnpy emit` shows the Python that a program becomes. Spec: 09 §6.7."""

from __future__ import annotations

from tests.support import Command


def test_the_lines_of_the_program_stand_before_what_they_become(harnpy: Command, write) -> None:
    source = "var total = 0\nfor n in 1 to 3 { total += n }\n"
    done = harnpy("emit", write("total.harn", source))
    assert done.stdout == (
        "# 1 | var total = 0\n"
        "def main(d):\n"
        "    total_1 = 0\n"
        "# 2 | for n in 1 to 3 { total += n }\n"
        "    for n_2 in range(1, 3 + 1):\n"
        "        if signal.pending: poll()\n"
        "        total_1 = total_1 + n_2\n"
        "    if total_1 > 1073741823 or total_1 < -1073741823: total_1 = wrap(total_1)\n"
        "# 1 | var total = 0\n"
        "    return None\n"
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_what_it_shows_is_python(harnpy: Command, write) -> None:
    source = 'fn f(a) {\n  return [a.b.c + 1, match a { 1 -> { "x" } _ -> { a[0] } }]\n}\nprintln(f("#"))\n'
    done = harnpy("emit", write("a.harn", source))
    compile(done.stdout, "a.py", "exec")
    assert "\x01" not in done.stdout


def test_a_module_shares_its_variables(harnpy: Command, write) -> None:
    file = write("a.harn", "var n = 0\npub fn next() {\n  n += 1\n  return n\n}\n")
    assert "m['n'] = 0" in harnpy("emit", "--module", file).stdout
    assert "m['n']" not in harnpy("emit", file).stdout


def test_imports_are_found(harnpy: Command, write) -> None:
    write("shapes.harn", "pub fn area(n) { return n * n }\n")
    done = harnpy("emit", write("a.harn", 'import { area } from "shapes"\nprintln(area(2))\n'))
    assert "bring('shapes', ('area',)" in done.stdout


def test_a_program_that_cannot_be_compiled_is_reported(harnpy: Command, write) -> None:
    done = harnpy("emit", write("a.harn", "let = 1\n"))
    assert done.stderr.startswith("error: ")
    assert (done.stdout, done.returncode) == ("", 1)
    gone = harnpy("emit", "gone.harn")
    assert (gone.stdout, gone.returncode) == ("", 1)
