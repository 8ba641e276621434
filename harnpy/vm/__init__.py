"""Trees to results; owns all state of a running program.

The rooms in the order of the pipeline: `resolve` (what names mean), `modules` (imports), `emit` (the
compiler), `values`, `declare` (builtins), `run` (calls, methods, tasks, backtraces). A `Vm` is handed what
lies above it: the builtin catalog and services such as the live sessions. May use `syntax` and the world;
knows nothing of sessions, models or agents.
"""
