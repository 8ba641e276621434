"""Text to tree: lexing, parsing, diagnostics, canonical text. Knows no values; imports nothing of harnpy.

`harnpy.syntax.parser` has the entry points: `parse`, `parse_cached`. Modules are imported by name, so
that a run which finds its program in the cache pays for none of them.
"""
