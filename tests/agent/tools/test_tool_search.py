"""Deferred tools: searching, bringing into view, and the budget for it. Spec: 07 §5."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harnpy.agent.loop.model_offer import Answer, DeferredTools, searcher
from harnpy.llm.native_tools import ToolSearch
from tests.support import ends

Entry = dict[str, Any]


def tool(name: str, description: str = "", **more: Any) -> Entry:
    return {"name": name, "description": description, "parameters": {}, "defer_loading": True, **more}


OPS = [
    {"name": "look", "description": "Look around", "parameters": {}},
    tool("deploy_service", "Ship it to production."),
    tool("rollback", "Undo a deploy, then deploy the last good one"),
    tool("pay", "Move money", parameters={"iban": {"type": "string", "description": "Account at the bank"}}),
    tool("ticket", "Open one", parameters={"severity": "string"}, _mcp_server="jira"),
]


def deferred(entries: list[Entry] = OPS, **options: Any) -> DeferredTools:
    return DeferredTools(entries, ToolSearch(**options))


def ask(tools: DeferredTools, query: Any) -> Answer:
    return tools.answer({"query": query})


def names(tools: DeferredTools) -> list[str]:
    return [entry["name"] for entry in tools.visible()]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("deploy", ["rollback", "deploy_service"]),  # twice in one text, once in the other
        ("SERVICE", ["deploy_service"]),
        ("bank", ["pay"]),
        ("iban", ["pay"]),
        ("severity", ["ticket"]),
        ("jira", ["ticket"]),
        ("look", []),  # in view already
        ("deplo", []),
    ],
)
def test_words_are_searched_in_names_descriptions_parameters_and_servers(
    query: str, found: list[str]
) -> None:
    answer = ask(deferred(), query)
    assert answer.names == found
    assert json.loads(answer.text)["tool_names"] == found
    assert (answer.diagnostic is None) == bool(found)


def test_rare_words_weigh_more_and_long_texts_less() -> None:
    entries = [
        tool("a", "common rare"),
        tool("b", "common common"),
        tool("c", "common " + "filler " * 30),
        tool("d", "common"),
    ]
    assert ask(deferred(entries), "common rare").names == ["a", "b", "d", "c"]


@pytest.mark.parametrize("strategy", ["bm25", "regex"])
def test_ties_go_by_name_and_there_are_at_most_20(strategy: str) -> None:
    entries = [tool(f"t{i:02}", "same") for i in reversed(range(30))]
    answer = ask(deferred(entries, strategy=strategy), "same")
    assert answer.names == [f"t{i:02}" for i in range(20)]


def test_patterns_ignore_case_and_count_matches() -> None:
    tools = deferred(strategy="regex")
    assert ask(tools, "DEPLOY").names == ["rollback", "deploy_service"]
    assert ask(tools, "^(pay|ticket)").names == ["pay", "ticket"]
    assert ask(tools, "a|o").names[0] == "rollback"


@pytest.mark.parametrize(
    ("strategy", "query", "diagnostic"),
    [
        ("bm25", "", "empty query; specify search terms or a regex pattern"),
        ("regex", " \n", "empty query; specify search terms or a regex pattern"),
        ("bm25", None, "empty query; specify search terms or a regex pattern"),
        ("bm25", "?!_", "empty query after tokenization; use alphanumeric search terms"),
        ("bm25", "zebra", "no tools matched your BM25 query; try shorter or more generic terms"),
        ("regex", "zebra", "no tools matched your regex; widen the alternation or relax quantifiers"),
    ],
)
def test_an_empty_result_says_why(strategy: str, query: Any, diagnostic: str) -> None:
    answer = ask(deferred(strategy=strategy), query)
    assert answer == Answer(
        json.dumps({"diagnostic": diagnostic, "tool_names": []}, separators=(",", ":")), [], diagnostic, []
    )


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "(?=x)", "(?<!x)y", r"(a)\1", "a{2,1}"])
def test_a_pattern_that_is_none_says_so(pattern: str) -> None:
    answer = ask(deferred(strategy="regex"), pattern)
    assert answer.names == []
    assert (answer.diagnostic or "").startswith("regex compile error: ")


def test_a_pattern_that_backtracks_for_ever_is_given_up() -> None:
    entries = [tool("a", "a" * 5000 + "!"), *OPS]
    with ends():
        answer = ask(deferred(entries, strategy="regex"), "(a|aa)+$")
    assert (answer.names, answer.promoted) == ([], [])
    assert (answer.diagnostic or "").startswith("regex compile error: the pattern takes too long")


def test_without_deferred_tools_the_index_is_empty() -> None:
    answer = ask(deferred(OPS[:1]), "deploy")
    assert (answer.diagnostic or "").startswith("no deferred tools in the search index")
    only = deferred(OPS[:2], always_loaded=frozenset({"deploy_service"}))
    assert (ask(only, "deploy").diagnostic or "").startswith("no deferred tools in the search index")
    assert names(only) == ["__harn_tool_search", "look", "deploy_service"]


@pytest.mark.parametrize("strategy", ["semantic", "host"])
def test_strategies_of_a_host_need_one(strategy: str) -> None:
    answer = ask(deferred(strategy=strategy), "deploy")
    assert answer.names == []
    assert strategy in (answer.diagnostic or "")


def test_what_is_found_comes_into_view_and_stays_searchable() -> None:
    tools = deferred(name="finder")
    assert names(tools) == ["finder", "look"]
    assert ask(tools, "bank").promoted == ["pay"]
    assert names(tools) == ["finder", "look", "pay"]
    again = ask(tools, "bank")
    assert (again.names, again.promoted) == (["pay"], [])


def test_stubs_are_those_not_in_view() -> None:
    assert deferred().stubs() is None
    tools = deferred(include_stub_listing=True, always_loaded=frozenset({"ticket"}))
    ask(tools, "bank")
    stubs = tools.stubs()
    assert stubs is not None
    assert (stubs.searcher, [entry["name"] for entry in stubs.entries]) == (
        "__harn_tool_search",
        ["deploy_service", "rollback"],
    )


def sized(name: str, size: int) -> Entry:
    return tool(name, f"word {'x' * size}")


def test_the_oldest_found_go_when_the_budget_is_spent() -> None:
    entries = [OPS[0], sized("a", 400), sized("b", 400), sized("c", 400), sized("huge", 4000)]
    tools = deferred(entries, budget_tokens=300)
    for query in ("a", "b"):
        ask(tools, query)
    assert names(tools) == ["__harn_tool_search", "look", "a", "b"]
    assert ask(tools, "c").promoted == ["c"]
    assert names(tools) == ["__harn_tool_search", "look", "b", "c"]
    assert ask(tools, "huge").promoted == []
    assert names(tools) == ["__harn_tool_search", "look", "b", "c"]


def test_the_most_relevant_of_one_search_are_not_evicted_by_the_rest() -> None:
    entries = [OPS[0], sized("a", 400), sized("b", 400), sized("c", 400)]
    answer = ask(deferred(entries, budget_tokens=300), "word")
    assert answer.names == ["a", "b", "c"]
    assert answer.promoted == ["a", "b"]


def test_transcript_and_subscribers_hear_of_the_query_and_of_what_it_found() -> None:
    notes: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    tools = deferred(variant="regex", strategy="bm25")
    search = searcher(tools, notes.append, lambda type, **fields: events.append({"type": type, **fields}))
    text, good = search({"id": "tc_0", "name": "__harn_tool_search", "arguments": {"query": "bank"}})
    assert (json.loads(text), good) == ({"tool_names": ["pay"]}, True)
    how = {"strategy": "bm25", "mode": "client"}
    asked = {"name": "tool_search_tool_regex", "query": {"query": "bank"}, **how}
    assert [(note["kind"], note["metadata"]) for note in notes] == [
        ("tool_search_query", {"id": "tc_0", **asked}),
        (
            "tool_search_result",
            {"tool_use_id": "tc_0", "tool_references": [{"tool_name": "pay"}], "promoted": ["pay"], **how},
        ),
    ]
    assert events == [
        {"type": "tool_search_query", "tool_use_id": "tc_0", **asked},
        {"type": "tool_search_result", "tool_use_id": "tc_0", "promoted": ["pay"], **how},
    ]


def test_arguments_that_are_no_dict_are_an_empty_query() -> None:
    text, good = searcher(deferred(), lambda note: None, lambda type, **fields: None)({"arguments": "bank"})
    assert good
    assert "empty query" in text
