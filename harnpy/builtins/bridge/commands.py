"""`process.exec` under the command policy of the running task. Spec: 02 §28."""

from __future__ import annotations

from harnpy.agent.rules.command_call import CommandCall
from harnpy.builtins.bridge.contexts import context_of, workplace_of
from harnpy.faults import Fault, Interruption
from harnpy.vm.errors import harn_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.rules.command_policy import CommandPolicy
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


def governed(
    vm: Vm, policy: CommandPolicy, perform: Callable[[Dict], Value], caller: str
) -> Callable[[Dict], Value]:
    """Return `process.exec` as ``perform`` does it, under a policy. Errors of hooks are ``caller``'s."""

    def run(params: Dict) -> Value:
        directory = workplace_of(vm).directory()
        call = CommandCall(policy, params, context_of(vm), directory, vm.world, _notifier(vm))
        try:
            return call.run(perform)
        except Fault as fault:
            raise harn_error(fault, caller) from fault
        except Interruption as interruption:
            stop = interruption.__cause__ or interruption
        # Not `from` the interruption: its cause would become its own cause.
        raise stop

    return run


def _notifier(vm: Vm) -> Callable[[str, str, str], None]:
    """Return what queues a note for the loop of a session."""

    def notify(session_id: str, kind: str, content: str) -> None:
        from harnpy.builtins.bridge.live_sessions import sessions_of  # only hooks with something to say

        sessions_of(vm).inject_feedback(session_id, kind, content)

    return notify
