"""Builtins over `harnpy.mcp`: servers of the Model Context Protocol. Spec: 07 §15.1."""
