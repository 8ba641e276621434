"""What a loop, stage or worker does itself, without a program's code, stays below its own ceiling, too.

Their model calls and records are those of whoever started them: 07 §8.5.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.counts import COUNT
from tests.rules.places import PRELUDE
from tests.rules.sets import POLICIES, UNRESTRICTED, Rules
from tests.rules.trial import recorded

#: What is done by right of whoever starts a loop, a stage or a worker.
_BY_STARTER = frozenset(["model", "state"])

_LOOP = """
let POLICY = json_parse(argv[0])
var tools = tool_define(tool_registry(), "read_file", "R", {parameters: {path: "string"}, executor: "harn"})
tools = tool_define(tools, "list_directory", "L", {parameters: {path: "string"}, executor: "harn"})
let skills = skill_define(skill_registry(), "marked", {description: "m", prompt: "\\${HARN_MARKED}"})
llm_mock({tool_calls: [
  {name: "read_file", arguments: {path: "/elsewhere/text.txt"}},
  {name: "list_directory", arguments: {path: "/elsewhere"}},
  {name: "load_skill", arguments: {name: "marked"}},
]})
agent_loop("go", nil, {provider: "mock", tools: tools, skills: skills, max_iterations: 1, policy: POLICY})
"""

#: Nodes, and what each does by itself.
_NODES = {
    'kind: "verify", verify: {command: "tool"}': {"process", "environment"},
    'kind: "verify", verify: {contract_path: "/elsewhere/contract.json"}': {"read"},
    'kind: "stage", prompt: "p", model_policy: M, verify: {command: "tool"}': {"model"},
    'kind: "stage", mode: "llm", prompt: "p", model_policy: M': {"model"},
    'kind: "subagent", prompt: "p", model_policy: M': {"model"},
    'kind: "map", prompt: "p", map_policy: {items: [1, 2]}, model_policy: M': {"model"},
    'kind: "reduce", prompt: "p", model_policy: M': set(),
    'kind: "escalation"': set(),
}

_STARTS = {
    "stage": 'workflow_execute("go", {entry: "n", nodes: {n: NODE + {capability_policy: POLICY}}})',
    "graph": 'workflow_execute("go", {entry: "n", nodes: {n: NODE}, capability_policy: POLICY})',
    "worker": 'spawn_agent({task: "go", node: NODE, policy: POLICY, wait: true})',
    "resumed worker": """
let worker = spawn_agent({task: "go", node: NODE, policy: POLICY, wait: true})
close_agent(worker)
let resumed = resume_agent(worker.snapshot_path)
at_place("resumed")
wait_agent(send_input(resumed, "go on"))
""",
    "workflow worker": (
        'spawn_agent({task: "go", graph: {entry: "n", nodes: {n: NODE}}, policy: POLICY, wait: true})'
    ),
}


def _loop(rules: Rules) -> set[str]:
    record = recorded(_LOOP, rules, {})
    assert not record.failure
    return record.effects()


def test_the_tools_of_the_runtime_have_effects() -> None:
    assert _loop(UNRESTRICTED) == {"read", "list", "environment"}


@pytest.mark.parametrize("rules", POLICIES, ids=lambda rules: rules.name)
def test_the_tools_of_the_runtime_obey_their_loop(rules: Rules) -> None:
    assert _loop(rules) <= rules.allowed


def _cells() -> Iterator[tuple[str, str]]:
    return ((start, node) for start in _STARTS for node in _NODES)


def _started(start: str, node: str, rules: Rules) -> set[str]:
    source = f"let POLICY = json_parse(argv[0])\n{PRELUDE}\nlet NODE = {{{node}}}\n{_STARTS[start]}\n"
    return recorded(source, rules, {}).effects("resumed" if start == "resumed worker" else None)


@pytest.mark.parametrize(("start", "node"), list(_cells()))
def test_a_node_has_effects(start: str, node: str) -> None:
    assert _started(start, node, UNRESTRICTED) >= _NODES[node]


@pytest.mark.parametrize(
    ("number", "start", "node"), [(number, *cell) for number, cell in enumerate(_cells())]
)
def test_a_node_obeys_its_own_ceiling(number: int, start: str, node: str) -> None:
    share = COUNT.policies_share
    for rules in (POLICIES[0], *POLICIES[1:][number % share :: share]):
        assert _started(start, node, rules) <= rules.allowed | _BY_STARTER, rules.name
