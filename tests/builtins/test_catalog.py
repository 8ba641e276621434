"""The table of builtins: complete, unambiguous, and true to the functions behind it."""

from __future__ import annotations

import inspect
import json
import marshal
import subprocess
import sys
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.builtins import catalog, knowledge
from harnpy.vm.declare import Signature

SOURCES = Path(catalog.__file__).parent

#: The families that belong to the general builtins, but for what other modules or issues bring.
EXPECTED = """
    abs acos addr_of asin assert assert_eq assert_ne atan atan2 basename bold camel_to_kebab camel_to_pascal
    camel_to_snake capture_stderr_start capture_stderr_take ceil chunk color contains cos dedup_by dim
    dirname ends_with entries eprint eprintln error_category exp extname flat_map floor format group_by
    hash_value is_err is_infinite is_nan is_ok is_rate_limited is_same is_stderr_tty is_stdin_tty
    is_stdout_tty is_timeout iter join json_parse json_stringify kebab_to_camel kebab_to_snake keys len ln
    log log10 log2 log_debug log_error log_info log_json log_set_level log_warn lowercase lowercase_first
    max mean median min mock_stdin mock_tty pair partition pascal_to_camel pascal_to_snake percentile pow
    print println progress prompt_user random random_choice random_int random_shuffle range read_line
    read_stdin regex_captures regex_match regex_replace regex_replace_all regex_split replace rng_seed round
    set set_add set_color_mode set_contains set_difference set_intersect set_is_disjoint set_is_subset
    set_is_superset set_remove set_symmetric_difference set_union sign sin snake_to_camel snake_to_kebab
    snake_to_pascal split sqrt starts_with stddev str_pad substring tan throw_error title_case to_float
    to_int to_list to_string trim type_of unicode_graphemes unicode_normalize unmock_stdin unmock_tty
    unreachable unwrap unwrap_err unwrap_or uppercase uppercase_first uuid uuid_nil uuid_parse uuid_v5
    uuid_v7 values variance window Ok Err
    stream.map stream.filter stream.tap stream.scan stream.take stream.take_until stream.zip stream.merge
    stream.interleave stream.race stream.broadcast stream.throttle stream.debounce stream.collect
    stream.fold stream.first
""".split()

DECLARATIONS = catalog.all_declarations()


def test_every_general_builtin_is_there() -> None:
    for name in EXPECTED:
        found = catalog.find(name)
        assert found is not None, name
        assert found.name == name


def test_the_index_holds_just_what_importing_the_modules_declares() -> None:
    assert [found.name for found in DECLARATIONS] == sorted(catalog.names())


def test_the_index_holds_the_signatures_as_they_are_declared() -> None:
    """Those of `std/session` have types in the source alone: their arguments are converted by themselves."""
    indexed = {name: Signature(text) for name, text in catalog.signatures().items()}
    assert list(indexed) == list(catalog.names())
    for declaration in DECLARATIONS:
        name, found = declaration.name, indexed[declaration.name]
        if declaration.family != "durable_sessions":
            assert found.text == declaration.signature_text
        assert (found.name, found.returns) == (name, declaration.signature().returns)


def test_parameters_are_called_the_same_in_signature_and_function() -> None:
    for declaration in DECLARATIONS:
        declared = declaration.signature().parameters
        _, *actual = inspect.signature(declaration.function).parameters.values()
        own = [p for p in actual if p.name != "surplus"]
        assert [p.name for p in own] == [p.name for p in declared], declaration.name
        assert [p.kind == p.VAR_POSITIONAL for p in own] == [p.rest for p in declared], declaration.name


def test_every_builtin_says_in_a_sentence_what_it_does() -> None:
    assert [declaration.name for declaration in DECLARATIONS if not declaration.summary] == []


def test_every_builtin_binds() -> None:
    for declaration in DECLARATIONS:
        bound = declaration.bind()
        assert bound.name == declaration.name
        count = len(declaration.signature().parameters)
        if declaration.signature().rest:
            assert bound.max_args is None, declaration.name
        else:
            assert bound.max_args in ((count, None) if declaration.counted else (count,)), declaration.name


def test_counted_declarations_default_every_parameter() -> None:
    for declaration in DECLARATIONS:
        if declaration.counted:
            _, *actual = inspect.signature(declaration.function).parameters.values()
            assert all(p.default is not p.empty for p in actual if p.kind != p.VAR_POSITIONAL), (
                declaration.name
            )


def test_families_are_those_of_the_reference() -> None:
    families = {found.name: found.family for found in DECLARATIONS}
    for name, family in {
        "println": "io",
        "uuid": "io",
        "type_of": "types",
        "Ok": "types",
        "regex_match": "strings",
        "chunk": "collections",
        "range": "math",
        "assert_eq": "testing",
        "json_parse": "json_schema",
        "hash_value": "crypto",
    }.items():
        assert families[name] == family


def test_unknown_names_are_not_found() -> None:
    assert catalog.find("no_such_builtin") is None
    assert catalog.find("") is None


def test_description_is_json_and_complete() -> None:
    found = catalog.find("str_pad")
    assert found is not None
    description = json.loads(json.dumps(catalog.describe(found)))
    assert description["name"] == "str_pad"
    assert description["family"] == "strings"
    assert description["returns"] == "string"
    assert description["params"][2] == {
        "name": "fill",
        "type": "string",
        "optional": True,
        "rest": False,
        "default": " ",
    }
    assert description["doc"].startswith("Return `s` padded")
    assert all(catalog.describe(declaration) for declaration in DECLARATIONS)


def test_globals() -> None:
    table = Vm().builtins
    values = {name: table.global_value(name) for name in catalog.global_names()}
    assert values["pi"] == 3.141592653589793
    assert values["e"] == 2.718281828459045
    assert values["stream"]["take_until"].name == "stream.take_until"


def test_a_name_declared_twice_is_refused(tmp_path: Path) -> None:
    modules = []
    for module in ("one", "two"):
        path = tmp_path / f"{module}.py"
        path.write_text('\n@builtin("same(x: any) -> nil", family="io")\n')
        modules.append((module, str(path)))
    with pytest.raises(ValueError, match="`same` is declared in one and in two"):
        catalog._index(modules)


def test_printing_a_line_imports_nothing_heavy() -> None:
    heavy = "re json dataclasses typing enum functools contextlib pathlib asyncio msgspec lark regex"
    code = (
        "import sys; from harnpy.builtins import catalog; import harnpy.builtins.language.output;"
        f"print(sorted(set('{heavy}'.split()) & set(sys.modules)))"
    )
    run = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(SOURCES.parents[1])!r}); " + code,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "[]\n"


def test_the_index_is_read_again_when_a_module_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(catalog, "INDEX_PATH", str(tmp_path / "builtins.index"))
    monkeypatch.setattr(catalog, "_DIRECTORY", str(tmp_path / "builtins"))
    module = tmp_path / "builtins" / "inner" / "odd.py"
    module.parent.mkdir(parents=True)

    def read() -> tuple[str, dict[str, str]]:
        monkeypatch.setattr(catalog._Table, "state", None)
        monkeypatch.setattr(catalog._Table, "entries", None)
        return catalog.fingerprint(), dict(catalog.names())

    module.write_text('\n@builtin("one() -> nil", family="io")\n')
    first = read()
    assert first[1] == {"one": "harnpy.builtins.inner.odd"}
    assert read() == first
    module.write_text(
        '\n@builtin(\n    "another(a: int) -> nil",\n    family="io",\n)\n'
        '@builtin("more() -> nil", family="io", counted=True)\n'
    )
    changed = read()
    assert changed[0] != first[0]
    assert list(changed[1]) == ["another", "more"]
    assert catalog.signatures() == {"another": "another(a: int) -> nil", "more": "more() -> nil"}


def test_an_index_that_is_there_is_read_and_no_module(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shipped = tmp_path / "builtins.index"
    monkeypatch.setattr(catalog, "INDEX_PATH", str(shipped))
    monkeypatch.setattr(catalog, "_index", None)
    shipped.write_bytes(marshal.dumps((catalog.fingerprint(), {"one": "a.module one(a: int) -> nil"})))
    monkeypatch.setattr(catalog._Table, "entries", None)
    assert (catalog.module_of("one"), catalog.signature("one")) == ("a.module", "one(a: int) -> nil")
    assert (catalog.module_of("two"), catalog.signature("two")) == ("", "")
    monkeypatch.setattr(catalog.cache, "is_installed", lambda: True)
    shipped.write_bytes(marshal.dumps(("", {"two": "a.module two()"})))
    assert catalog._load() == {"two": "a.module two()"}


def test_the_index_that_is_built_is_the_one_that_is_read() -> None:
    _, entries = marshal.loads(catalog.index())
    assert entries == catalog._load()


def test_absent_builtins_are_those_of_the_specification_alone() -> None:
    assert catalog.absence("pg_query") == "not in harnpy"
    assert catalog.absence("vision_ocr") == "not in harnpy; its nearest kin is `llm_call`"
    assert [catalog.absence(name) for name in ("println", "no_such_name", "name")] == [None, None, None]


def test_the_kin_of_absent_builtins_is_there() -> None:
    assert set(knowledge._KIN.values()) <= set(catalog.names())
    assert not set(knowledge._KIN) & set(catalog.names())
