"""The language server: what editors show and do while a Harn program is written. Spec: 12.

    server -> features -> workspace -> document -> text

`server` is the only module that knows the transport. A feature is a module: functions from a `Document` and
an offset to what the protocol calls the answer. All offsets count characters of the text, and `Text` alone
turns them into the protocol's positions.
"""
