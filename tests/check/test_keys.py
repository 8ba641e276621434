"""The keys and words that checks know of dicts for builtins are those that the run takes. Spec: 12 §3.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harnpy.builtins import catalog
from harnpy.formats.options import Option
from harnpy.syntax.mending import acceptable
from harnpy.vm.vm import Vm

if TYPE_CHECKING:
    from harnpy.check.knowledge import Knowledge


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Vm(catalog).builtins.knowledge()


@pytest.mark.parametrize(
    ("function", "path"),
    [
        ("llm_call", (2,)),
        ("llm_call", (2, "budget")),
        ("agent_loop", (2, "mcp_servers", 0)),
        ("workflow_graph", (0,)),
        ("workflow_graph", (0, "nodes", "a")),
        ("workflow_graph", (0, "nodes", "a", "retry_policy")),
        ("workflow_graph", (0, "nodes", "a", "model_policy", "turn_policy")),
        ("workflow_graph", (0, "nodes", "a", "verify", "checks", 0)),
        ("workflow_graph", (0, "edges", 0)),
        ("workflow_graph", (0, "act")),
        ("workflow_insert_node", (1,)),
        ("workflow_insert_node", (2,)),
        ("__session_create", (0,)),
        ("tool_define", (3,)),
    ],
)
def test_each_key_is_taken(knowledge: Knowledge, function: str, path: tuple[Any, ...]) -> None:
    keys = [row.name for row in knowledge.keys(function, path)]
    assert keys
    assert len(keys) == len(set(keys))
    for key in keys:
        refused = [found for found in knowledge.problems(function, _arguments(path, key)) if found.of_key]
        assert not [found.message for found in refused if found.path[-1] == key]


def _arguments(path: tuple[Any, ...], key: str) -> list[Any]:
    """Return arguments with nothing but a key at the end of a path."""
    value: Any = {key: None}
    for step in reversed(path[1:]):
        value = [value] if isinstance(step, int) else {step: value}
    return [*[{} for _ in range(path[0])], value]


@pytest.mark.parametrize("path", [(1,), (0, "nodes"), (0, "nodes", "a", "nothing"), (0, "name")])
def test_elsewhere_nothing_is_known(knowledge: Knowledge, path: tuple[Any, ...]) -> None:
    assert not knowledge.keys("workflow_graph", path)
    assert not knowledge.words("workflow_graph", (*path, "x"))


def test_words(knowledge: Knowledge) -> None:
    assert "mock" in knowledge.words("llm_call", (2, "provider"))
    assert list(knowledge.words("llm_call", (2, "output_format", "kind"))) == ["text", "json", "json_schema"]
    assert "verify" in knowledge.words("workflow_graph", (0, "nodes", "a", "kind"))
    assert not knowledge.words("llm_call", (2, "system"))


@pytest.mark.parametrize(
    ("type", "meaning", "words"),
    [
        ("string", "text, json or json_schema", ["text", "json", "json_schema"]),
        ("string", "stdio or http", ["stdio", "http"]),
        ("string", "auto, native or client; by default auto", ["auto", "native", "client"]),
        ("string", "the model, or the tier that it must reach", []),
        ("list", "one or two", []),
    ],
)
def test_the_words_of_an_option(type: str, meaning: str, words: list[str]) -> None:
    assert list(Option("x", type, "", meaning).words) == words


@pytest.mark.parametrize(
    ("text", "taken", "refused"),
    [
        ("fn f() {\n  if a { 1 }\n  ", "else let IDENT", "catch import"),
        ("fn f() {\n  try { 1 }\n  ", "catch finally", "else"),
        ("let x = ", "if match fn", "let else import"),
        ("for x ", "in", "if IDENT"),
        ("fn ", "IDENT", "let"),
        ("", "import pipeline", "else in"),
        # What is behind a place that doesn't parse is judged all the same.
        ("fn f() {\n  let = = 2\n  ", "let if", "import"),
    ],
)
def test_what_the_parser_would_take(text: str, taken: str, refused: str) -> None:
    asked = f"{taken} {refused}".split()
    assert acceptable(text, asked) == set(taken.split())
