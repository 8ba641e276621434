"""The engine of prompt templates: text with `{{ … }}` directives. Spec: 04 §23.

In the order of their use: `segments` cuts a template up, `expressions` and `filters` are what
directives say, `nodes` what they do, `parser` builds the nodes, `rendering` is one render of them, `assets`
finds the files, `engine` does it all. What it must know of the values is handed in as `Operations`.
"""
