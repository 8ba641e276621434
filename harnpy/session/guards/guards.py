"""What was plugged into one turn. Spec: 10 §C7."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from harnpy.session.agents.definition import Budget
    from harnpy.session.guards.approvals import ApprovalGate
    from harnpy.session.guards.inputs import InputGate


class Guards(NamedTuple):
    """None stands for none."""

    budget: Budget | None = None
    approvals: ApprovalGate | None = None
    inputs: InputGate | None = None
