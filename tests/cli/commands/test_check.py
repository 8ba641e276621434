"""`harnpy check` finds what a run would fail for: imports and templates. Spec: 06 §5-§8, 03 §14."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import Command

LIBRARY = "pub fn area(n) { return n }\npub fn edge(n) { return n }\n"


def test_a_program_with_good_imports_is_ok(harnpy: Command, write) -> None:
    write("lib/shapes.harn", LIBRARY)
    program = write("a.harn", 'import { area } from "lib/shapes"\nimport "std/context"\nprintln(area(1))')
    done = harnpy("check", program)
    assert (done.stdout, done.stderr, done.returncode) == ("a.harn: ok\n", "", 0)


def test_an_import_that_leads_nowhere(harnpy: Command, write) -> None:
    done = harnpy("check", write("a.harn", 'import "lib/gone"\nanything()'))
    assert done.stderr == (
        "error: preflight: unresolved import 'lib/gone'\n"
        "  --> a.harn:1:1\n"
        "   |\n"
        ' 1 | import "lib/gone"\n'
        "   | ^^^^^^^^^^^^^^^^^ preflight\n"
        "   = help: verify the import path and packaged module layout\n"
    )
    assert (done.stdout, done.returncode) == ("", 1)


def test_an_unknown_call_with_all_imports_found(harnpy: Command, write) -> None:
    write("shapes.harn", LIBRARY)
    done = harnpy("check", write("a.harn", 'import "shapes"\nareaa(1)'))
    assert done.stderr.startswith(
        "error: call target `areaa` is not defined or imported — did you mean `area`?\n"
    )


@pytest.mark.parametrize(
    ("second", "help_"),
    [
        ('import "b"', 'use selective imports to disambiguate: import { area } from "..."'),
        (
            'import { area } from "b"',
            "rename one of the imported modules or avoid importing conflicting names",
        ),
    ],
)
def test_two_imports_with_one_name(harnpy: Command, write, tmp_path: Path, second: str, help_: str) -> None:
    write("a.harn", LIBRARY)
    write("b.harn", "pub fn area(n) { return n }")
    done = harnpy("check", write("main.harn", f'import "a"\n{second}'))
    first = tmp_path.resolve() / "a.harn"
    text = f"error: preflight: import collision — 'area' is exported by both '{first}' and 'b'\n"
    assert done.stderr.startswith(text)
    assert done.stderr.endswith(f"   = help: {help_}\n")
    assert done.stderr.count("preflight: ") == 1


def test_bundled_modules_may_collide(harnpy: Command, write) -> None:
    done = harnpy("check", write("a.harn", 'import "std/context"\nimport { section } from "std/context"'))
    assert done.stdout == "a.harn: ok\n"


def test_one_name_passed_on_from_two_modules(harnpy: Command, write, tmp_path: Path) -> None:
    write("a.harn", LIBRARY)
    write("b.harn", "pub fn area(n) { return n }")
    done = harnpy("check", write("facade.harn", 'pub import { area } from "a"\npub import { area } from "b"'))
    here = tmp_path.resolve()
    sources = f"by multiple sources: {here / 'a.harn'}, {here / 'b.harn'}"
    text = f"re-export conflict — 'area' is re-exported (or locally defined) {sources}"
    assert f"error: preflight: {text}\n" in done.stderr
    assert "   = help: remove or rename one of the conflicting `pub import` declarations\n" in done.stderr


def test_a_name_passed_on_and_defined_here(harnpy: Command, write, tmp_path: Path) -> None:
    write("a.harn", LIBRARY)
    done = harnpy("check", write("facade.harn", 'pub import "a"\npub fn edge(n) { return n }'))
    sources = f"facade.harn, {tmp_path.resolve() / 'a.harn'}"
    assert f"'edge' is re-exported (or locally defined) by multiple sources: {sources}\n" in done.stderr


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ('render("@/a")', "package-root prompt path '@/a' has no project root: no harn.toml found above {0}"),
        (
            'host_call("template.render", {path: "@/a"})',
            "package-root prompt path '@/a' has no project root: no harn.toml found above {0}",
        ),
        ('render_prompt("gone.txt")', "render_prompt target 'gone.txt' does not exist at {0}/gone.txt"),
    ],
)
def test_templates_that_are_not_there(harnpy: Command, write, tmp_path: Path, call: str, text: str) -> None:
    done = harnpy("check", write("a.harn", f"println({call})"))
    assert done.stderr.startswith(f"error: preflight: {text.format(tmp_path)}\n")
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("@/../a", "invalid project-root asset path '@/../a'"),
        ("@shared/../a", "invalid asset path '@shared/../a'"),
        ("@gone/a", "asset alias 'gone' is not defined in [asset_roots] of {0}/harn.toml"),
        (
            "@unsafe/a",
            "asset alias 'unsafe' resolves to an unsafe path '../x' "
            "(must be a project-relative directory without `..` segments)",
        ),
    ],
)
def test_assets_that_the_manifest_does_not_know(
    harnpy: Command, write, tmp_path: Path, path: str, text: str
) -> None:
    write("harn.toml", '[asset_roots]\nshared = "common"\nunsafe = "../x"\n')
    done = harnpy("check", write("src/a.harn", f'println(render("{path}"))'))
    assert done.stderr.startswith(f"error: preflight: {text.format(tmp_path)}\n")


def test_templates_that_are_there_or_computed(harnpy: Command, write) -> None:
    write("note.txt", "note")
    done = harnpy("check", write("a.harn", 'println(render("note.txt"))\nprintln(render("no" + "ne"))'))
    assert done.stdout == "a.harn: ok\n"


@pytest.mark.parametrize("manifest", ["warning", "warn"])
def test_findings_may_be_warnings(harnpy: Command, write, manifest: str) -> None:
    write("harn.toml", f'[check]\npreflight_severity = "{manifest}"\n')
    done = harnpy("check", write("a.harn", 'import "gone"'))
    assert done.stderr.startswith("warning: preflight: unresolved import 'gone'\n")
    assert (done.stdout, done.returncode) == ("", 0)


@pytest.mark.parametrize("manifest", ["off", "allow", "silent"])
def test_findings_may_be_left_out(harnpy: Command, write, manifest: str) -> None:
    write("harn.toml", f'[check]\npreflight_severity = "{manifest}"\n')
    assert harnpy("check", write("a.harn", 'import "gone"')).stdout == "a.harn: ok\n"


def test_the_command_line_decides_before_the_manifest(harnpy: Command, write) -> None:
    write("harn.toml", '[check]\npreflight_severity = "off"\n')
    done = harnpy("check", "--preflight", "error", write("a.harn", 'import "gone"'))
    assert done.returncode == 1
