"""Options that are written out, held against those who read them. Spec: 03 §16."""

from __future__ import annotations

import pytest

from harnpy import Vm
from harnpy.vm.errors import VmError
from tests.check.agents.asking import findings, told

#: A program, what it is told of, and the place.
_REFUSED = [
    ('llm_call("hi", nil, {max_token: 5})', "unknown-option", "max_token"),
    ('llm_call("hi", nil, {thinking: {budget: 5}})', "unknown-option", "budget"),
    ('llm_call("hi", nil, {transcript: nil})', "unknown-option", "transcript"),
    ('agent_loop("hi", nil, {max_iteration: 5})', "unknown-option", "max_iteration"),
    ('workflow.update("w", "n", nil, {timeout: 5})', "unknown-option", "timeout"),
    ('llm_healthcheck({provide: "mock"})', "unknown-option", "provide"),
    ('llm_call("hi", nil, {thinking: "maybe"})', "option-type", '"maybe"'),
    ('llm_call("hi", nil, {thinking: {mode: "effort", level: "most"}})', "option-type", '"most"'),
    ('llm_call("hi", nil, {budget: {max_cost_usd: "5"}})', "option-type", '"5"'),
    ('llm_call("hi", nil, {route_policy: "best"})', "option-type", '"best"'),
    ('agent_loop("hi", nil, {profile: "reviewer"})', "option-type", '"reviewer"'),
    ('agent_loop("hi", nil, {compaction: {keep_last: -1}})', "option-type", "-1"),
    ('spawn_agent({task: "hi", carry: {transcript_mode: "none"}})', "option-type", '"none"'),
    ('sub_agent_run("hi", {execution: {cwd: 5}})', "option-type", "5"),
    ('daemon_spawn({task: "hi", persist_path: "d", profile: "odd"})', "option-type", '"odd"'),
    ('agent_loop("hi", nil, {permissions: {allow: 5}})', "option-type", "5"),
    ('agent_loop("hi", nil, {skills: 5})', "option-type", "5"),
    ('agent_loop("hi", nil, {mcp_servers: [{name: "a", command: 5}]})', "option-type", "5"),
    ('agent_loop("hi", nil, {tool_output_max_chars: -1})', "option-type", "-1"),
    ('agent_loop("hi", nil, {native_tool_fallback: "no"})', "option-type", '"no"'),
    ('llm_call("hi", nil, {tool_search: {mode: "all"}})', "option-type", '"all"'),
    ('llm_call("hi", nil, {output_schema: 5})', "option-type", "5"),
    ('llm_call("hi", nil, {structural_experiment: "shuffle"})', "option-type", '"shuffle"'),
    ('llm_stream("hi", nil, {reasoning_effort: "most"})', "option-type", '"most"'),
    ('workflow_execute("t", {nodes: {a: {}}}, [], {execution: {cwd: 5}})', "option-type", "5"),
    ('http_response_text("hi", {status: "ok"})', "option-type", '"ok"'),
    ('http_server({max_body_bytes: "1"})', "option-type", '"1"'),
    ("http_server_tls_edge({hsts_preload: 1})", "option-type", "1"),
    ("sse_server_response({max_event_bytes: 0})", "option-type", "0"),
    ('sse_connect("GET", "http://a.test/", {reconnect: "no"})', "option-type", '"no"'),
    ('websocket_connect("ws://a.test/", {headers: []})', "option-type", "[]"),
    ('ask_user("go on?", {schema: 5})', "option-type", "5"),
    ('llm_call("hi", nil, {tools: "all"})', "option-type", '"all"'),
    ('agent_loop("hi", nil, {approval_policy: "ask"})', "option-type", '"ask"'),
    ('agent_loop("hi", nil, {command_policy: {alow: []}})', "option-type", "[]"),
    ('egress_policy({allow: ["http://["]})', "option-type", '"http://["'),
    ('tool_synthesize({description: "x", name: "a b"})', "option-type", '"a b"'),
    ('http_get("http://localhost/", {timeout_ms: "5"})', "option-type", '"5"'),
    ('http_get("http://localhost/", {retry: {max: 1.5}})', "option-type", "1.5"),
    ('http_mock("GET", "*", {responses: [{status: 200}, {status: 2}]})', "option-type", "2"),
    ('supervisor_start({children: [{task: { _ -> 1 }, restart: {factor: "2"}}]})', "option-type", '"2"'),
    ('egress_policy({allow: "*"})', "option-type", '"*"'),
    ('llm_mock({error: {category: "zap"}})', "option-type", '"zap"'),
]


@pytest.mark.parametrize(("program", "code", "marked"), _REFUSED)
def test_what_a_run_refuses_is_told_before_it_in_the_same_words(program: str, code: str, marked: str) -> None:
    [(found, message, place)] = told(program)
    assert (found, place) == (code, marked)
    with pytest.raises(VmError) as failure:
        Vm().run_source(program)
    assert message in str(failure.value)


@pytest.mark.parametrize(
    "program",
    [
        'llm_call("hi", nil, {max_tokens: "many", temperature: "hot", stop: "x"})',  # read leniently
        'llm_call("hi", nil, {provider: "mock", mock: {seed: 1}})',  # a provider's own options
        'fn ask(more) { llm_call("hi", nil, {...more, thinking: more.thinking}) }',
        'fn ask(key) { llm_call("hi", nil, {[key]: 1}) }',
        'fn ask(opts) { llm_call("hi", nil, opts) }',
        'var opts = {max_token: 5}\nopts = {}\nllm_call("hi", nil, opts)',
        'try { llm_call("hi", nil, {max_token: 5}) } catch (e) { e }',
        'for call in [{ -> llm_call("hi", nil, {max_token: 5}) }] { try { call() } catch (e) { e } }',
        'llm_call_safe("hi", nil, {max_token: 5})',
        'fn llm_call(a, b, c) { c }\nllm_call("hi", nil, {max_token: 5})',
        'shared_cell({_type: "shared_cell", scope: "a", key: "b"})',
        'llm_call("hi", nil, {max_token: 5}) // harnpy: allow unknown-option',
        'http_get("http://localhost/", {multipart: [{name: "f", path: "no-such-file"}]})',
        f'http_get("http://localhost/", {{tls: {{pinned_sha256: "{"ab" * 32}"}}}})',
        'http_get("http://localhost/", {timeout: 5, headers: {a: 1}})',
        "supervisor_start({children: [{task: { _ -> 1 }, restart: {backoff: 5ms}}]})",
        'sub_agent_run("hi", {compaction: 5})',  # not one of its own
    ],
)
def test_what_a_run_accepts_is_not_told(program: str) -> None:
    assert told(program) == []


def test_all_that_is_wrong_is_told_at_once() -> None:
    options = '{max_token: 5, budget: {max_cost_usd: "5"}, thinking: "maybe"}'
    codes = [code for code, _, _ in told(f'llm_call("hi", nil, {options})')]
    assert codes == ["unknown-option"]  # the run looks at the keys first
    options = options.replace("max_token:", "max_tokens:")
    marked = [place for _, _, place in told(f'llm_call("hi", nil, {options})')]
    assert marked == ['"maybe"', '"5"']


def test_options_in_a_variable_are_told_where_they_are_used() -> None:
    source = 'let opts = {max_token: 5}\nllm_call("hi", nil, opts)'
    [found] = findings(source)
    assert source[found.start : found.end] == "opts"
    assert [source[place.start : place.end] for place in found.places] == ["max_token"]


def test_the_fix_writes_the_nearest_key() -> None:
    source = 'llm_call("hi", nil, {max_token: 5})'
    [found] = findings(source)
    assert found.help == "did you mean `max_tokens`?"
    assert found.fix is not None
    [edit] = found.fix.edits
    assert source[: edit.start] + edit.text + source[edit.end :] == 'llm_call("hi", nil, {max_tokens: 5})'


@pytest.mark.parametrize("key", ['"max_token"', '"max_token" ', "max_token   "])
def test_a_key_that_may_be_in_quotes_is_left_to_people(key: str) -> None:
    [found] = findings(f'llm_call("hi", nil, {{{key}: 5}})')
    assert found.help == "did you mean `max_tokens`?"
    assert found.fix is None


def test_builtins_of_the_embedder_are_not_judged() -> None:
    from harnpy.builtins import catalog

    vm = Vm()
    declaration = catalog.find("llm_call")
    assert declaration is not None
    vm.builtins.register(declaration)
    assert findings('llm_call("hi", nil, {max_token: 5})', vm) == []
