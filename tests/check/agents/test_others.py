"""Modules, providers, tiers, sessions and secrets that are written out. Spec: 03 §16."""

from __future__ import annotations

import pytest

from harnpy import Vm
from harnpy.builtins import catalog
from harnpy.check.agents import needs_session
from harnpy.vm.errors import VmError
from tests.check.agents.asking import findings, told


def test_a_module_that_isnt_there() -> None:
    source = 'import "std/agentz"\nimport "./own"'
    [found] = findings(source)
    assert (found.code, found.message) == ("unknown-module", "Unknown stdlib module: std/agentz")
    assert found.help == 'did you mean "std/agents"?'
    assert found.fix is not None
    [edit] = found.fix.edits
    assert source[: edit.start] + edit.text + source[edit.end :] == source.replace("agentz", "agents")


def test_a_module_with_a_list_of_names_is_fixed_too() -> None:
    source = 'import { a } from "std/agentz" // agents'
    [found] = findings(source)
    assert found.fix is not None
    [edit] = found.fix.edits
    assert source[edit.start : edit.end] == "std/agentz"


@pytest.mark.parametrize(
    ("options", "code", "marked"),
    [
        ('{provider: "antropic"}', "unknown-provider", '"antropic"'),
        ('{provider: "mock", fallback_chain: ["nobody"]}', "unknown-provider", '["nobody"]'),
        ('{model_tier: "fronteer"}', "unknown-tier", '"fronteer"'),
    ],
)
def test_names_that_nobody_knows_are_warned_of(options: str, code: str, marked: str) -> None:
    source = f'llm_call("hi", nil, {options})'
    assert [(found, place) for found, _, place in told(source)] == [(code, marked)]
    assert [found.severity for found in findings(source)] == ["warning"]


@pytest.mark.parametrize(
    "source",
    [
        'llm_call("hi", nil, {provider: "Auto"})',
        'llm_call("hi", nil, {model: "a-model-of-tomorrow", model_tier: "my-own-model"})',
        'llm_mock({text: "x"})\nllm_call("hi", nil, {provider: "nobody"})',
        'provider_register("acme")\nllm_call("hi", nil, {provider: "acme"})',
        'try { llm_call("hi", nil, {provider: "nobody"}) } catch (e) { e }',
    ],
)
def test_names_that_may_mean_something_are_not(source: str) -> None:
    assert told(source) == []


@pytest.mark.parametrize("name", [name for name in catalog.names() if name.startswith("agent_session_")])
def test_a_builtin_that_needs_its_session_is_known_as_such(name: str) -> None:
    declaration = catalog.find(name)
    assert declaration is not None
    given = {"dict": "{}", "int": "1"}
    if name == "agent_session_inject":
        given["any"] = '{role: "user", content: "x"}'
    parameters = declaration.signature().parameters[1:]
    others = [given.get(p.type, '"x"') for p in parameters if not p.optional]
    call = f"{name}({', '.join(['id', *others])})"
    failed = False
    try:
        Vm().run_source(f'let id = agent_session_open("a")\nagent_session_close(id)\n{call}')
    except VmError as error:
        failed = "unknown session id 'a'" in str(error)
    assert needs_session(name) is failed


@pytest.mark.parametrize(
    ("body", "marked"),
    [
        ("agent_session_length(id)", "agent_session_length(id)"),
        ('println("bye")\nlet n = agent_session_length(id) + 1', "agent_session_length(id)"),
        ("if true { agent_session_reset(id) }", "agent_session_reset(id)"),
        ("agent_session_close(id)", "agent_session_close(id)"),
    ],
)
def test_a_session_that_is_used_after_its_end(body: str, marked: str) -> None:
    source = f"fn work() {{\nlet id = agent_session_open()\nagent_session_close(id)\n{body}\n}}"
    [found] = findings(source)
    assert (found.code, source[found.start : found.end]) == ("closed-session", marked)
    assert [source[place.start : place.end] for place in found.places] == ["agent_session_close(id)"]


def test_what_is_declared_after_the_end_is_not_told() -> None:
    source = "let id = agent_session_open()\nagent_session_close(id)\n"
    assert told(source + "fn length(id) { agent_session_length(id) }\nprintln(length)") == []
    assert [code for code, _, _ in told(source + "fn f() { 1 }\nagent_session_length(id)")] == [
        "closed-session"
    ]


def test_a_session_by_its_id_has_the_words_of_the_run() -> None:
    source = 'agent_session_open("a")\nagent_session_close("a")\nagent_session_length("a")'
    [(_, message, _)] = told(source)
    assert message == "agent_session_length: unknown session id 'a'"
    with pytest.raises(VmError, match=message):
        Vm().run_source(source)


@pytest.mark.parametrize(
    "between",
    [
        "agent_session_open(id)",
        'agent_loop("hi", nil, {session_id: id})',
        "reopen(id)",
        "id = agent_session_open()",
        "let id = agent_session_open()",
        "[1].map({ _ -> agent_session_open(id) })",
        "if true { agent_session_open(id) }",
        "return",
        "let {id} = {id: agent_session_open()}",
    ],
)
def test_a_session_that_may_be_open_again_is_not_told(between: str) -> None:
    source = (
        "fn reopen(id) { agent_session_open(id) }\n"
        "fn work() {\nvar id = agent_session_open()\nagent_session_close(id)\n"
        f"{between}\nagent_session_length(id)\n}}"
    )
    assert told(source) == []


@pytest.mark.parametrize(
    "body",
    [
        "agent_session_exists(id)",
        "try { agent_session_length(id) } catch (e) { e }",
        "agent_session_length(other)",
    ],
)
def test_what_needs_no_session_or_handles_its_end_is_not_told(body: str) -> None:
    source = f"fn work(other) {{\nlet id = agent_session_open()\nagent_session_close(id)\n{body}\n}}"
    assert told(source) == []


_KEYS = {
    "AWS": "AKIA" + "Q3EGRZ7TW5N2PJ6L",
    "OpenAI": "sk-" + "proj-9fQ2mZ7Lx0Vb4Tn8Rk1W",
    "GitHub": "ghp_" + "9fQ2mZ7Lx0Vb4Tn8Rk1WcY5Hd3Gs6JpA",
    "private key": "-----BEGIN PRIVATE KEY-----\\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49",
}


@pytest.mark.parametrize("kind", _KEYS)
def test_a_secret_is_named_and_never_shown(kind: str) -> None:
    source = f'fn call() {{ println(["Bearer {_KEYS[kind]}"]) }}'
    [found] = findings(source)
    assert (found.code, found.severity) == ("literal-secret", "warning")
    assert kind in found.message
    assert _KEYS[kind] not in found.message + str(found.help)


@pytest.mark.parametrize(
    "text",
    [
        "sk-test-0123456789abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        '${env(\\"OPENAI_API_KEY\\")}',
        "a-long-name-of-a-file-2024-10-01.json",
        "3f786850e387550fdab836ed7e6dc881de23001b",
        "-----BEGIN PUBLIC KEY-----\\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\\n-----END PUBLIC KEY-----",
    ],
)
def test_what_is_no_secret_is_not_told(text: str) -> None:
    assert told(f'let value = "{text}"') == []
