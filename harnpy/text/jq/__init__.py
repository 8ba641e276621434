"""A part of the query language jq: an expression makes any number of values out of one. Spec: 04 §11.4.

`parser` reads an expression to one function, which is made of those in `filters`.
"""
