"""Sessions: the `agent_session_*` builtins over the Vm's `SessionRegistry`, one module a group of verbs.

Each checks the kinds of its arguments, calls the method of the same name, and passes on what it answers.
Spec: 08 §1.
"""
