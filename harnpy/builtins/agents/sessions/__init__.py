"""Sessions: the `agent_session_*` builtins over the Vm's `SessionRegistry`, one module a group of verbs.

Each checks the types of its arguments and returns the result of the method of the same name. Spec: 08 §1.
"""

from functools import partial

from harnpy.vm.declare.builtin import builtin as declare

#: What the declarations of all verbs have in common.
builtin = partial(declare, family="agent_sessions", strict=True)
