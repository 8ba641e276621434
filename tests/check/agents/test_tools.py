"""Tools that are written out. Spec: 03 §16, 07 §4.2."""

from __future__ import annotations

import pytest

from harnpy import Vm
from harnpy.builtins.agents.agent_functions import takes_several
from harnpy.vm.errors import VmError
from tests.check.agents.asking import findings, told


def define(config: str) -> str:
    return f'let tools = tool_define(tool_registry(), "look", "Look around", {config})'


@pytest.mark.parametrize(
    ("config", "marked"),
    [
        ("{parameters: {}}", "{parameters: {}}"),
        ("{params: {}, handler: { args -> 1 }}", "{}"),
        ('{executor: "shell"}', '"shell"'),
        ("{handler: { args -> 1 }, defer_loading: 1}", "1"),
        ('{executor: "host_bridge", host_capability: "a.b", handler: { args -> 1 }}', '"host_bridge"'),
        ("[]", "[]"),
    ],
)
def test_what_a_run_refuses_is_told_before_it_in_the_same_words(config: str, marked: str) -> None:
    [(code, message, place)] = told(define(config))
    assert (code, place) == ("tool-definition", marked)
    with pytest.raises(VmError) as failure:
        Vm().run_source(define(config))
    assert message in str(failure.value)


@pytest.mark.parametrize(
    ("config", "code", "message", "marked"),
    [
        (
            "{paramters: {}, handler: { args -> 1 }}",
            "tool-definition",
            "tool_define: unknown key 'paramters' (did you mean 'parameters'?)",
            "paramters",
        ),
        (
            '{parameters: {at: "strng"}, handler: { args -> args.at }}',
            "tool-parameters",
            "tool 'look': unknown type 'strng' of `at` reads as string (did you mean 'string'?)",
            '"strng"',
        ),
        (
            '{parameters: {o: {type: "object", properties: {a: {}}, required: ["b"]}}, handler: { o -> 1 }}',
            "tool-parameters",
            "tool 'look': `required` names 'b', which `properties` doesn't have",
            '"b"',
        ),
        (
            '{parameters: {path: "string"}, handler: { args -> read_file(args.pth) }}',
            "tool-handler",
            "tool 'look' reads `args.pth`, which is none of its parameters (did you mean 'path'?)",
            "args.pth",
        ),
        (
            '{parameters: {a: "int", b: "int"}, handler: fn(a, b) { a + b }}',
            "tool-handler",
            takes_several("look", ["a", "b"]),
            "fn(a, b) { a + b }",
        ),
    ],
)
def test_what_a_loop_cant_do_with_it_is_a_warning(config: str, code: str, message: str, marked: str) -> None:
    assert told(define(config)) == [(code, message, marked)]
    assert [found.severity for found in findings(define(config))] == ["warning"]


def test_a_json_schema_in_the_place_of_parameters() -> None:
    [(code, message, _)] = told(
        define('{parameters: {type: "object", properties: {a: {}}}, handler: { args -> 1 }}')
    )
    assert code == "tool-parameters"
    assert "the keys of `parameters` are the parameters' names" in message


@pytest.mark.parametrize(
    "config",
    [
        '{parameters: {path: "string"}, handler: { args -> args.path ?? args["path"] }}',
        "{parameters: {}, handler: { args -> args.anything }}",
        "{handler: { args -> args.anything }}",
        '{parameters: {path: "string"}, handler: { args -> let args = {b: 1}\n args.b }}',
        '{parameters: {a: "int"}, annotations: {arg_aliases: {b: "place"}}, handler: { args -> args.place }}',
        '{parameters: {when: "Duration", what: {type: "object", required: ["x"]}}, handler: { args -> 1 }}',
        '{parameters: {a: "int"}, handler: { ...all -> all }, anything: 1, compact: true}',
        "{parameters: {}, handler: { -> 1 }}",
    ],
)
def test_what_a_loop_can_call_is_not_told(config: str) -> None:
    assert told(define(config)) == []


@pytest.mark.parametrize(
    "program",
    [
        'fn add(reg, more) { tool_define(reg, "a", "", {...more, parameters: {}}) }',
        'fn add(reg, run) { tool_define(reg, "a", "", {parameters: {}, handler: run}) }',
        'fn add(reg, config) { tool_define(reg, "a", "", config) }',
        'fn add(reg, name) { tool_define(reg, name, "", {executor: "harn"}) }',
    ],
)
def test_what_is_not_known_is_not_judged(program: str) -> None:
    assert told(program) == []


def test_tools_in_a_list_are_judged_as_a_loop_calls_them() -> None:
    tool = '{name: "look", parameters: {path: "string"}, handler: { args -> args.pth }}'
    source = f'let tools = [{tool}]\nagent_loop("go", nil, {{provider: "mock", tools: tools}})'
    [found] = findings(source)
    assert (found.code, source[found.start : found.end]) == ("tool-handler", "tools")
    assert told(source.replace("pth", "path")) == []


def test_a_tool_that_is_defined_twice() -> None:
    one = 'tool_define(tools, "a", "", {handler: { args -> 1 }})'
    twice = f"fn make() {{\n var tools = tool_registry()\n tools = {one}\n tools = {one}\n tools\n}}"
    [(code, message, place)] = told(twice)
    assert (code, place) == ("duplicate-tool", '"a"')
    assert message == "tool 'a' is in the registry already: this definition replaces it"
    assert told(twice.replace("\n tools = ", "\n tools = tool_registry()\n tools = ")) == []
    assert told(twice.replace(" tools\n}", " if true { tools = tool_registry() }\n tools\n}")) != []
    branches = f"if x {{ tools = {one} }} else {{ tools = {one} }}"
    branch = f"fn make(x) {{\n var tools = tool_registry()\n {branches}\n tools\n}}"
    assert told(branch) == []
