"""`harnpy check` finds what a run would fail for: imports and templates. Spec: 06 §5-§8, 03 §14."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import Command

LIBRARY = "pub fn area(n) { return n }\npub fn edge(n) { return n }\n"


def test_a_program_with_good_imports_is_ok(harnpy: Command, write) -> None:
    write("lib/shapes.harn", LIBRARY)
    program = write("a.harn", 'import "std/context"\nimport { area } from "lib/shapes"\n\nprintln(area(1))')
    done = harnpy("check", program)
    assert (done.stdout, done.stderr, done.returncode) == ("a.harn: ok\n", "", 0)


def test_an_import_that_leads_nowhere(harnpy: Command, write) -> None:
    done = harnpy("check", write("a.harn", 'import "lib/gone"\n\nanything()'))
    assert done.stderr == (
        "error: preflight: unresolved import 'lib/gone'\n"
        "  --> a.harn:1:1\n"
        "   |\n"
        ' 1 | import "lib/gone"\n'
        "   | ^^^^^^^^^^^^^^^^^ preflight [unresolved-import]\n"
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
    done = harnpy("check", write("main.harn", f'import "a"\n{second}\n\nprintln(area(1))'))
    first = tmp_path.resolve() / "a.harn"
    text = f"error: preflight: import collision — 'area' is exported by both '{first}' and 'b'\n"
    assert done.stderr.startswith(text)
    assert done.stderr.endswith(f"   = help: {help_}\n")
    assert done.stderr.count("preflight: ") == 1


def test_bundled_modules_may_collide(harnpy: Command, write) -> None:
    done = harnpy(
        "check",
        write("a.harn", 'import "std/context"\nimport { section } from "std/context"\n\nsection("a", "b")'),
    )
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


# --- types, lint and the workspace ----------------------------------------------------------------------


def test_errors_of_types_have_their_code_and_related_places(harnpy: Command, write) -> None:
    done = harnpy("check", write("a.harn", 'fn f(a: int) { return a }\n\nf("s")\n'))
    assert done.stderr == (
        "error: Argument 1 ('a'): expected int, got string\n"
        "  --> a.harn:3:3\n"
        "   |\n"
        ' 3 | f("s")\n'
        "   |   ^^^ argument-type\n"
        "  ::: a.harn:1:6\n"
        "   |\n"
        " 1 | fn f(a: int) { return a }\n"
        "   |      ------ declared here\n"
    )
    assert (done.stdout, done.returncode) == ("", 1)


def test_lint_is_part_of_a_check_and_fails_it_only_when_strict(harnpy: Command, write) -> None:
    file = write("a.harn", "fn f(a) { return 1 }\n\nprintln(f(2))\n")
    done = harnpy("check", file)
    assert done.stderr.startswith("warning: parameter `a` is declared but never used\n")
    assert (done.stdout, done.returncode) == ("", 0)
    write("harn.toml", "[check]\nstrict = true\n")
    assert harnpy("check", file).returncode == 1
    write("harn.toml", '[check]\nstrict = true\ndisable_rules = ["unused-parameter"]\n')
    assert harnpy("check", file).stdout == "a.harn: ok\n"


def test_an_assignment_that_is_sure_to_fail_is_an_error_with_its_cure(harnpy: Command, write) -> None:
    program = write("a.harn", "let items = []\nfor i in [1] {\n  items = items.push(i)\n}\n")
    checked, ran = harnpy("check", program), harnpy("run", program)
    for done in (checked, ran):
        assert done.stderr.startswith("error: Cannot assign to 'items': variable is immutable")
        assert "::: a.harn:1:5" in done.stderr
        assert "  = help: what changes is declared with `var`: `var items = …`\n" in done.stderr
        assert done.returncode == 1


def test_what_a_let_keeps_and_a_copy_loses_is_told_at_once(harnpy: Command, write) -> None:
    program = "let sum = 0\nlet all = [1].map({ x -> sum = sum + x })\nprintln(all)"
    done = harnpy("check", write("a.harn", program))
    assert "immutable-assignment" in done.stderr
    assert "lint[lost-assignment]" in done.stderr


def test_a_string_with_a_prefix_is_shown_without(harnpy: Command, write) -> None:
    program = write("a.harn", 'let name = "Ann"\nprintln(f"hi {name}")\n')
    for command in ("check", "run"):
        done = harnpy(command, program)
        assert 'takes values, without a letter before it: `"hi ${name}"`' in done.stderr
        assert "did you mean" not in done.stderr


def test_a_function_of_the_library_is_named_with_its_import(harnpy: Command, write) -> None:
    done = harnpy("check", write("a.harn", "println(filter_nil({a: nil}))\n"))
    assert '  = help: write `import { filter_nil } from "std/collections"` above all else\n' in done.stderr


def test_strict_types_by_option_and_by_manifest(harnpy: Command, write) -> None:
    program = (
        'fn name_in(text) {\n  let data = json_parse(text)\n  return data.name\n}\n\nprintln(name_in("{}"))\n'
    )
    file = write("a.harn", program)
    assert harnpy("check", file).stdout == "a.harn: ok\n"
    text = "warning: Accessing property on unvalidated value 'data' from `json_parse`\n"
    assert harnpy("check", "--strict-types", file).stderr.startswith(text)
    write("harn.toml", "[check]\nstrict_types = true\n")
    assert harnpy("check", file).stderr.startswith(text)


def test_the_workspace_of_the_nearest_manifest(harnpy: Command, write) -> None:
    done = harnpy("check", "--workspace")
    assert done.stderr == "--workspace could not find a harn.toml walking up from the target(s)\n"
    assert done.returncode == 1
    write("harn.toml", "[check]\n")
    done = harnpy("check", "--workspace")
    assert done.stderr == "--workspace requires `[workspace].pipelines` in the nearest harn.toml\n"
    write("harn.toml", '[workspace]\npipelines = ["flows", "main.harn"]\n')
    write("flows/a.harn", "println(1)\n")
    write("main.harn", "println(2)\n")
    done = harnpy("check", "--workspace")
    assert [line.rpartition("/")[2] for line in done.stdout.splitlines()] == ["a.harn: ok", "main.harn: ok"]


def test_what_a_file_imports_from_another_is_used_there(harnpy: Command, write) -> None:
    lib = write("lib.harn", "fn area(n) { return n }\n\nprintln(1)\n")
    main = write("main.harn", 'import { area } from "lib"\n\nprintln(area(1))\n')
    assert "function `area` is declared but never used" in harnpy("check", lib).stderr
    assert harnpy("check", lib, main).stdout == "lib.harn: ok\nmain.harn: ok\n"


def test_the_servers_of_a_manifest_are_known_and_not_started(harnpy: Command, write) -> None:
    file = write("a.harn", "println(mcp.stock)\n")
    assert "error: Undefined variable: mcp" in harnpy("check", file).stderr
    write("harn.toml", '[[mcp]]\nname = "stock"\ncommand = "/gone/server"\n')
    done = harnpy("check", file)
    assert (done.stdout, done.stderr) == ("a.harn: ok\n", "")


def test_a_bundled_module_that_is_not_there_is_told_once(harnpy: Command, write) -> None:
    done = harnpy("check", write("a.harn", 'import "std/contxt"\n\nprintln(1)\n'))
    assert done.stderr.count("error: ") == 1
    assert "did you mean" in done.stderr
