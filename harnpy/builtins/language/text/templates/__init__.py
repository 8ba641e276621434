"""The prompt templates: text with `{{ … }}` directives. Spec: 04 §23.

In the order of a template's way to text: `segments` cuts it up, `expressions` and `filters` are what
directives say, `nodes` what they do, `parser` builds the nodes, `rendering` runs them, `assets` finds
the files, `functions` is what programs call.
"""
