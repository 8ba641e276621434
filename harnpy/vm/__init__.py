"""Trees to closures to effects; owns all state of a running program.

A `Vm` (`vm`) is handed what lies above it, the builtin catalog and services such as the session store.
May use `syntax`; knows nothing of sessions, models or agents.
"""
