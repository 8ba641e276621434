"""YAML 1.2 for data: texts to values and back, by the core schema. Spec: 04 §11.5, 07 §13.1.

`scalars` knows what a plain word means, `reader` makes values of PyYAML's events, `errors` says in our own
words what a parser refuses, `writer` is our own.
"""
