"""Sessions: `agent_session_*`, transcripts, and the durable sessions of `std/session`.

Spec: 08, 10 §C9. A durable builtin is a *verb* (`verbs`): a thin adapter over `harnpy.session.runtime`.
`verbs` reads all arguments and reports all errors; `service` holds what the verbs of one program share.
Everything runs in the calling task, hooks and actions too.
"""
