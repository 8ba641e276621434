"""Whether a tool call may be made: permitted, complete, not a repetition. Spec: 07 §6.7 steps 3–8 and 10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.agent.loop.call_arguments import PARSE_ERROR, missing, normalised
from harnpy.agent.loop.tool_calls import PERMISSION_DENIED, REJECTED_LOOP, CheckedCall, Rejection, denied_text
from harnpy.agent.tools.served import FILE_ALIASES
from harnpy.text.display import display

if TYPE_CHECKING:
    from harnpy.agent.loop.repeats import Repeats
    from harnpy.agent.loop.tool_calls import Call
    from harnpy.agent.rules.gate import Gate
    from harnpy.agent.tools.toolbox import Toolbox
    from harnpy.reading.dicts import Dict
    from harnpy.world import World


class CallChecker:
    """The checks of one loop's calls."""

    def __init__(self, toolbox: Toolbox, gate: Gate, repeats: Repeats, world: World) -> None:
        self._toolbox = toolbox
        self._gate = gate
        self._repeats = repeats
        self._world = world

    def check(self, call: Call) -> CheckedCall:
        name, given = call["name"], call["arguments"]
        if isinstance(given, dict) and PARSE_ERROR in given:
            text = f"ERROR: {display(given[PARSE_ERROR])}"
            return CheckedCall(call, given, Rejection(text, "schema_validation"))
        aliases = {**FILE_ALIASES.get(name, {}), **self._toolbox.annotations(name).arg_aliases}
        arguments = normalised(given, aliases)
        decision = self._gate.decide(name, arguments, call.get("id"))
        checked = CheckedCall(call, decision.arguments, notes=decision.notes, leads=decision.leads)
        if decision.reason is not None:
            text = denied_text(name, decision.reason)
            checked.rejection = Rejection(text, PERMISSION_DENIED, decision.reason, decision.metadata)
        else:
            checked.rejection = self._incomplete(checked) or self._repeated(checked)
        return checked

    def _incomplete(self, checked: CheckedCall) -> Rejection | None:
        entry = self._toolbox.entries.get(checked.name)
        absent = [] if entry is None else missing(entry, checked.arguments)
        if not absent:
            return None
        text = (
            f"ERROR: Tool '{checked.name}' is missing required parameter(s): {', '.join(absent)}. "
            "Provide all required parameters and try again."
        )
        metadata: Dict = {"arguments": checked.arguments}
        return Rejection(text, "schema_validation", metadata=metadata)

    def _repeated(self, checked: CheckedCall) -> Rejection | None:
        found = self._repeats.before(checked.name, checked.arguments)
        if found is None:
            return None
        skipped = {"loop_skipped": True, "repeat_count": found.times}
        return Rejection(found.text, REJECTED_LOOP, metadata=skipped)
