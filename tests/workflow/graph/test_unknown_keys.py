"""No dict that a workflow's builtins take may have a key that nobody reads. Spec: 08 §6.1, §7.1."""

from __future__ import annotations

import pytest

from harnpy import Vm
from harnpy.vm.errors import VmError
from harnpy.workflow.graph import _KINDS
from harnpy.workflow.graph_shapes import POLICIES, Graph, Node

G = "nodes: {a: {kind: 'reduce'}}".replace("'", '"')
RUN = f'workflow_execute("t", {{{G}}}, nil, %s)'
NODE = "workflow_graph({nodes: {a: %s}})"
IN_MODEL_POLICY = NODE % "{model_policy: {%s}}"

#: For each dict: a program with a hole where the dict goes, and one of its keys.
DICTS = {
    "graph": ("workflow_graph(%s)", "edges"),
    "graph.capability_policy": (f"workflow_graph({{{G}, capability_policy: %s}})", "side_effect_level"),
    "graph.approval_policy": (f"workflow_graph({{{G}, approval_policy: %s}})", "auto_deny"),
    "edge": (f"workflow_graph({{{G}, edges: [%s]}})", "branch"),
    "audit_log": (f"workflow_graph({{{G}, audit_log: [%s]}})", "reason"),
    "shorthand act": ("workflow_graph({act: %s})", "model_tier"),
    "shorthand verify": ("workflow_graph({act: {}, verify: %s})", "expect_status"),
    "capability_policy": (NODE % "{capability_policy: %s}", "workspace_roots"),
    "approval_policy": (NODE % "{approval_policy: %s}", "require_approval"),
    "constraint": (NODE % "{capability_policy: {tool_arg_constraints: [%s]}}", "arg_patterns"),
    "context_assembler": (NODE % "{context_assembler: %s}", "budget_tokens"),
    "turn_policy": (IN_MODEL_POLICY % "turn_policy: %s", "max_prose_chars"),
    "skill_match": (IN_MODEL_POLICY % "skill_match: %s", "strategy"),
    "permissions": (IN_MODEL_POLICY % "permissions: %s", "on_escalation"),
    "model_policy.policy": (IN_MODEL_POLICY % "policy: %s", "command_policy"),
    "task_ledger": (IN_MODEL_POLICY % "task_ledger: %s", "deliverables"),
    "deliverable": (IN_MODEL_POLICY % "task_ledger: {deliverables: [%s]}", "status"),
    "verify": (NODE % '{kind: "verify", verify: %s}', "expect_status"),
    "verify.contract": (NODE % '{kind: "verify", verify: {contract: %s}}', "required_paths"),
    "check": (NODE % '{kind: "verify", verify: {checks: [%s]}}', "note"),
    "contract's check": (NODE % '{kind: "verify", verify: {contract: {checks: [%s]}}}', "note"),
    "contract file": (
        'write_file("c.json", json_stringify(%s))\n'
        'let out = workflow_execute("t", {nodes: {a: {kind: "verify", verify: {contract_path: "c.json"}}}})\n'
        "throw out.error ?? nil",
        "required_paths",
    ),
    "inserted node": (f'workflow_insert_node({{{G}}}, {{id: "b"}} + %s)', "output_visibility"),
    "inserted edge": (f'workflow_insert_node({{{G}}}, {{id: "b"}}, %s)', "branch"),
    "replaced node": (f'workflow_replace_node({{{G}}}, "a", %s)', "system"),
    "set model policy": (f'workflow_set_model_policy({{{G}}}, "a", %s)', "max_tokens"),
    "set context policy": (f'workflow_set_context_policy({{{G}}}, "a", %s)', "max_artifacts"),
    "set auto compact": (f'workflow_set_auto_compact({{{G}}}, "a", %s)', "compact_strategy"),
    **{
        f"ceiling of {name}": (f"{name}({{{G}}}, %s)", "side_effect_level")
        for name in ("workflow_validate", "workflow_inspect", "workflow_policy_report")
    },
    **{
        f"graph of {call.partition('(')[0]}": (call, "metadata")
        for call in (
            "workflow_validate(%s)", "workflow_inspect(%s)", "workflow_policy_report(%s)",
            "workflow_clone(%s)", "workflow_commit(%s)", 'workflow_rewire(%s, "a", "a")',
            f"workflow_diff(%s, {{{G}}})", 'workflow_execute("t", %s)',
            'workflow_set_output_visibility(%s, "a", nil)', 'spawn_agent({task: "t", graph: %s})',
        )
    },
    "options": (RUN, "resume_path"),
    "execution": (RUN % "{execution: %s}", "worktree_path"),
    "audit": (RUN % "{audit: %s}", "execution_kind"),
    "audit.approval_policy": (RUN % "{audit: {approval_policy: %s}}", "auto_approve"),
    "approval policy of a run": (RUN % "{approval_policy: %s}", "auto_approve"),
    "skill_match of a run": (RUN % "{skill_match: %s}", "strategy"),
    "options of task_run": (
        f'import {{ task_run }} from "std/agents"\ntask_run("t", {{{G}}}, %s)', "resume_path",
    ),
    "options of workflow.update": ('workflow.update("d", "n", nil, %s)', "timeout_ms"),
    "node of spawn_agent": ('spawn_agent({task: "t", node: %s})', "task_label"),
    "options of spawn_agent": (f'spawn_agent({{task: "t", graph: {{{G}}}, options: %s}})', "resume_path"),
}  # fmt: skip
DICTS |= {f"{kind} node": (NODE % (f'{{kind: "{kind}"}} + %s'), "task_label") for kind in _KINDS}
DICTS |= {field: (NODE % f"{{{field}: %s}}", min(shape.__annotations__)) for field, shape in POLICIES.items()}


@pytest.mark.parametrize("name", DICTS)
def test_a_misspelt_key_is_refused_with_the_one_that_was_meant(
    name: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hole, key = DICTS[name]
    with pytest.raises(VmError) as caught:
        Vm().run_source(hole.replace("%s", f"{{{key}x: nil}}"), checked=False)
    message = str(caught.value).replace(" option", "")
    assert "unknown key '" in message
    assert f"{key}x'" in message
    assert f"did you mean '{key}'" in message


def test_the_table_has_every_dict_of_a_graph_and_its_nodes() -> None:
    free = {"metadata", "nodes", "tools", "edges"}
    dicts = {
        key
        for shape in (Graph, Node)
        for key, kind in shape.__annotations__.items()
        if any(word in str(kind) for word in ("ReadLater", "Dict", "Any", "Field"))
    }
    assert dicts - free <= DICTS.keys()
