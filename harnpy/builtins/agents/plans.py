"""Plans and handoffs in their normal forms. Spec: 07 §14.2–14.3, 08 §12."""

from __future__ import annotations

from harnpy.agent import handoffs, plans
from harnpy.builtins.bridge.contexts import context_of
from harnpy.vm.declare.builtin import builtin
from harnpy.world.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("plan_artifact(plan: any) -> dict", family="tools")
def plan_artifact(vm: Vm, plan: Value) -> dict[str, Any]:
    """Anything plan-like as `{_type: "plan_artifact", id, title, summary, steps, approval, …}`.

    Example:
        plan_artifact({title: "Move", steps: ["pack", "drive"]}).title  // "Move"
    """
    return plans.plan_artifact(plan)


@builtin("plan_entries(plan: any) -> list", family="tools")
def plan_entries(vm: Vm, plan: Value) -> list[dict[str, Any]]:
    """The steps of a plan as `{content, status, priority?}`; its summary when it has none.

    Example:
        plan_entries({steps: ["pack", "drive"]}).map({ step -> step.content })  // ["pack", "drive"]
    """
    return plans.plan_entries(plan)


@builtin("handoff(payload: dict) -> dict", family="records")
def handoff(vm: Vm, payload: Value) -> dict[str, Any]:
    """The normal form of a handoff: from whom, to whom, which task, why, with what.

    Example:
        let who = {source_persona: "clerk", target_persona_or_human: "manager"}
        handoff(who + {task: "Refund", reason: "over 100"}).target_persona_or_human.id  // "manager"
    """
    return _normal(vm, payload, "handoff")


@builtin("handoff_context(payload: dict) -> string", family="records")
def handoff_context(vm: Vm, payload: Value) -> str:
    """A handoff as tagged text for the model that takes over.

    Example:
        let who = {source_persona: "clerk", target_persona_or_human: "manager"}
        handoff_context(who + {task: "Refund", reason: "over 100"}).contains("over 100")  // true
    """
    return handoffs.handoff_context(_normal(vm, payload, "handoff_context"))


def _normal(vm: Vm, payload: Value, caller: str) -> dict[str, Any]:
    id, now, run_id = f"handoff_{vm.world.ids.new()}", rfc3339(vm.world.clock.now()), current_run(vm)
    return handoffs.normalise(payload, id, now, run_id, caller)


def current_run(vm: Vm) -> str | None:
    """The workflow run that the running task works for, by its mutation session."""
    workflow = context_of(vm).workflow
    return None if workflow is None else workflow.mutation["run_id"]
