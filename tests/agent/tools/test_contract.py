"""The tool contract of the system prompt. Spec: 07 §4.4."""

from __future__ import annotations

import pytest

from harnpy.agent.loop.prompts import Stubs, declaration, native_contract, text_contract, ts_type

#: Names that tools of programs and tests tend to have; programs look for them anywhere in the prompt.
LIKELY_NAMES = (
    "read write add run search edit look list get set open close test check deploy build fetch send echo "
    "weather find query exec plan delete remove update create move copy think ask report log stop start "
    "wait help calc sum lookup grep shell bash git commit push http load save email notify ping greet hello "
    "rollback lint format count time date math eval print patch apply inspect fail slow alpha beta hidden"
).split()


@pytest.mark.parametrize("contract", [text_contract([]), native_contract()], ids=["text", "native"])
def test_the_fixed_words_are_no_names_of_tools(contract: str) -> None:
    assert [name for name in LIKELY_NAMES if name in contract.lower()] == []


def test_the_parts_stand_in_their_order() -> None:
    entries = [{"name": "b"}, {"name": "a"}, {"name": "c", "compact": True, "description": "Short. Long."}]
    stubs = Stubs("finder", [{"name": "e"}, {"name": "d", "description": "Hidden v1. More"}])
    text = text_contract(entries, "ALL", "EXAMPLE", ledger=True, stubs=stubs)
    parts = [
        "## Tool Calling Contract",
        "Active mode: `text`",
        "<tool_call>",
        "<assistant_prose>",
        "<user_response>",
        "<done>ALL</done>",
        "<done>##DONE##</done>",
        "## Tool call examples",
        "EXAMPLE",
        "declare function ledger(",
        "## Shared types",
        "## Available tools",
        "declare function a(args: {}): string;",
        "declare function b(args: {}): string;",
        "## Other tools",
        "- `c({ … })` — Short.",
        "## Tools available via `finder` (deferred)",
        "- `d` — Hidden v1",
        "- `e`",
    ]
    positions = [text.find(part) for part in parts]
    assert -1 not in positions
    assert positions == sorted(positions)
    assert text.endswith("- `e`")


def test_what_is_not_asked_for_is_not_there() -> None:
    text = text_contract([{"name": "a"}])
    for absent in ("examples", "ledger", "Other tools", "deferred"):
        assert absent not in text


def test_a_native_contract_lists_no_tools() -> None:
    text = native_contract("ALL")
    assert text.startswith("## Tool Calling Contract")
    assert "`native`" in text
    assert text.count("ALL") == 1
    assert "declare" not in text


def test_a_declaration_has_parameters_by_name_and_the_description_behind() -> None:
    entry = {
        "name": "f",
        "description": "First line.\n\nSecond */ line.",
        "parameters": {
            "q": {"type": "string", "required": False, "description": "An\n  option */"},
            "p": {"type": "int", "description": "A number"},
            "r": {"type": "bool", "default": True},
            "odd-name": "list",
        },
    }
    assert declaration(entry) == (
        'declare function f(args: { "odd-name": unknown[] /* required */; '
        "p: number /* required — A number */; q?: string /* optional — An option * / */; "
        "r?: boolean /* optional */ }): string;\n"
        "/**\n * First line.\n *\n * Second * / line.\n */"
    )
    assert declaration({"name": "g", "description": "One line."}).endswith("string;\n/** One line. */")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("string", "string"),
        ("int", "number"),
        ("float", "number"),
        ("bool", "boolean"),
        ("dict", "object"),
        ("list", "unknown[]"),
        ("Mystery", "unknown"),
        (7, "unknown"),
        ({}, "unknown"),
        ({"$ref": "#/x"}, "unknown"),
        ({"enum": ["a", 1, None, True]}, '"a" | 1 | null | true'),
        ({"const": "x"}, '"x"'),
        ({"type": "string", "nullable": True}, "string | null"),
        ({"type": ["integer", "null"]}, "number | null"),
        ({"oneOf": [{"type": "string"}, {"type": "number"}, {"type": "integer"}]}, "string | number"),
        ({"anyOf": [{"type": "string"}, {"$ref": "x"}]}, "unknown"),
        ({"type": "array"}, "unknown[]"),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "(string | null)[]"),
        ({"type": "object"}, "object"),
        (
            {"type": "object", "properties": {"b": "int", "a": {"type": "string"}}, "required": ["a"]},
            "{ a: string; b?: number }",
        ),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "Record<string, number>"),
        (
            {"type": "array", "items": {"type": "object", "properties": {"a": {"enum": [1, 2]}}}},
            "{ a?: 1 | 2 }[]",
        ),
        (
            {"type": "array", "items": {"type": "object", "properties": {"a": "int"}, "nullable": True}},
            "({ a?: number } | null)[]",
        ),
    ],
)
def test_schemas_become_typescript(schema: object, expected: str) -> None:
    assert ts_type(schema) == expected
