"""Agents of the session runtime: what `SessionRuntime.send` runs on a prompt. Spec: 10 §C7.1.

`send` is the action, `running` calls an agent of any kind, `turn` is what it sees and writes through.
"""
