"""Daemons: loops that go idle instead of ending, and wake again. Spec: 07 §12.

`resting` is one loop's rest, `snapshot` what it leaves in a file, `watching` the files that wake it;
`registry` keeps the daemons that run beside a program, `kept` is one of them, `events` what waits for it.
"""
