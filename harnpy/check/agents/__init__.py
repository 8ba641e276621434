"""Checks that know what agents are made of: options, graphs, tools, models, sessions, secrets. Spec: 03 §16.

What is written out as a literal is held against the builtins that read it (`Knowledge.problems`); here is
only how literals are read and where they stand.
"""
