"""Options that are told of as errors fail in the run, whatever they are. Spec: 03 §16."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy import Vm
from harnpy.builtins.options import TABLES
from harnpy.formats.options import OptionTable
from harnpy.vm.errors import VmError
from tests.check.agents.asking import findings
from tests.counts import COUNT

_VALUES = st.sampled_from(
    """"x" "" "none" "low" "json" "hybrid" "small" "10ms" 5 0 -1 1.5 true false nil [] {} ["a"] [1] 5ms
    {_->1} [{name:"a",command:"true"}]""".split()
)
_MOCK = 'http_mock("*", "*", {body: ""})'
#: Calls that end at once where nothing is wrong, with the options that they need for it.
_CALLS = {
    "llm_call": ('llm_call("q", nil, %s)', 'provider: "mock"'),
    "llm_stream": ('llm_stream("q", nil, %s)', 'provider: "mock"'),
    "agent_loop": ('agent_loop("q", nil, %s)', 'provider: "mock", max_iterations: 1'),
    "sub_agent_run": ('sub_agent_run("q", %s)', 'provider: "mock", max_iterations: 1'),
    "http_get": ('http_get("http://nowhere.test/", %s)', "timeout: 1"),
    "sse_connect": ('sse_connect("GET", "http://nowhere.test/", %s)', "timeout: 1"),
    "supervisor_start": ("supervisor_start(%s)", "children: [{task: { _ -> 1 }}]"),
    "workflow_execute": ('workflow_execute("t", {nodes: {a: {}}}, [], %s)', 'provider: "mock", max_steps: 1'),
    "tool_synthesize": ("tool_synthesize(%s)", 'description: "x"'),
    "http_mock": ('http_mock("GET", "*", %s)', "status: 200"),
    "llm_mock": ("llm_mock(%s)", 'text: "x"'),
}
#: Without them: they name files and sessions.
_ELSEWHERE = ("session", "resume_path", "replay_path", "persist_path", "mcp_servers", "tls", "path")


@st.composite
def _options(draw: st.DrawFn, table: OptionTable, depth: int = 0) -> str:
    keys = draw(st.lists(st.sampled_from(sorted(set(table.own) - set(_ELSEWHERE))), max_size=3, unique=True))
    entries = []
    for key in keys:
        inner = table._inner.get(key)
        deeper = inner is not None and depth < 2 and draw(st.booleans())
        entries.append(f"{key}: {draw(_options(inner, depth + 1) if deeper and inner else _VALUES)}")
    written = ", ".join(entries)
    return f"{{{written}}}" if depth else written


@settings(max_examples=COUNT.examples(12), deadline=None)
@given(st.data())
def test_what_is_told_fails(data: st.DataObject) -> None:
    builtin = data.draw(st.sampled_from(sorted(_CALLS)))
    call, needed = _CALLS[builtin]
    options = data.draw(_options(TABLES[builtin]))
    source = f"{_MOCK}\n{call % f'{{{needed}, {options}}}'}"
    if any(found.severity == "error" for found in findings(source)):
        with pytest.raises(VmError):
            Vm().run_source(source)
