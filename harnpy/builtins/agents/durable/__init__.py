"""The builtins behind `std/session`: sessions on a store, as programs see them. Spec: 10 §C9.

Each is a `verb`: a thin adapter over `harnpy.session.runtime`, whose arguments are read and whose errors are
told in one place. Everything happens in the task that calls, hooks and actions too.
"""
