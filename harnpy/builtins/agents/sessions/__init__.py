"""Sessions: the `agent_session_*` builtins over the Vm's `SessionRegistry`, one module a group of verbs.

Each checks the types of its arguments and returns the result of the method of the same name. Spec: 08 §1.
"""
