"""Prompt templates: text with `{{ … }}` directives. Spec: 04 §23.

`expressions` is what directives say, with filters; `engine` cuts a template up, builds its nodes and renders
them; `assets` finds the files. What it must know of the values is handed in as `Operations`.
"""
