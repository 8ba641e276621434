"""Errors that builtins would raise for arguments that are written out, without a call. Spec: 03 §16.

Those who read an argument at run time are asked, so that a program fails before the run with the words of
the run. Nothing here is loaded before a program has a literal for a builtin.
"""
