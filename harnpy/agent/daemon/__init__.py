"""Daemons: loops that go idle instead of ending, and wake again. Spec: 07 §12.

`resting` is one loop's rest, `daemon_snapshot` what it saves in a file, `watching` the files that wake it.
`daemons` holds those of a program, `background` is one of them, `event_queue` its events.
"""
