"""What a call of a plan tool leads to. Spec: 07 §14.2."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from harnpy.agent.plans import markdown, plan_artifact, plan_entries, plan_result

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "plan",
                    "title",
                    "steps",
                    "content",
                    "status",
                    "approval",
                    "approved",
                    "state",
                    "questions",
                    "tool",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_an_artifact_is_its_own_normal_form(value: object) -> None:
    plan = plan_artifact(value)
    assert plan_artifact(plan) == plan
    assert plan_entries(value) == plan_entries(plan)


def test_the_result_is_the_artifact_and_the_event_shows_it() -> None:
    arguments = {
        "plan": ["first", {"step": "second", "status": "active"}],
        "explanation": "Because.",
        "open_questions": ["Why?"],
        "verification_commands": ["make test"],
        "assumptions": ["none"],
    }
    text, event = plan_result("update_plan", arguments, "call_1")
    plan = json.loads(text)
    assert plan["tool"] == "update_plan"
    assert plan == plan_artifact(plan)
    assert text.startswith('{\n  "_type": "plan_artifact",\n')
    assert (event["kind"], event["role"], event["visibility"]) == ("plan", "assistant", "public")
    assert event["metadata"] == {
        "plan": plan,
        "entries": [
            {"content": "first", "status": "pending"},
            {"content": "second", "status": "in_progress"},
        ],
        "tool_name": "update_plan",
        "tool_use_id": "call_1",
    }
    assert event["text"] == (
        "# Plan\n\nBecause.\n\n"
        "## Steps\n- [pending] first\n- [in_progress] second\n\n"
        "## Assumptions\n- none\n\n"
        "## Open questions\n- Why?\n\n"
        "## Verification commands\n- make test\n\n"
        "Approval: unrequested"
    )


def test_empty_parts_are_left_out() -> None:
    plan = plan_artifact({"title": "T", "approval": {"approved": True}})
    assert markdown(plan) == "# T\n\nApproval: approved"
