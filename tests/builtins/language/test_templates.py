"""Prompt templates. Spec: 04 §23, 06 §8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnpy.vm.values import Duration, Range, Set, Struct

ADA = {"name": "Ada", "n": 3, "f": 1.5, "t": True, "e": "", "nothing": None}
ADA |= {"xs": [1, 2], "d": {"b": 2, "a": 1}}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("", ""),
        ("plain } { text", "plain } { text"),
        ("{{name}} {{ name }}", "Ada Ada"),
        ("{{ unknown }}{{true}}", "{{unknown}}{{true}}"),
        ("{{ nothing }}|{{ nothing.x }}|{{ d.zz }}|{{ unknown.x }}", "|||"),
        ("{{ f }} {{ t }} {{ xs }} {{ d }}", "1.5 true [1, 2] {a: 1, b: 2}"),
        ("a{{# gone }} #}}b", "ab"),
        ("{{ raw }} {{ x }} {{- y }}{{ endraw }}!", " {{ x }} {{- y }}!"),
        ("a \n {{- name -}} \n b", "a Ada b"),
        ("a\n\n{{- name }}", "a\nAda"),
        ("{{ name -}}\n\nb", "Ada\nb"),
        ("{{ name -}}  b", "Adab"),
        ("a\r\n\t{{- name -}}\t\r\n\r\nb", "aAda\r\nb"),
        ("{{ name -}} \n {{- name }}", "AdaAda"),
        ("{{- raw -}} x {{- endraw -}} \ny", " x y"),
        ("{{ if t }}\nx\n{{ end }}\n", "\nx\n\n"),
        ('{{ \'}}\' }}{{ "a\\n\\"b" }}', '}}a\n"b'),
        ("{{ -5 | default: 1 }}", "-5"),
        ("{{ 2.50 }} {{ nil }}{{ 'x' }}", "2.5 {{nil}}x"),
        ("{{ d.a }} {{ d['b'] }} {{ xs[0] }} {{ xs[-1] }} {{ xs[9] }} {{ name[1] }}", "1 2 1 2  d"),
        ("{{ name.x }}{{ n.x }}{{ xs.x }}", ""),
        ("{{ n == 3 }} {{ n != 3.0 }} {{ n < 4 }}", "true false true"),
        ("{{ name >= 'Ac' }} {{ n < 'a' }} {{ xs <= xs }}", "true false false"),
        ("{{ e or name }} {{ t and n }} {{ e and 1 }}|{{ not e }} {{ !t || n }}", "Ada 3 |true 3"),
        ("{{ (e or nothing) or (n && name) }}", "Ada"),
        ("{{ not n == 4 }}", "true"),
        ("{{ if e }}A{{ elif n == 3 }}B{{ else }}C{{ end }}", "B"),
        ("{{ if e }}A{{ elif nothing }}B{{ else }}C{{ end }}", "C"),
        ("{{ if e }}A{{ end }}", ""),
        ("{{ if '  ' }}A{{ else }}B{{ end }}", "B"),
        ("{{ for x in xs }}{{ loop.index }}:{{ x }};{{ else }}none{{ end }}", "1:1;2:2;"),
        ("{{ for k, v in d }}{{ k }}={{ v }} {{ end }}", "a=1 b=2 "),
        ("{{ for v in d }}{{ v }}{{ end }}", "12"),
        ("{{ for i, v in xs }}{{ i }}{{ v }}{{ end }}", "0112"),
        ("{{ for x in nothing }}x{{ else }}none{{ end }}", "none"),
        (
            "{{ for x in xs }}{{ if loop.first }}<{{ end }}{{ x }}{{ if loop.last }}>{{ end }}{{ end }}",
            "<12>",
        ),
        (
            "{{ for x in xs }}{{ for y in xs }}{{ x }}{{ y }}{{ loop.length }} {{ end }}{{ end }}{{ x }}",
            "112 122 212 222 {{x}}",
        ),
        ("{{ if_x }}{{ end_x }}{{ format.x }}", "{{if_x}}{{end_x}}"),
    ],
)
def test_rendering(vm: Any, template: str, text: str) -> None:
    assert vm.run("render_string", template, ADA) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(Set([]), "y"), (b"", "y"), (Duration(0), "y"), ("0", "y"), ([], "n"), (0, "n"), (" \t", "n")],
)
def test_truthiness(vm: Any, value: Any, text: str) -> None:
    assert vm.run("render_string", "{{ if x }}y{{ else }}n{{ end }}", {"x": value}) == text


@pytest.mark.parametrize(
    ("expression", "value", "text"),
    [
        ("x | upper", "aß", "ASS"),
        ("x | lower", [True, "A"], "[true, a]"),
        ("x | trim", " a ", "a"),
        ("x | upper", None, ""),
        ("x | capitalize", "hELLO wORLD", "Hello world"),
        ("x | title", "hELLO wORLD", "Hello World"),
        ("x | length", "héé", "3"),
        ("x | length", None, "0"),
        ("x | length", Range(1, 4), "4"),
        ("x | length", Set([1]), "1"),
        ("x | first", [], ""),
        ("x | first", "ab", "a"),
        ("x | last", Set([1, 2]), "2"),
        ("x | first", 5, ""),
        ("x | reverse", "abc", "cba"),
        ("x | reverse", [1, 2], "[2, 1]"),
        ("x | reverse", 5, "5"),
        ("x | join: ', '", [1, "a"], "1, a"),
        ("x | join: '-'", "abc", "abc"),
        ("x | default: 'd'", "  ", "d"),
        ("x | default: 'd'", 0, "d"),
        ("x | default: 'd'", 1, "1"),
        ("x | json", {"b": [1.0, None], "a": "q"}, '{"a":"q","b":[1.0,null]}'),
        ("x | json: true", {"b": [1, {}], "a": []}, '{\n  "a": [],\n  "b": [\n    1,\n    {}\n  ]\n}'),
        ("x | indent: 2", "a\n\nb", "a\n\n  b"),
        ("x | indent: 2, true", "a\n\nb", "  a\n\n  b"),
        ("x | lines", "a\nb", "[a, b]"),
        ("x | escape_md", "a*b_c!", "a\\*b\\_c\\!"),
        ("x | replace: 'a', 'b'", "aca", "bcb"),
        ("x | trim | upper | replace: 'A', x", " a ", " a "),
        ("x or 'b' | upper", "", "B"),
    ],
)
def test_filters(vm: Any, expression: str, value: Any, text: str) -> None:
    assert vm.run("render_string", "{{ " + expression + " }}", {"x": value}) == text


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ x", "at 1:1: unterminated directive"),
        ("a\n {{ 'x }}", "at 2:2: unterminated directive"),
        ("{{# x }}", "at 1:1: unterminated comment"),
        ("{{ raw }} x", "at 1:1: unterminated `{{ raw }}` block"),
        ("é{{ end }}", "at 1:2: unexpected `{{ end }}`"),
        ("{{ else }}", "at 1:1: unexpected `{{ else }}`"),
        ("{{ elif x }}", "at 1:1: unexpected `{{ elif }}`"),
        ("{{ if x }}{{ else }}{{ elif y }}{{ end }}", "at 1:21: unexpected `{{ elif }}`"),
        ("{{ for x in y }}{{ elif y }}{{ end }}", "at 1:17: unexpected `{{ elif }}`"),
        ("{{ if x }}a", "at 1:1: `{{ if }}` missing matching `{{ end }}`"),
        ("{{ for x in y }}a", "at 1:1: `{{ for }}` missing matching `{{ end }}`"),
        ("{{ if x }}a\n{{ else }}b", "at 2:1: `{{ else }}` missing matching `{{ end }}`"),
        ("{{ for x y }}{{ end }}", "at 1:1: expected `in` in for-loop"),
        ("{{ for 1 in y }}{{ end }}", "at 1:1: invalid for-loop variable"),
        ("{{ for a, 1 in y }}{{ end }}", "at 1:1: invalid for-loop variables"),
        ("{{ for a, b, c in y }}{{ end }}", "at 1:1: invalid for-loop variables"),
        ("{{ include 'a' with x }}", "at 1:1: expected `{ ... }` after `with`"),
        ("{{ include 'a' with { x } }}", "at 1:1: expected `key: value` in include bindings"),
        ("{{ include 'a' with { 1: x } }}", "at 1:1: invalid include binding key"),
        ("{{ }}", "at 1:1: expected expression"),
        ("{{ if }}{{ end }}", "at 1:1: expected expression"),
        ("{{ a == }}", "at 1:1: expected expression"),
        ("{{ (a }}", "at 1:1: expected `)`"),
        ("{{ (a | upper) }}", "at 1:1: expected `)`"),
        ("{{ a[0 }}", "at 1:1: expected `]`"),
        ("{{ a. }}", "at 1:1: expected identifier after `.`"),
        ("{{ a[b] }}", "at 1:1: expected integer or string inside `[...]`"),
        ("{{ a | }}", "at 1:1: expected filter name after `|`"),
        ("{{ a = 1 }}", "at 1:1: unexpected `=` (use `==`)"),
        ("{{ a & b }}", "at 1:1: unexpected `&`"),
        ("{{ a ? b }}", "at 1:1: unexpected character `?` in expression"),
        ("{{ 99999999999999999999 }}", "at 1:1: invalid integer `99999999999999999999`"),
        ("{{ a | nope }}", "at 1:1: unknown filter `nope`"),
        ("{{ a | upper: 1 }}", "at 1:1: filter `upper` got wrong number of arguments"),
        ("{{ a | join }}", "at 1:1: filter `join` got wrong number of arguments"),
        ("{{ true | length }}", "at 1:1: `length` not defined for bool"),
        ("{{ 5 | join: '' }}", "at 1:1: `join` requires a list (got int)"),
        ("{{ 5 | indent: 'x' }}", "at 1:1: `indent` requires an integer width"),
        (
            "{{ for x in 'abc' }}{{ end }}",
            "at 1:1: cannot iterate over string — expected list, dict, set, or range",
        ),
        ("\n{{ include 5 }}", "at 2:1: include path must be a string (got int)"),
    ],
)
def test_errors(vm: Any, template: str, message: str) -> None:
    assert vm.failure("render_string", template, {}) == message


def test_struct_fields_are_out_of_reach(vm: Any) -> None:
    assert vm.run("render_string", "{{ p.x }}", {"p": Struct("P", {"x": 1})}) == ""


def test_bindings_that_are_no_dict_are_ignored(vm: Any) -> None:
    assert vm.run("render_string", "{{ a }}", [1]) == "{{a}}"
    assert vm.run("render_string", "{{ a }}") == "{{a}}"
    assert vm.run("render_string", 5) == "5"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "harn.toml").write_text('[asset_roots]\nparts = "lib/parts"\nbad = "../x"\n')
    (tmp_path / "lib/parts").mkdir(parents=True)
    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path / "app")
    return tmp_path


def test_files_and_includes(vm: Any, project: Path) -> None:
    (project / "app/main.prompt").write_text(
        "{{ name }}[{{ include 'sub/a.prompt' with { n: name, m: 2 } }}]\r\n"
    )
    (project / "app/sub").mkdir()
    includes = "{{ include 'b.prompt' }}{{ include '@parts/c' }}"
    (project / "app/sub/a.prompt").write_text("{{ name }} {{ n }}{{ m }} " + includes)
    (project / "app/sub/b.prompt").write_text("b")
    (project / "lib/parts/c").write_text("{{ n }}c{{ include '@/lib/d' }}")
    (project / "lib/d").write_text("d")
    text = "Ada[Ada Ada2 bAdacd]\r\n"
    for name in (
        "main.prompt",
        "./sub/../main.prompt",
        "@/app/main.prompt",
        str(project / "app/main.prompt"),
    ):
        assert vm.run("render", name, {"name": "Ada"}) == text
        assert vm.run("render_prompt", name, {"name": "Ada"}) == text
    assert vm.run("render_string", "{{ include 'sub/b.prompt' }}") == "b"


def test_files_that_cannot_be_read(vm: Any, project: Path) -> None:
    here = project / "app"
    missing = f"Failed to read template {here}/no: No such file or directory (os error 2)"
    assert vm.failure("render", "no") == missing
    (here / "bad").write_bytes(b"\xff")
    detail = "stream did not contain valid UTF-8"
    assert vm.failure("render", "bad") == f"Failed to read template {here}/bad: {detail}"
    text = "at 1:1: failed to read included template"
    assert vm.failure("render_string", "{{ include 'no' }}").startswith(text)


def test_asset_paths_that_lead_nowhere(vm: Any, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("@/../x", "@/", "@/a\\b"):
        assert vm.failure("render", path) == f"invalid project-root asset path '{path}'"
    assert vm.failure("render", "@parts/../x") == "invalid asset path '@parts/../x'"
    manifest = project / "harn.toml"
    assert vm.failure("render", "@no/x") == f"asset alias 'no' is not defined in [asset_roots] of {manifest}"
    assert vm.failure("render", "@bad/x").startswith("asset alias 'bad' resolves to an unsafe path '../x'")
    assert "Failed to read template" in vm.failure("render", "@plain")
    monkeypatch.chdir("/")
    text = "package-root prompt path '@/x' has no project root: no harn.toml found above /"
    assert vm.failure("render", "@/x") == text


def test_includes_stay_inside(vm: Any, project: Path) -> None:
    here = project / "app"
    (here / "main").write_text("{{ include '../lib/d' }}")
    text = f"{here}/main at 1:1: include path ../lib/d escapes template root {here}"
    assert vm.failure("render", "main") == text
    assert vm.failure("render_string", "{{ include '/etc/passwd' }}").startswith("at 1:1: include path /etc")


def test_circles(vm: Any, project: Path) -> None:
    here = project / "app"
    (here / "main").write_text("{{ include 'a' }}")
    (here / "a").write_text("\n{{ include 'b' }}")
    (here / "b").write_text("{{ include 'a' }}")
    text = f"{here}/main at 1:1: circular include detected: {here}/a → {here}/b → {here}/a"
    assert vm.failure("render", "main") == text
    (here / "self").write_text("x{{ include 'self' }}")
    text = f"{here}/self at 1:2: circular include detected: {here}/self → {here}/self"
    assert vm.failure("render", "self") == text


def test_depth(vm: Any, project: Path) -> None:
    here = project / "app"
    for i in range(40):
        (here / f"p{i}").write_text(f"{{{{ include 'p{i + 1}' }}}}")
    assert vm.failure("render", "p0").endswith("include depth exceeded (32 levels)")
    (here / "p32").write_text("deep")
    assert vm.run("render", "p0") == "deep"


def test_whose_error_it_is(vm: Any, project: Path) -> None:
    here = project / "app"
    (here / "main").write_text("{{ include 'part' }}")
    (here / "part").write_text("\n{{ x | nope }}")
    assert vm.failure("render", "main") == f"{here}/main at 2:1: unknown filter `nope`"
    (here / "part").write_text("\n {{ end }}")
    assert vm.failure("render", "main") == f"{here}/part at 2:2: unexpected `{{{{ end }}}}`"


def test_provenance(vm: Any, project: Path) -> None:
    (project / "app/p").write_text("é{{ a }}{{ for x in xs }}{{ x.y }}{{ end }}{{ if a }}!{{ end }}{{ z }}")
    bindings = {"a": "v" * 90, "xs": [{"y": 1}, {"y": 2}]}
    found = vm.run("render_with_provenance", "p", bindings)
    assert found["text"] == "é" + "v" * 90 + "12!{{z}}"
    assert found["template_uri"] == str(project / "app/p")
    assert found["prompt_id"] == "prompt-1"
    raw = found["text"].encode()
    shown = [(s["kind"], raw[s["output_start"] : s["output_end"]].decode()) for s in found["spans"]]
    assert shown == [
        ("text", "é"),
        ("legacy_bare", "v" * 90),
        ("for_iteration", "1"),
        ("expr", "1"),
        ("for_iteration", "2"),
        ("expr", "2"),
        ("if", "!"),
        ("text", "!"),
        ("legacy_bare", "{{z}}"),
    ]
    assert found["spans"][1]["bound_value"] == "v" * 79 + "…"
    assert (found["spans"][1]["template_line"], found["spans"][1]["template_col"]) == (1, 2)
    assert "bound_value" not in found["spans"][-1]
    assert vm.run("render_with_provenance", "p", bindings)["prompt_id"] == "prompt-2"


def test_marking_prompts(vm: Any) -> None:
    assert [vm.run("prompt_mark_rendered", p) for p in ("a", "a", "b")] == [1, 2, 1]
    text = "Type error: prompt_mark_rendered: prompt_id must be a string"
    assert vm.failure("prompt_mark_rendered", 5) == text
    assert vm.failure("prompt_mark_rendered") == text
