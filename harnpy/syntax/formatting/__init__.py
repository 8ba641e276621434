"""A source text in canonical form, its comments kept. Spec: 01 §12.

`document.format_source` prints each item of a file from its tree (`harnpy.syntax.printer`), `weave` puts its
comments back between the lines, and `kept` makes sure that nothing was lost before anything is written.
"""
