"""Diagnostics in the forms of tools. Spec: 09 §4.6."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from harnpy.cli.reports import SarifLog, as_dict, workflow_command
from harnpy.syntax.diagnostic import Diagnostic, Edit, Fix, Lines, Related
from tests.support import Command

SOURCE = "let a = nil\nfoo(a,\n  1)\n"
LINES = Lines(SOURCE)
OTHER = Lines("// a\npub fn foo() {}\n")
FULL = Diagnostic(
    "error",
    "50% of, all: wrong",
    LINES.span(12, 23),
    "unexpected-token",
    "a help",
    ("a note",),
    code="unexpected-token",
    related=(
        Related("declared here", OTHER.span(12, 15), "lib/o ther.harn", OTHER),
        Related("bound here", LINES.span(4, 5)),
        Related("also in", None, "gone.harn"),
    ),
    fix=Fix([Edit(12, 15, "bar")], safe=False),
)
PLAIN = Diagnostic("warning", "no place")
#: What the schema of SARIF 2.1.0 says of the parts that we write.
_TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
_REGION = {
    "type": "object",
    "additionalProperties": False,
    "required": ["startLine", "startColumn", "endLine", "endColumn"],
    "patternProperties": {"^(start|end)(Line|Column)$": {"type": "integer", "minimum": 1}},
}
_ARTIFACT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["uri"],
    "properties": {"uri": {"type": "string", "pattern": "^[^ \\\\]+$"}, "uriBaseId": {"type": "string"}},
}
_PLACE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["artifactLocation"],
    "properties": {"artifactLocation": _ARTIFACT, "region": _REGION},
}
_LOCATION = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"id": {"type": "integer", "minimum": 0}, "physicalLocation": _PLACE, "message": _TEXT},
}
_CHANGE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["artifactLocation", "replacements"],
    "properties": {
        "artifactLocation": _ARTIFACT,
        "replacements": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["deletedRegion"],
                "properties": {"deletedRegion": _REGION, "insertedContent": {"required": ["text"]}},
            },
        },
    },
}
_RESULT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["message"],
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": _TEXT,
        "locations": {"type": "array", "items": _LOCATION},
        "relatedLocations": {"type": "array", "items": _LOCATION, "uniqueItems": True},
        "fixes": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["artifactChanges"],
                "properties": {"description": _TEXT, "artifactChanges": {"items": _CHANGE, "minItems": 1}},
            },
        },
    },
}
_RULE = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "shortDescription": _TEXT,
        "fullDescription": _TEXT,
        "help": {"required": ["text"], "properties": {"markdown": {"type": "string"}}},
        "properties": {"properties": {"tags": {"items": {"type": "string"}, "uniqueItems": True}}},
    },
}
SARIF = {
    "type": "object",
    "additionalProperties": False,
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["tool"],
                "properties": {
                    "tool": {
                        "properties": {
                            "driver": {"required": ["name"], "properties": {"rules": {"items": _RULE}}}
                        }
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "invocations": {"items": {"required": ["executionSuccessful"]}},
                    "results": {"items": _RESULT},
                },
            }
        },
    },
}


def sarif(*found: Diagnostic) -> Any:
    log = SarifLog()
    log.add("src/a b.harn", LINES, found)
    text = json.loads(log.text())
    jsonschema.validate(text, SARIF)
    return text["runs"][0]


def test_json_has_all_that_a_diagnostic_has() -> None:
    nowhere = {"line": None, "column": None, "end_line": None, "end_column": None}
    assert as_dict(FULL, LINES, "a.harn") == {
        "file": "a.harn",
        "line": 2,
        "column": 1,
        "end_line": 3,
        "end_column": 5,
        "severity": "error",
        "code": "unexpected-token",
        "message": "50% of, all: wrong",
        "help": "a help",
        "notes": ["a note"],
        "related": [
            {
                "file": "lib/o ther.harn",
                "line": 2,
                "column": 8,
                "end_line": 2,
                "end_column": 11,
                "message": "declared here",
            },
            {
                "file": "a.harn",
                "line": 1,
                "column": 5,
                "end_line": 1,
                "end_column": 6,
                "message": "bound here",
            },
            {"file": "gone.harn", **nowhere, "message": "also in"},
        ],
        "fix": {
            "safe": False,
            "edits": [{"line": 2, "column": 1, "end_line": 2, "end_column": 4, "text": "bar"}],
        },
    }
    plain = as_dict(PLAIN, LINES, "a.harn")
    assert plain | nowhere == plain
    assert (plain["code"], plain["help"], plain["fix"], plain["related"]) == (None, None, None, [])


def test_a_workflow_command_is_escaped() -> None:
    assert workflow_command(FULL, LINES, "a,b:c.harn") == (
        "::error file=a%2Cb%3Ac.harn,line=2,endLine=3,title=unexpected-token::"
        "50%25 of, all: wrong%0Ahelp: a help%0Aa note"
    )
    assert workflow_command(PLAIN, LINES, "a.harn") == "::warning file=a.harn::no place"


@pytest.mark.parametrize("text", ["\n::set-output name=a::b", "\r\n::error::x", "\x1b]0;x\x07"])
def test_a_message_can_begin_no_other_command(text: str) -> None:
    line = workflow_command(Diagnostic("note", text, LINES.span(0, 3), code="x"), LINES, f"a{text}")
    assert line.isprintable()
    assert line.startswith("::notice file=a")
    assert ",line=1,endLine=1,col=1,endColumn=4,title=x::" in line


def test_a_sarif_log_has_rules_regions_related_places_and_fixes() -> None:
    run = sarif(FULL, PLAIN, FULL)
    first, plain, again = run["results"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert (first["ruleId"], first["ruleIndex"], again["ruleIndex"]) == ("unexpected-token", 0, 0)
    assert rule["id"] == "unexpected-token"
    assert rule["shortDescription"]["text"] == "Something else is expected here."
    assert "```harn\nfn area width" in rule["help"]["markdown"]
    assert rule["properties"] == {"tags": ["syntax"]}
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/a%20b.harn", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 2, "startColumn": 1, "endLine": 3, "endColumn": 5}
    assert [each["message"]["text"] for each in first["relatedLocations"]] == [
        "declared here", "bound here", "also in",
    ]  # fmt: skip
    (change,) = first["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["insertedContent"] == {"text": "bar"}
    assert first["message"]["text"] == "50% of, all: wrong\nhelp: a help\na note"
    assert plain == {
        "level": "warning",
        "message": {"text": "no place"},
        "locations": [{"physicalLocation": {"artifactLocation": place["artifactLocation"]}}],
    }


def test_a_log_without_results_is_valid() -> None:
    assert sarif()["results"] == []


def test_check_prints_for_tools_on_stdout(harnpy: Command, write) -> None:
    write("a.harn", "println(1)\n")
    write("b.harn", "break\n")
    write("c.harn", "let a = (1\nlet b = 2\n")
    done = harnpy("check", ".", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["file"], each["line"], each["code"]) for each in found] == [
        ("b.harn", 1, "break-outside-loop"),
        ("c.harn", 2, "unclosed-bracket"),
    ]
    assert (done.stderr, done.returncode) == ("", 1)
    annotated = harnpy("check", "b.harn", "--github")
    assert annotated.stdout.startswith("::error file=b.harn,line=1,endLine=1,col=1,endColumn=6,title=break-")
    log = json.loads(harnpy("check", ".", "--sarif").stdout)
    jsonschema.validate(log, SARIF)
    assert [each["ruleId"] for each in log["runs"][0]["results"]] == [each["code"] for each in found]


def test_what_cannot_be_read_is_told_on_stderr(harnpy: Command) -> None:
    done = harnpy("check", "gone.harn", "--json")
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr == "Error reading gone.harn: No such file or directory\n"


def test_no_fix_repeats_a_secret(harnpy: Command, write) -> None:
    key = "sk-" + "ant-api03-" + "kR7vQ2mZx9LpW4nT8yBc6HdJ" * 3 + "AA"
    write("a.harn", f'println(to_string("{key}"))\n')
    for form in ("--json", "--sarif"):
        done = harnpy("lint", "a.harn", form)
        assert "unnecessary-cast" in done.stdout
        assert key not in done.stdout + done.stderr
